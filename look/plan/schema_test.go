// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/plan/plantest"
)

var update = flag.Bool("update", false, "write the schema anew")

// The schema that is published is that of the types, with their comments.
func TestSchema(t *testing.T) {
	want := schemaOfTypes(t)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(plan.Schema(), want) {
		t.Errorf("schema.json is not that of the types: go test ./look/plan -run TestSchema -update. It is\n%s", want)
	}
}

func schemaOfTypes(t *testing.T) []byte {
	t.Helper()
	named := map[string]reflect.Type{}
	r := jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, ExpandedStruct: true, Namer: func(of reflect.Type) string {
		if other := named[of.Name()]; of.Name() != "" && other != nil && other != of {
			t.Errorf("%v and %v have one name in the schema", other, of)
		}
		named[of.Name()] = of
		return of.Name()
	}}
	for _, dir := range []string{".", "../report"} {
		if err := r.AddGoComments("github.com/fairlead/fairlead/look/plan", dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(text), " ")
	}

	schema := r.Reflect(&plan.Plan{})
	schema.Title = "fairlead plan -o json"
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

func TestSchemaTellsPlansFromOthers(t *testing.T) {
	r := gated()
	r.Changes = []plan.Change{}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(map[string]any){
		"cells":         func(p map[string]any) { p["cells"] = nil },
		"digest":        func(p map[string]any) { delete(p, "digest") },
		"complete":      func(p map[string]any) { p["complete"] = "yes" },
		"more":          func(p map[string]any) { p["more"] = true },
		"base/more":     func(p map[string]any) { p["base"].(map[string]any)["more"] = true },
		"cells/0/after": func(p map[string]any) { p["cells"].([]any)[0].(map[string]any)["after"] = []any{1} },
	} {
		var p map[string]any
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		p["clusters"] = []any{}
		for _, c := range p["cells"].([]any) {
			c.(map[string]any)["because"] = []any{}
		}
		if err := plantest.CheckJSON(encoded(t, p)); err != nil {
			t.Fatal(err)
		}
		edit(p)
		if err := plantest.CheckJSON(encoded(t, p)); err == nil {
			t.Errorf("%s: it is valid", name)
		}
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

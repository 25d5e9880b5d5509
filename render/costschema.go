// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// maxSpecs limits the fields that the definitions of a file lead to.
const maxSpecs = 10_000

// specsOfConfiguration counts the field specifications of a file of configurations.
func specsOfConfiguration(b []byte) int {
	var value any
	if raw, err := yaml.YAMLToJSON(b); err != nil || json.Unmarshal(raw, &value) != nil {
		return 0 // it was reported
	}
	return listItems(value)
}

// specsOfDefinitions counts the fields that kustomize visits in a file of definitions:
// each property, and each of what it refers to, as often as something refers to it.
// kustomize follows definitions that refer to each other for ever, until its stack is
// full, which ends the process. So they are followed here, in the same way.
func specsOfDefinitions(b []byte) int {
	var all map[string]struct{ Schema spec.Schema }
	if yaml.Unmarshal(b, &all) != nil {
		return 0 // kustomize reports it
	}

	seen := 0
	var visit func(name string, depth int)
	visit = func(name string, depth int) {
		for _, property := range all[name].Schema.Properties {
			if seen++; seen > maxSpecs || depth > maxSpecs {
				seen = maxSpecs + 1
				return
			}
			if property.Ref.GetURL() != nil {
				visit(property.Ref.String(), depth+1)
			}
		}
	}

	for name := range all {
		visit(name, 0)
	}
	return seen
}

// checkSchema refuses a schema of which a part refers to itself, and to nothing else:
// kustomize would follow it for ever.
func (k *kustomized) checkSchema(file string, b []byte) {
	if err := checkText(b); err != nil {
		k.wrong(problem(file, 0, err.Error()))
		return
	}

	var value any
	if raw, err := yaml.YAMLToJSON(b); err != nil || json.Unmarshal(raw, &value) != nil {
		return // kustomize reports it
	}

	refs := map[string]string{} // by JSON pointer
	if !findSchemaRefs(refs, "", value) {
		k.wrong(problem(file, 1, "the schema is nested too deeply"))
		return
	}

	from := map[string]string{} // where the walk that came there began
	for begin := range refs {
		for at := begin; refs[at] != "" && from[at] != begin; at = refs[at] {
			if from[at] != "" {
				break // an earlier walk has passed, and ended
			}
			if from[at] = begin; from[refs[at]] == begin {
				k.wrong(problem(file, 1, "a $ref of the schema leads back to itself"))
				return
			}
		}
	}
}

// maxPointer limits the length of a pointer into a schema.
const maxPointer = 2048

// findSchemaRefs records which pointers lead to a reference, and where that leads. It
// reports whether it could.
func findSchemaRefs(refs map[string]string, at string, value any) bool {
	if len(at) > maxPointer {
		return false
	}

	switch value := value.(type) {
	case map[string]any:
		if to, ok := value["$ref"].(string); ok {
			refs[at] = strings.ToLower(strings.TrimPrefix(to, "#"))
		}
		for key, v := range value {
			if !findSchemaRefs(refs, at+"/"+strings.ToLower(pointerPart.Replace(key)), v) {
				return false
			}
		}
	case []any:
		for i, v := range value {
			if !findSchemaRefs(refs, at+"/"+strconv.Itoa(i), v) {
				return false
			}
		}
	}

	return true
}

var pointerPart = strings.NewReplacer("~", "~0", "/", "~1")

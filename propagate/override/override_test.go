// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// The image table of digest §5.5.
func TestImageComponents(t *testing.T) {
	sha := "sha256:" + strings.Repeat("ab", 32)
	for _, tt := range []struct {
		image, component, operator, value, want string
	}{
		{"nginx", "Registry", "add", "reg.io", "reg.io/nginx"},
		{"reg.io/nginx:1", "Registry", "add", ".cn", "reg.io.cn/nginx:1"},
		{"library/nginx:1", "Registry", "replace", "x.y", "x.y/library/nginx:1"},
		{"reg.io/nginx:1", "Registry", "remove", "", "nginx:1"},
		{"reg.io/nginx:1", "Repository", "add", "/sub", "reg.io/nginx/sub:1"},
		{"reg.io/a/nginx:1", "Repository", "replace", "busybox", "reg.io/busybox:1"},
		{"reg.io/a/nginx:1", "Repository", "remove", "", "reg.io/:1"},
		{"nginx:1.19", "Tag", "add", "-alpine", "nginx:1.19-alpine"},
		{"nginx", "Tag", "add", "1.0", "nginx:1.0"},
		{"nginx:1", "Tag", "replace", "2", "nginx:2"},
		{"nginx:1", "Tag", "replace", sha, "nginx@" + sha},
		{"nginx:1", "Tag", "replace", "@" + sha, "nginx:1"},
		{"nginx:1", "Tag", "remove", "ignored", "nginx"},
		{"nginx@" + sha, "Tag", "remove", "", "nginx"},
		{"nginx:1", "Tag", "replace", "", "nginx:1"},
		{"reg.io/nginx:1", "Registry", "replace", "", "reg.io/nginx:1"},
		{"reg.io/nginx:1", "Repository", "replace", "", "reg.io/nginx:1"},
		{"nginx:1@" + sha, "Registry", "replace", "r.io", "r.io/nginx:1"},
		{"localhost:5000/a/b", "Tag", "add", "v1", "localhost:5000/a/b:v1"},
	} {
		t.Run(tt.image+" "+tt.component+" "+tt.operator+" "+tt.value, func(t *testing.T) {
			got, err := overrideImage(tt.image, &policyv1alpha1.ImageOverrider{
				Component: policyv1alpha1.ImageComponent(tt.component), Operator: policyv1alpha1.OverriderOperator(tt.operator), Value: tt.value,
			})
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}

	for _, bad := range []string{"", "UPPER/case", "a b", "nginx:", "nginx@sha256:short", "/nginx", "nginx:-tag"} {
		if _, err := overrideImage(bad, &policyv1alpha1.ImageOverrider{Component: "Tag", Operator: "add", Value: "1"}); err == nil {
			t.Errorf("%q is taken for an image", bad)
		}
	}
}

const deployment = `
kind: Deployment
metadata: {name: web, labels: {app: web, tier: gold}}
spec:
  replicas: 9007199254740993
  template:
    spec:
      initContainers: [{name: init, image: "init:1"}]
      containers:
      - {name: web, image: "nginx:1", command: [run], args: [a, b, a]}
      - {name: side, image: "reg.io/side:2"}
data:
  json: '{"a":{"b":1}}'
  yaml: |
    a:
      b: 1
`

func TestOverriders(t *testing.T) {
	const containers = "spec.template.spec.containers"
	for _, tt := range []struct {
		name, overriders string
		want             map[string]string
	}{
		{
			"an image of every container, but no init container",
			`{imageOverrider: [{component: Tag, operator: replace, value: "7"}]}`,
			map[string]string{containers + ".0.image": "nginx:7", containers + ".1.image": "reg.io/side:7", "spec.template.spec.initContainers.0.image": "init:1"},
		},
		{
			"an image by its path",
			`{imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: replace, value: "7"}]}`,
			map[string]string{containers + ".0.image": "nginx:1", "spec.template.spec.initContainers.0.image": "init:7"},
		},
		{
			"the command of containers by name; nobody is no error",
			`{commandOverrider: [{containerName: web, operator: add, value: [x]}, {containerName: side, operator: add, value: [new]}, {containerName: nobody, operator: add, value: [z]}]}`,
			map[string]string{containers + ".0.command": `["run","x"]`, containers + ".1.command": `["new"]`},
		},
		{
			"arguments go wherever they stand; of none an empty list is left",
			`{argsOverrider: [{containerName: web, operator: remove, value: [a]}, {containerName: side, operator: remove, value: [a]}]}`,
			map[string]string{containers + ".0.args": `["b"]`, containers + ".1.args": `[]`},
		},
		{
			"labels",
			`{labelsOverrider: [{operator: add, value: {new: "1"}}, {operator: replace, value: {tier: silver, absent: x}}, {operator: remove, value: {app: whatever}}]}`,
			map[string]string{"metadata.labels": `{"new":"1","tier":"silver"}`},
		},
		{
			"annotations are made",
			`{annotationsOverrider: [{operator: add, value: {a: b}}]}`,
			map[string]string{"metadata.annotations": `{"a":"b"}`},
		},
		{
			"fields of JSON and YAML text",
			`{fieldOverrider: [{fieldPath: /data/json, json: [{subPath: /a/b, operator: replace, value: 2}]}, {fieldPath: /data/yaml, yaml: [{subPath: /a/c, operator: add, value: x}]}]}`,
			map[string]string{"data.json": `{"a":{"b":2}}`, "data.yaml": "a:\n  b: 1\n  c: x\n"},
		},
		{
			"plaintext comes after the rest, and whole numbers stay whole",
			`{imageOverrider: [{component: Tag, operator: replace, value: "7"}], plaintext: [{path: /spec/template/spec/containers/0/image, operator: replace, value: "own:1"}, {path: /spec/paused, operator: add, value: true}]}`,
			map[string]string{containers + ".0.image": "own:1", "spec.paused": "true", "spec.replicas": "9007199254740993"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			object := parsed(t, deployment)
			got, err := Apply(object, overriders(t, tt.overriders))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(object, parsed(t, deployment)) {
				t.Error("the argument was altered")
			}

			for path, want := range tt.want {
				if text := at(got, path); text != want {
					t.Errorf("%s = %q, want %q", path, text, want)
				}
			}
		})
	}
}

func TestOverridersThatFail(t *testing.T) {
	for _, tt := range []struct{ overriders, want string }{
		{`{plaintext: [{path: /spec/absent, operator: remove}]}`, "plaintext[0]: remove /spec/absent"},
		{`{plaintext: [{path: /spec/absent, operator: replace, value: 1}]}`, "plaintext[0]: replace /spec/absent"},
		{`{plaintext: [{path: /absent/child, operator: add, value: 1}]}`, "plaintext[0]: add /absent/child"},
		{`{imageOverrider: [{predicate: {path: /spec/image}, component: Tag, operator: add, value: x}]}`, "imageOverrider[0]: /spec/image does not exist"},
		{`{imageOverrider: [{predicate: {path: /spec/replicas}, component: Tag, operator: add, value: x}]}`, "imageOverrider[0]: /spec/replicas is not a string"},
		{`{fieldOverrider: [{fieldPath: /data/none, json: [{subPath: /a, operator: remove}]}]}`, "fieldOverrider[0]: /data/none does not exist"},
		{`{fieldOverrider: [{fieldPath: /data/yaml, json: [{subPath: /a, operator: remove}]}]}`, "fieldOverrider[0]: /data/yaml does not contain JSON"},
	} {
		_, err := Apply(parsed(t, deployment), overriders(t, tt.overriders))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.overriders, err, tt.want)
		}
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	object, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}

	return object
}

func overriders(t *testing.T, text string) *policyv1alpha1.Overriders {
	t.Helper()
	var o policyv1alpha1.Overriders
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// at is the value at a dotted path: a string as it is, anything else as JSON.
func at(object map[string]any, path string) string {
	var v any = object
	for _, part := range strings.Split(path, ".") {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[part]
		case []any:
			v = parent[part[0]-'0']
		}
	}

	if s, ok := v.(string); ok {
		return s
	}

	b, _ := json.Marshal(v)
	return string(b)
}

func FuzzImage(f *testing.F) {
	for _, seed := range []string{"nginx", "reg.io:5000/a/b:1@sha256:" + strings.Repeat("a", 64), "localhost/x", ""} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, reference string) {
		i, err := parseImage(reference)
		if err != nil {
			return
		}
		again, err := parseImage(i.String())
		if err != nil || again != i {
			t.Errorf("%q is %+v, and read again %+v, %v", reference, i, again, err)
		}
	})
}

func FuzzPointer(f *testing.F) {
	f.Add("/data/json", "/a/b", `1`)
	f.Add("/metadata/labels/app", "", `{}`)
	f.Fuzz(func(t *testing.T, pointer, sub, raw string) {
		if !json.Valid([]byte(raw)) {
			return
		}

		object := parsed(t, deployment)
		_, _ = Apply(object, &policyv1alpha1.Overriders{
			Plaintext:      []policyv1alpha1.PlaintextOverrider{{Path: pointer, Operator: policyv1alpha1.OverriderAdd, Value: apiextensionsv1.JSON{Raw: []byte(raw)}}},
			FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: pointer, JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: sub, Operator: policyv1alpha1.OverriderAdd, Value: apiextensionsv1.JSON{Raw: []byte(raw)}}}}},
		})

		if !reflect.DeepEqual(object, parsed(t, deployment)) {
			t.Error("the argument was altered")
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/render"
)

// many are n copies of a line, in which %d is the number of each.
func many(n int, line string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

func treeOf(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const (
	configMaps  = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: xxxxxxxxxx}\n"
	deployments = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d%d}\nspec: {template: {spec: {containers: [{name: a, image: b}]}}}\n"
	growing     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: [x], b: xxxxxxxxxx}\n"
	copying     = `{"op":"copy","from":"/data/a","path":"/data/a/-"},`
	splicing    = "- source: {kind: ConfigMap, name: x, fieldPath: data.b}\n  targets:\n  - {select: {kind: ConfigMap, name: x}, fieldPaths: [data.b], options: {delimiter: '/', index: -1}}\n"
)

// A02: what kustomize would do for hours, or with more memory than there is, is counted
// before it begins.
func TestA2KustomizeIsCounted(t *testing.T) {
	const (
		bytes    = "reads, generates and copies more than 67108864 bytes"
		steps    = "would take kustomize more than 100000000 steps, most of them for "
		patching = steps + "patches"
		merging  = steps + "strategic merges"
	)
	self := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: ["

	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"replacements of a value into itself": {map[string]string{
			"x.yaml": growing, "kustomization.yaml": "resources: [x.yaml]\nreplacements:\n" + many(40, splicing),
		}, bytes},
		"replacements in a file": {map[string]string{
			"x.yaml": growing, "r.yaml": many(40, splicing), "kustomization.yaml": "resources: [x.yaml]\nreplacements: [{path: r.yaml}]\n",
		}, bytes},
		"replacements in a plugin": {map[string]string{
			"x.yaml": growing, "kustomization.yaml": "resources: [x.yaml]\ntransformers: [r.yaml]\n",
			"r.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: r}\nreplacements:\n" + many(40, splicing),
		}, bytes},
		"replacements in unusual case": {map[string]string{
			"x.yaml":             growing,
			"kustomization.yaml": "resources: [x.yaml]\nreplacements:\n" + many(40, strings.NewReplacer("source", "Source", "targets", "TARGETS", "fieldPath", "FieldPath", "options", "Options").Replace(splicing)),
		}, bytes},
		"replacements by turns": {map[string]string{
			"x.yaml":             growing,
			"kustomization.yaml": "resources: [x.yaml]\nreplacements:\n" + many(40, splicing+strings.Replace(splicing, "fieldPaths: [data.b]", "fieldPaths: [data.c]", 1)),
		}, bytes},
		"replacements in components": {map[string]string{
			"x.yaml": growing, "kustomization.yaml": "resources: [x.yaml]\ncomponents:\n" + many(40, "- c%d\n"),
		}, bytes},
		"a large value into many objects": {map[string]string{
			"x.yaml":             many(400, configMaps) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: " + strings.Repeat("x", 1<<20) + "}\n",
			"kustomization.yaml": "resources: [x.yaml]\nreplacements:\n- source: {kind: Secret, name: s, fieldPath: stringData.a}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]\n",
		}, bytes},
		"vars": {map[string]string{
			"x.yaml":             many(400, strings.Replace(configMaps, "xxxxxxxxxx", "$(A)", 1)) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: " + strings.Repeat("x", 1<<20) + "}\n",
			"kustomization.yaml": "resources: [x.yaml]\nvars: [{name: A, objref: {apiVersion: v1, kind: Secret, name: s}, fieldref: {fieldpath: stringData.a}}]\n",
		}, bytes},
		"many objects, many patches": {map[string]string{
			"x.yaml":             many(500, deployments),
			"kustomization.yaml": "resources: [x.yaml]\npatches:\n" + strings.Repeat(`- {target: {kind: Deployment}, patch: '[{"op": "add", "path": "/spec/replicas", "value": 3}]'}`+"\n", 500),
		}, patching},
		"many objects, many patches that rename them": {map[string]string{
			"x.yaml":             many(500, deployments),
			"kustomization.yaml": "resources: [x.yaml]\npatches:\n" + strings.Repeat(`- {target: {kind: Other}, patch: '[{"op": "replace", "path": "/kind", "value": "Other"}]'}`+"\n", 500),
		}, patching},
		"many objects, many merges": {map[string]string{
			"x.yaml":             many(500, deployments),
			"kustomization.yaml": "resources: [x.yaml]\npatches:\n" + strings.Repeat("- {target: {kind: Deployment}, patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 3}}'}\n", 500),
		}, merging},
		"many objects, many images": {map[string]string{
			"x.yaml":             many(2000, deployments),
			"kustomization.yaml": "resources: [x.yaml]\nimages:\n" + many(500, "- {name: i%d, newTag: x}\n"),
		}, steps + "images"},
		"many objects, long labels": {map[string]string{
			"x.yaml":             many(2000, configMaps),
			"kustomization.yaml": "resources: [x.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 100_000) + "}\n",
		}, bytes},
		"a component edits what is around it": {map[string]string{
			"x.yaml": many(500, deployments), "kustomization.yaml": "resources: [x.yaml]\ncomponents: [c]\n",
			"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n" + strings.Repeat(`- {target: {kind: Deployment}, patch: '[{"op": "add", "path": "/spec/replicas", "value": 3}]'}`+"\n", 500),
		}, "c/kustomization.yaml:1: kustomization " + patching},
		"an environment file of many keys": {map[string]string{
			"e.env": many(150_000, "K%d=v\n"), "kustomization.yaml": "configMapGenerator: [{name: a, envs: [e.env]}]\n",
		}, steps + "keys of generated objects"},
		"many references among many": {map[string]string{
			"x.yaml":             many(4500, configMaps),
			"y.yaml":             "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  volumes:\n" + many(12_000, "  - {name: v%d, configMap: {name: c%d}}\n"),
			"kustomization.yaml": "resources: [x.yaml, y.yaml]\n",
		}, steps + "references by name"},
		"many configured references": {map[string]string{
			"x.yaml":             many(4000, configMaps),
			"c.yaml":             "nameReference:\n- kind: ConfigMap\n  version: v1\n  fieldSpecs:\n" + many(8000, "  - {kind: ConfigMap, path: spec/x%d/name}\n"),
			"kustomization.yaml": "resources: [x.yaml]\nconfigurations: [c.yaml]\n",
		}, steps + "configurations"},
		"a merge of long lists": {map[string]string{
			"x.yaml":             self + many(6000, "{name: c%d, image: a},") + "]}}}\n",
			"p.yaml":             self + many(6000, "{name: c%d, image: b},") + "]}}}\n",
			"kustomization.yaml": "resources: [x.yaml]\npatches: [{path: p.yaml}]\n",
		}, merging},
		"merges that make a list long": {map[string]string{
			"x.yaml":             self + "]}}}\n",
			"kustomization.yaml": "resources: [x.yaml]\npatchesStrategicMerge:\n" + many(40, "- p%d.yaml\n"),
		}, merging},
		"one large file, many times": {map[string]string{
			"big.txt":            strings.Repeat("x", 3_900_000),
			"kustomization.yaml": "configMapGenerator:\n" + many(40, "- {name: a%d, files: [big.txt]}\n"),
		}, bytes},
		"one large resource, many times": {map[string]string{
			"b/x.yaml": strings.Replace(growing, "xxxxxxxxxx", strings.Repeat("x", 3_900_000), 1), "b/kustomization.yaml": "resources: [x.yaml]\n",
			"kustomization.yaml": "resources:\n" + many(40, "- o%d\n"),
		}, bytes},
	} {
		switch name {
		case "replacements in components":
			for i := range 40 {
				test.files[fmt.Sprintf("c%d/kustomization.yaml", i)] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplacements:\n" + splicing
			}
		case "merges that make a list long":
			for i := range 40 {
				test.files[fmt.Sprintf("p%d.yaml", i)] = self + many(500, fmt.Sprintf("{name: c%d-%%d, image: b},", i)) + "]}}}\n"
			}
		case "one large resource, many times":
			for i := range 40 {
				test.files[fmt.Sprintf("o%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: o%d-\nresources: [../b]\n", i)
			}
		}

		t.Run(name, func(t *testing.T) { wrong(t, treeOf(test.files), test.want) })
	}
}

// A02: copies that double what they copy are stopped by the bytes that they add.
func TestA2CopiesThatDouble(t *testing.T) {
	patch := "[" + strings.TrimSuffix(strings.Repeat(copying, 40), ",") + "]"
	for name, kustomization := range map[string]string{
		"patches":         "resources: [x.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '" + patch + "'}]\n",
		"patchesJson6902": "resources: [x.yaml]\npatchesJson6902: [{target: {version: v1, kind: ConfigMap, name: x}, patch: '" + patch + "'}]\n",
		"a plugin":        "resources: [x.yaml]\ntransformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  target: {kind: ConfigMap}\n  patch: '" + patch + "'\n",
	} {
		t.Run(name, func(t *testing.T) {
			wrong(t, treeOf(map[string]string{"x.yaml": growing, "kustomization.yaml": kustomization}), "kustomize: ")
		})
	}

	each := "resources: [x.yaml]\npatches:\n" + strings.Repeat("- {target: {kind: ConfigMap}, patch: '["+strings.TrimSuffix(copying, ",")+"]'}\n", 200)
	wrong(t, treeOf(map[string]string{"x.yaml": growing, "kustomization.yaml": each}), "reads, generates and copies more than")
}

// A02: what makes kustomize recurse or loop for ever, or exit, is refused.
func TestA2NothingEndsTheProcess(t *testing.T) {
	cycle := `{"a.Foo": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "spec": {"$ref": "a.Spec"}}}}, "a.Spec": {"Schema": {"properties": {"x": {"$ref": "a.Spec"}}}}}`
	loop := `{"definitions": {"v1.Foo": {"properties": {"spec": {"items": {"$ref": "#/definitions/A"}}}, "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Foo", "version": "v1"}]}, "A": {"$ref": "#/definitions/B"}, "B": {"$ref": "#/definitions/A"}}}`
	creating := func(path string) string {
		return "resources: [x.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: x, fieldPath: data.b}\n  targets: [{select: {kind: ConfigMap, name: x}, fieldPaths: ['" + path + "'], options: {create: true}}]\n"
	}

	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"definitions that refer to each other":  {map[string]string{"kustomization.yaml": "resources: [x.yaml]\ncrds: [c.json]\n", "c.json": cycle}, "the definitions refer to each other without end"},
		"a schema that refers to itself":        {map[string]string{"kustomization.yaml": "resources: [x.yaml]\nopenapi: {path: s.json}\n", "s.json": loop}, "a $ref of the schema leads back to itself"},
		"a selector that does not match itself": {map[string]string{"kustomization.yaml": creating("spec.list.[name=a+b].value")}, "cannot be created"},
		"a wildcard after a selector":           {map[string]string{"kustomization.yaml": creating("spec.list.[name=a].b.*")}, "cannot be created"},
		"a field in an empty document in a field": {map[string]string{
			"kustomization.yaml": creating("spec.list.[name=a].b.c"),
			"x.yaml":             growing + "spec: {list: [{name: a, b: ''}]}\n",
		}, ""},
		"a key without a name": {map[string]string{
			"kustomization.yaml": "resources: [y.yaml]\nconfigMapGenerator: [{name: m, behavior: merge, literals: [a=b]}]\n",
			"y.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {'': x}\n",
		}, "kustomize cannot build this"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.files["x.yaml"] == "" {
				test.files["x.yaml"] = growing
			}
			if test.want != "" {
				wrong(t, treeOf(test.files), test.want)
			} else if b, err := render.New().Render(treeOf(test.files)); err == nil && b.Snapshot.Templates.Len() != 1 {
				t.Errorf("%d templates", b.Snapshot.Templates.Len())
			}
		})
	}
}

// What real repositories ask for is far below the limits: a list item that is created,
// the replacements of a controller's webhooks, an application in many environments.
func TestUsualKustomizationsPass(t *testing.T) {
	files := map[string]string{
		"base/x.yaml":             many(300, deployments) + many(300, configMaps),
		"base/kustomization.yaml": "resources: [x.yaml]\ncommonLabels: {app: a}\nimages:\n" + many(20, "- {name: i%d, newTag: x}\n"),
		"prod/kustomization.yaml": "resources: [../base]\nnamePrefix: p-\npatches:\n" +
			many(60, "- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: d%d}, spec: {replicas: 3}}'\n") +
			`- {target: {kind: Deployment, name: d1}, patch: '[{"op": "copy", "from": "/spec/template/spec/containers/0", "path": "/spec/template/spec/containers/-"}]'}` + "\n" +
			"replacements:\n" + many(20, "- source: {kind: ConfigMap, name: c%d}\n  targets:\n  - {select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.[name=a].env.[name=E%d].value'], options: {create: true}}\n"),
	}
	b, err := render.New().Render(treeOf(files))
	if err != nil {
		t.Fatal(err)
	}
	env := b.Snapshot.Templates.At("default/Deployment.apps/p-d7").Object()["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["env"].([]any)
	if len(env) != 20 {
		t.Errorf("%d variables", len(env))
	}
}

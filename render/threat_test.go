// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/render"
)

func wrong(t *testing.T, fsys fstest.MapFS, want string) {
	t.Helper()
	_, err := render.New().Render(fsys)
	var problems render.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func file(name, content string) fstest.MapFS {
	return fstest.MapFS{name: {Data: []byte(content), Mode: 0o644}}
}

const small = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

func TestT15LargeFile(t *testing.T) {
	wrong(t, file("a.yaml", small+"# "+strings.Repeat("x", 4<<20)), "a.yaml: file of")
	deep := strings.Repeat("d/", 300) + "a.yaml"
	wrong(t, file(deep, small), "directories deep")
}

func TestT16Encodings(t *testing.T) {
	wrong(t, file("a.yaml", "\xff\xfea\x00"), "a.yaml: text is UTF-16")
	wrong(t, file("a.yaml", "a: \xff"), "a.yaml: text is not UTF-8")
	wrong(t, fstest.MapFS{
		"k/kustomization.yaml": {Data: []byte("resources: [x.yaml]")},
		"k/x.yaml":             {Data: []byte("\xfe\xff\x00a")},
	}, "k/x.yaml: text is UTF-16")

	crlf := "\xef\xbb\xbf" + strings.ReplaceAll(small+"---\n"+strings.Replace(small, "x", "other", 1), "\n", "\r\n")
	for name, fsys := range map[string]fstest.MapFS{
		"plain":     file("a.yaml", crlf),
		"kustomize": {"kustomization.yaml": {Data: []byte("\xef\xbb\xbfresources:\r\n- a.yaml\r\n")}, "a.yaml": {Data: []byte(crlf)}},
	} {
		b, err := render.New().Render(fsys)
		if err != nil || b.Snapshot.Templates.Len() != 2 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o := b.Snapshot.Templates.At("default/ConfigMap./other").Origin; o.String() != "a.yaml:5" {
			t.Errorf("%s: the second document is at %s", name, o)
		}
	}
}

func TestT19AliasBombs(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString(small + "data:\n  a0: &a0 [" + strings.Repeat("lol,", 9) + "lol]\n")

	for i := range 9 {
		fmt.Fprintf(&bomb, "  a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}

	for name, text := range map[string]string{
		"aliases":         bomb.String(),
		"nesting":         small + "data: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
		"nested mappings": small + "data: " + strings.Repeat("{a: ", 20000) + strings.Repeat("}", 20000),
		"recursive merge": small + "data: &a\n  <<: *a\n",
		"recursive alias": small + "data: &a [*a]\n",
	} {
		for kind, fsys := range map[string]fstest.MapFS{
			"plain":    file("a.yaml", text),
			"resource": {"kustomization.yaml": {Data: []byte("resources: [a.yaml]")}, "a.yaml": {Data: []byte(text)}},
			"patch":    {"kustomization.yaml": {Data: []byte("resources: [x.yaml]\npatches: [{path: a.yaml}]")}, "x.yaml": {Data: []byte(small)}, "a.yaml": {Data: []byte(text)}},
			"inline":   {"kustomization.yaml": {Data: []byte("resources: [x.yaml]\npatches:\n- patch: |\n    " + strings.ReplaceAll(text, "\n", "\n    "))}, "x.yaml": {Data: []byte(small)}},
			"settings": {"kustomization.yaml": {Data: []byte(strings.Replace(text, small, "resources: [x.yaml]\n", 1))}, "x.yaml": {Data: []byte(small)}},
		} {
			begin := time.Now()
			_, err := render.New().Render(fsys)
			if took := time.Since(begin); err == nil || took > 5*time.Second {
				t.Errorf("%s, %s: %v after %v", name, kind, err, took)
			}
		}
	}
}

// No socket is opened and no program runs, whatever a kustomization refers to.
func TestT28NothingIsFetchedOrRun(t *testing.T) {
	bin, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	for _, program := range []string{"git", "helm", "docker", "sh"} {
		script := "#!/bin/bash\necho " + program + " \"$@\" >> " + mark + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	t.Setenv("PATH", bin)
	old := http.DefaultTransport
	http.DefaultTransport = refuse(func(url string) { t.Errorf("fetches %s", url) })
	defer func() { http.DefaultTransport = old }()

	pieces := []string{
		"https://", "http://", "HTTP://", "ssh://", "file://", "git::", "git@", "me@", "github.com/", "GitHub.com:", "gh:", "example.com", "127.0.0.1:1", "169.254.169.254",
		"/", "//", ":", "./", "../", ".git", "_git/", "org", "repo", "?ref=v1", "?", "=", "k=", "x.yaml", "base", " ", "#",
	}

	templates := []string{
		"resources: [%q]", "bases: [%q]", "components: [%q]", "crds: [%q]", "configurations: [%q]", "generators: [%q]", "transformers: [%q]", "validators: [%q]",
		"openapi: {path: %q}", "patches: [{path: %q}]", "patchesJson6902: [{path: %q, target: {kind: ConfigMap, name: x, version: v1}}]", "patchesStrategicMerge: [%q]", "replacements: [{path: %q}]",
		"configMapGenerator: [{name: a, files: [%q]}]", "configMapGenerator: [{name: a, envs: [%q]}]", "secretGenerator: [{name: a, env: %q}]", "ConfigMapGenerator: [{name: a, Files: [%q]}]",
		"generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: g}, name: g, files: [%q]}']",
		"transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: g}, Path: %q}']",
		"transformers: ['{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: g}, paths: [%q]}']",
		"transformers: ['{apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: g}, replacements: [{path: %q}]}']",
		"generators: ['{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: g}, name: g, repo: %q}']",
		"generators: ['{apiVersion: v1, kind: Exec, metadata: {name: g, annotations: {config.kubernetes.io/function: \"exec: {path: %s}\"}}}']",
		"helmCharts: [{name: a, repo: %q}]",
	}

	rapid.Check(t, func(rt *rapid.T) {
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(rt, "pieces"), "")
		template := rapid.SampledFrom(templates).Draw(rt, "template")
		fsys := fstest.MapFS{
			"app/kustomization.yaml":                     {Data: []byte("namePrefix: a-\n" + fmt.Sprintf(template, name))},
			"app/x.yaml":                                 {Data: []byte(small)},
			"app/base/kustomization.yaml":                {Data: []byte("resources: [x.yaml]")},
			"app/base/x.yaml":                            {Data: []byte(small)},
			"app/github.com/org/repo/kustomization.yaml": {Data: []byte("resources: [x.yaml]")},
			"app/github.com/org/repo/x.yaml":             {Data: []byte(small)},
			"app/git@example.com:org/kustomization.yaml": {Data: []byte("resources: [../x.yaml]")},
			"app/https:/example.com/kustomization.yaml":  {Data: []byte("resources: [../../x.yaml]")},
		}

		_, _ = render.New().Render(fsys)

		if b, err := os.ReadFile(mark); err == nil {
			rt.Fatalf("%s %q runs %s", template, name, b)
		}
	})
}

type refuse func(url string)

func (f refuse) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r.URL.String())
	return nil, errors.New("refused")
}

func TestT30Explosions(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 20 {
		fsys[fmt.Sprintf("l%d/kustomization.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [a, b]\n")}
		for _, half := range []string{"a", "b"} {
			fsys[fmt.Sprintf("l%d/%s/kustomization.yaml", i, half)] = &fstest.MapFile{Data: fmt.Appendf(nil, "namePrefix: %s-\nresources: [../../l%d]\n", half, i+1)}
		}
	}

	fsys["l20/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [x.yaml]")}
	fsys["l20/x.yaml"] = &fstest.MapFile{Data: []byte(small)}
	begin := time.Now()
	wrong(t, fsys, "uses more than 10000 kustomizations")

	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// Work that would keep kustomize busy for hours is counted before it starts.
func TestT30Crowds(t *testing.T) {
	crowd := func(n int) *fstest.MapFile {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
		}
		return &fstest.MapFile{Data: []byte(b.String())}
	}

	list := "apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", 5001)
	generator := "configMapGenerator:\n" + strings.Repeat("- {name: a, literals: [a=b]}\n", 5001)
	chain := fstest.MapFS{"l0/x.yaml": crowd(1000), "l0/kustomization.yaml": {Data: []byte("resources: [x.yaml]\n")}}
	for i := range 60 {
		chain[fmt.Sprintf("l%d/kustomization.yaml", i+1)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../l%d]\n", i)}
	}

	const many = "kustomization makes more than 5000 objects, and kustomize compares each with every other: split it, or move what does not need kustomize into plain files outside"
	for name, test := range map[string]struct {
		fsys fstest.MapFS
		want string
	}{
		"a file":      {fstest.MapFS{"a/kustomization.yaml": {Data: []byte("resources: [x.yaml]\n")}, "a/x.yaml": crowd(5001)}, "a/kustomization.yaml:1: " + many},
		"a list":      {fstest.MapFS{"a/kustomization.yaml": {Data: []byte("resources: [x.yaml]\n")}, "a/x.yaml": {Data: []byte(list)}}, "a/kustomization.yaml:1: " + many},
		"a generator": {fstest.MapFS{"a/kustomization.yaml": {Data: []byte(generator)}}, "a/kustomization.yaml:1: " + many},
		"a base, told of where it is": {fstest.MapFS{
			"a/kustomization.yaml": {Data: []byte("resources: [../b]\n")},
			"b/kustomization.yaml": {Data: []byte("resources: [x.yaml]\n")}, "b/x.yaml": crowd(5001),
		}, "b/kustomization.yaml:1: " + many},
		"a base that is used twice": {fstest.MapFS{
			"a/kustomization.yaml":   {Data: []byte("resources: [p, q]\n")},
			"a/p/kustomization.yaml": {Data: []byte("namePrefix: p-\nresources: [../../b]\n")},
			"a/q/kustomization.yaml": {Data: []byte("namePrefix: q-\nresources: [../../b]\n")},
			"b/kustomization.yaml":   {Data: []byte("resources: [x.yaml]\n")}, "b/x.yaml": crowd(2501),
		}, "a/kustomization.yaml:1: " + many},
		"a long way": {chain, "l50/kustomization.yaml:1: kustomization passes its 1000 objects through too many others, in each of which kustomize compares every one with every other: split it, or move what does not need kustomize into plain files outside"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.New().Render(test.fsys)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: web
        image: web:1
      - name: side
        image: side:1
`

const patched = `resources: [web.yaml]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: b}]}]}}}
`

// merging is a unit whose patch needs the schema of Deployments.
func merging(fsys fstest.MapFS, dir, extra string) {
	fsys[dir+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(patched + "namespace: " + dir + "\n" + extra)}
	fsys[dir+"/web.yaml"] = &fstest.MapFile{Data: []byte(deployment)}
}

func TestT32PanicIsAnErrorOfItsUnit(t *testing.T) {
	fsys := fstest.MapFS{}
	merging(fsys, "a", "openapi: {path: schema.json}\n")
	merging(fsys, "b", "")
	fsys["a/schema.json"] = &fstest.MapFile{Data: []byte(`{"definitions": 7}`)}
	r := render.New()
	_, err := r.Render(fsys)
	if err == nil || err.Error() != "a/kustomization.yaml: kustomize cannot build this, and does not say why" {
		t.Errorf("got %v", err)
	}

	delete(fsys, "a/kustomization.yaml")
	delete(fsys, "a/schema.json")

	if b, err := r.Render(fsys); err != nil || len(b.Snapshot.Templates.At("b/Deployment.apps/web").Object()["spec"].(map[string]any)) == 0 {
		t.Errorf("the next tree: %v", err)
	}
}

// A schema of one unit does not affect any other, in any order.
func TestT33UnitOrderDoesNotMatter(t *testing.T) {
	schemas := map[string]string{
		"a": "",
		"b": "openapi: {path: schema.json}\n",
		"c": "",
		"d": "openapi: {version: v1.35.0}\n",
		"e": "",
	}

	alone := map[string]string{}
	unit := func(fsys fstest.MapFS, as, like string) {
		merging(fsys, as, schemas[like])
		fsys[as+"/schema.json"] = &fstest.MapFile{Data: []byte(`{"definitions": {"x": {"type": "object"}}}`)}
		fsys[".fairleadignore"] = &fstest.MapFile{Data: []byte("schema.json\n")}
	}

	for like := range schemas {
		fsys := fstest.MapFS{}
		unit(fsys, "u", like)
		b, err := render.New().Render(fsys)
		if err != nil {
			if like == "d" && strings.Contains(err.Error(), "not built in") {
				delete(schemas, "d") // this version of kustomize has other versions
				continue
			}
			t.Fatal(like, err)
		}

		alone[like] = compact(b.Snapshot.Templates.At("u/Deployment.apps/web").Object()["spec"])
	}

	if alone["a"] == alone["b"] {
		t.Fatal("the schema makes no difference, so this test proves nothing")
	}

	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(func(yield func(string) bool) {
			for like := range schemas {
				if !yield(like) {
					return
				}
			}
		})), 1, 6).Draw(rt, "order")

		fsys := fstest.MapFS{}
		for i, like := range order {
			unit(fsys, fmt.Sprintf("u%d", i), like)
		}

		b, err := render.New().Render(fsys)
		if err != nil {
			rt.Fatal(err)
		}

		for i, like := range order {
			if got := compact(b.Snapshot.Templates.At(fmt.Sprintf("u%d/Deployment.apps/web", i)).Object()["spec"]); got != alone[like] {
				rt.Fatalf("unit %d of %v gives\n%s, alone\n%s", i, order, got, alone[like])
			}
		}
	})
}

func TestT34BuildsInParallel(t *testing.T) {
	fsys := fstest.MapFS{}
	merging(fsys, "a", "")
	merging(fsys, "b", "openapi: {path: schema.json}\n")
	fsys["b/schema.json"] = &fstest.MapFile{Data: []byte(`{"definitions": {"x": {"type": "object"}}}`)}
	fsys["plain.yaml"] = &fstest.MapFile{Data: []byte(small)}
	one := render.New()
	first, err := one.Render(fsys)
	if err != nil {
		t.Fatal(err)
	}

	want := snapshot(first.Snapshot)
	var all sync.WaitGroup
	for i := range 4 * runtime.NumCPU() {
		all.Go(func() {
			r := one // half of them share a Renderer
			if i%2 == 0 {
				r = render.New()
			}

			for range 5 {
				b, err := r.Render(fsys)
				if err == nil {
					b, err = r.Next(b, fsys, []string{"a/web.yaml", "plain.yaml"})
				}
				if err != nil || snapshot(b.Snapshot) != want {
					t.Errorf("torn: %v", err)
				}
			}
		})
	}

	all.Wait()
}

func TestT12SubmoduleThatIsNeeded(t *testing.T) {
	wrong(t, file("k/kustomization.yaml", "resources: [../lib/base]"), "k/kustomization.yaml:1: resources ../lib/base: no such file or directory")
}

func TestT26UnusableQuantity(t *testing.T) {
	cluster := "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: a}\n"
	wrong(t, file("a.yaml", cluster+"spec: {syncMode: Push}\nstatus: {resourceSummary: {allocatable: {cpu: '1e-99999999'}}}\n"),
		"a.yaml:5: status.resourceSummary contains a value that is not a usable quantity")
	wrong(t, file("a.yaml", cluster+"spec: {syncMode: Push, resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: '1e99999999'}]}]}\n"),
		"a.yaml:4: spec.resourceModels contains a value that is not a usable quantity")
}

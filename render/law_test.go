// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/render"
)

var (
	lawDirs  = []string{".", "a", "a/b", "a/b/c", "d", "d/e", ".h", "d/.h"}
	lawFiles = []string{"x.yaml", "y.yaml", "z.json", "conf.txt", "fairlead.yaml", "kustomization.yaml", "Kustomization", ".fairleadignore", "k"}
)

// content draws content for a file of that name, so that most trees are valid
// and some are not.
func content(rt *rapid.T, name string) string {
	manifest := rapid.Custom(func(rt *rapid.T) string {
		name := rapid.SampledFrom([]string{"ma", "na", "oa", "pa", "qa", "ra"}).Draw(rt, "name")
		kind := rapid.SampledFrom([]string{
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {v: '1'}\n",
			"# moved down\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n",
			"apiVersion: v1\nkind: Event\nmetadata: {name: %s}\n",
			"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: %s}\n",
			"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: %s, namespace: shop}\n",
			"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {syncMode: Push}\n",
			"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: %s}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}\n",
		}).Draw(rt, "kind")
		return fmt.Sprintf(kind, name)
	})

	switch name {
	case "kustomization.yaml", "Kustomization":
		return rapid.SampledFrom([]string{
			"resources: [x.yaml]\n", "resources: [y.yaml]\nnamePrefix: p-\n", "resources: [../a]\n", "resources: [b]\nnameSuffix: -s\n", "resources: [../b/c]\n", "resources: [../d/.h]\n",
			"resources: [e, x.yaml]\n", "namePrefix: q-\nresources: [x.yaml]\n",
			"configMapGenerator:\n- name: gen\n  files: [conf.txt]\n", "configMapGenerator:\n- name: gen\n  files: [../conf.txt]\n",
			"resources: [k]\nnameSuffix: -k\n", "kind: Component\nresources: [x.yaml]\n", "components: [b]\n",
		}).Draw(rt, "kustomization")
	case ".fairleadignore":
		return rapid.SampledFrom([]string{"x.yaml\n", "b/\n", "/y.yaml\n", "*\n!x.yaml\n", "kustomization.yaml\n", ""}).Draw(rt, "ignore")
	case "fairlead.yaml":
		return rapid.SampledFrom([]string{
			"apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 1}\n", "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 2}\n",
		}).Draw(rt, "settings")
	case "conf.txt":
		return rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "conf")
	case "z.json":
		return rapid.SampledFrom([]string{
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"c"},"spec":{"group":"example.com","names":{"kind":"Thing"},"scope":"Cluster"}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"c"},"spec":{"group":"example.com","names":{"kind":"Thing"},"scope":"Namespaced"}}`,
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"l"}}]}`,
			`{`,
		}).Draw(rt, "json")
	}

	return manifest.Draw(rt, "manifest")
}

// Whatever the edits, Next equals Render, renders exactly the affected units, and
// shares everything that is equal. What a refused tree has rendered is not rendered
// again (R06).
func TestNextEqualsRender(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := render.New()
		now, base := fstest.MapFS{}, fstest.MapFS{}
		prev, err := r.Render(now)
		if err != nil {
			rt.Fatal(err)
		}

		again := false // the last tree was refused
		for range rapid.IntRange(1, 12).Draw(rt, "commits") {
			now = maps.Clone(now)
			for range rapid.IntRange(1, 4).Draw(rt, "edits") {
				edit(rt, now)
			}

			next, err := r.Next(prev, now, differ(base, now))
			whole, wrong := render.New().Render(now)
			if (err == nil) != (wrong == nil) {
				rt.Fatalf("Next says %v, Render says %v", err, wrong)
			}

			if err != nil {
				refused++
				again = true
				if err.Error() != wrong.Error() {
					rt.Fatalf("Next says\n%v\nRender says\n%v", err, wrong)
				}
				continue
			}

			accepted++
			if got, want := snapshot(next.Snapshot), snapshot(whole.Snapshot); got != want {
				rt.Fatalf("Next gives\n%s\nRender gives\n%s", got, want)
			}
			if want := next.Affected(prev, now); next.Renders > want || !again && next.Renders < want {
				rt.Fatalf("%d units rendered, %d were affected", next.Renders, want)
			}
			again = false

			shared(rt, prev.Snapshot.Templates, next.Snapshot.Templates)
			shared(rt, prev.Snapshot.Policies, next.Snapshot.Policies)
			shared(rt, prev.Snapshot.Clusters, next.Snapshot.Clusters)
			shared(rt, prev.Snapshot.Units, next.Snapshot.Units)
			shared(rt, prev.Snapshot.Findings, next.Snapshot.Findings)
			prev, base = next, now
		}
	})

	t.Logf("%d trees accepted, %d refused", accepted, refused)
}

// Two Renderers that render the same line of trees have one copy of what they render, if
// one takes the units of the other, which is ahead. What it renders is what it would
// render alone.
func TestLike(t *testing.T) {
	taken, rendered := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var trees []fstest.MapFS
		var builds []*render.Build // of the first one
		first, now := render.New(), fstest.MapFS{}
		prev, err := first.Render(now)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "commits") {
			tree := maps.Clone(now)
			for range rapid.IntRange(1, 4).Draw(rt, "edits") {
				edit(rt, tree)
			}
			next, err := first.Next(prev, tree, differ(now, tree))
			if err != nil {
				continue
			}
			trees, builds = append(trees, tree), append(builds, next)
			prev, now = next, tree
		}

		if len(trees) == 0 {
			return
		}
		at := rapid.IntRange(0, len(builds)-1).Draw(rt, "like")
		second, alone := render.New(), render.New()
		second.Like(builds[at])
		var mine, its *render.Build
		var before fstest.MapFS
		for i, tree := range trees {
			next, err := second.Next(mine, tree, differ(before, tree))
			want, wrong := alone.Next(its, tree, differ(before, tree))
			if err != nil || wrong != nil {
				rt.Fatalf("with another's units: %v; alone: %v", err, wrong)
			}
			if got, want := snapshot(next.Snapshot), snapshot(want.Snapshot); got != want {
				rt.Fatalf("with another's units\n%s\nalone\n%s", got, want)
			}

			for c := range ordered.Diff(builds[at].Snapshot.Templates, next.Snapshot.Templates) {
				// Of a kind that the tree defines, what another unit says is written into a copy.
				if c.Had && c.Has && c.After.Group != "example.com" && reflect.DeepEqual(c.Before, c.After) {
					rt.Fatalf("%s is a copy", c.Key)
				}
			}
			shared(rt, builds[at].Snapshot.Policies, next.Snapshot.Policies)
			if i == at && next.Renders > 0 {
				rt.Fatalf("%d units rendered of a tree whose units are known", next.Renders)
			}
			rendered += next.Renders
			taken += want.Renders - next.Renders
			mine, its, before = next, want, tree
		}
	})

	t.Logf("%d units taken, %d rendered", taken, rendered)
}

func edit(rt *rapid.T, fsys fstest.MapFS) {
	dir, file := rapid.SampledFrom(lawDirs).Draw(rt, "dir"), rapid.SampledFrom(lawFiles).Draw(rt, "file")
	name := dir + "/" + file
	if dir == "." {
		name = file
	}

	if names := slices.Sorted(maps.Keys(fsys)); len(names) > 0 && rapid.IntRange(0, 3).Draw(rt, "remove") == 0 {
		delete(fsys, rapid.SampledFrom(names).Draw(rt, "removed"))
		return
	}

	if file == "fairlead.yaml" {
		name = file
	}

	fsys[name] = &fstest.MapFile{Data: []byte(content(rt, file)), Mode: 0o644}
}

func differ(a, b fstest.MapFS) (changed []string) {
	for name, f := range a {
		if g := b[name]; g == nil || string(g.Data) != string(f.Data) || g.Mode != f.Mode {
			changed = append(changed, name)
		}
	}

	for name := range b {
		if a[name] == nil {
			changed = append(changed, name)
		}
	}

	slices.Sort(changed)
	return changed
}

func shared[V comparable](rt *rapid.T, before, after ordered.Map[V]) {
	for c := range ordered.Diff(before, after) {
		if c.Had && c.Has && reflect.DeepEqual(c.Before, c.After) {
			rt.Fatalf("%s is a copy", c.Key)
		}
	}
}

func TestNextSharesAndCountsUnits(t *testing.T) {
	fsys := files(`
-- base/kustomization.yaml --
resources: [app.yaml]
-- base/app.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
-- eu/kustomization.yaml --
resources: [../base]
namespace: eu
-- us/kustomization.yaml --
resources: [../base]
namespace: us
-- other/kustomization.yaml --
resources: [x.yaml]
-- other/x.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
-- plain.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second}
`)

	r := render.New()
	first, err := r.Render(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if first.Renders != 4 {
		t.Errorf("%d units rendered, want 4", first.Renders)
	}

	for name, c := range map[string]struct {
		path, content string
		renders, diff int
	}{
		"a shared base renders both roots":       {"base/app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: b}\n", 2, 2},
		"a file nobody reads renders nothing":    {"base/README.md", "hello", 0, 0},
		"a comment renders, and changes nothing": {"other/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n# more\n", 1, 0},
		"one document of a file":                 {"plain.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second, labels: {a: b}}\n", 1, 1},
		"a new file":                             {"new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n", 1, 1},
		"another overlay":                        {"asia/kustomization.yaml", "resources: [../base]\nnamespace: asia\n", 1, 1},
		"an overlay's own edit":                  {"eu/kustomization.yaml", "resources: [../base]\nnamespace: eu\nnamePrefix: x-\n", 1, 2},
	} {
		now := maps.Clone(fsys)
		now[c.path] = &fstest.MapFile{Data: []byte(c.content), Mode: 0o644}
		next, err := r.Next(first, now, []string{c.path})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		diff := 0
		for range ordered.Diff(first.Snapshot.Templates, next.Snapshot.Templates) {
			diff++
		}

		if next.Renders != c.renders || diff != c.diff {
			t.Errorf("%s: %d units rendered and %d templates differ, want %d and %d", name, next.Renders, diff, c.renders, c.diff)
		}
	}

	again, err := r.Next(first, fsys, nil)
	if err != nil || again.Renders != 0 || !again.Snapshot.Templates.Same(first.Snapshot.Templates) {
		t.Errorf("nothing changed: %d renders, %v", again.Renders, err)
	}
}

// A Render after a Render reuses what it can of the first build.
func TestRenderIsMemoisedByContent(t *testing.T) {
	fsys := files("-- k/kustomization.yaml --\nresources: [x.yaml]\n-- k/x.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n-- y.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: why}\n")
	r := render.New()
	first, err := r.Render(fsys)
	if err != nil {
		t.Fatal(err)
	}

	now := maps.Clone(fsys)
	now["y.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\n"), Mode: 0o644}
	second, err := r.Render(fs.FS(now))
	if err != nil || second.Renders != 1 || second.Snapshot.Templates.At("default/ConfigMap./x") != first.Snapshot.Templates.At("default/ConfigMap./x") {
		t.Errorf("%d renders, %v", second.Renders, err)
	}
}

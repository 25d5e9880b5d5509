// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
)

// folded is the state after one commit of these files.
func folded(t *testing.T, before propagate.State, files map[string]string) propagate.State {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	build, err := render.New().Render(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return propagate.Step(before, propagate.Commit{Hash: fmt.Sprint("c", len(files)), Snapshot: build.Snapshot})
}

func times(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

const (
	clustersOf  = "---\napiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m%d}\nspec: {syncMode: Push}\n"
	templatesOf = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n"
	everywhere  = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {}\n"
)

// A03: templates times clusters are counted while works are made, and the commit is
// refused; the next one is folded on the state before it.
func TestA3WorksAreCounted(t *testing.T) {
	files := map[string]string{"clusters.yaml": times(2000, clustersOf), "policy.yaml": everywhere, "c.yaml": times(1, templatesOf)}
	before := folded(t, propagate.State{}, files)
	if before.Refusal != nil || before.Works != 2000 {
		t.Fatalf("%d works: %+v", before.Works, before.Refusal)
	}

	files["many.yaml"] = strings.ReplaceAll(times(1200, templatesOf), "name: c", "name: d")
	after := folded(t, before, files)
	if after.Refusal == nil || after.Accepted != before.Accepted || after.Works != 2000 {
		t.Fatalf("it is accepted with %d works", after.Works)
	}
	const want = "[the policies would make more than 2000000 works, one for each template on each of its clusters]"
	if got := fmt.Sprint(after.Refusal.Problems); got != want {
		t.Errorf("got %s", got)
	}
}

// A03: what scripts take is added up over a commit, though each may take what it may.
func TestA3ScriptsAreCounted(t *testing.T) {
	const widgets = "---\napiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: w%d, namespace: default}\nspec: {size: 2}\n"
	files := map[string]string{
		"clusters.yaml": times(2, clustersOf),
		"policy.yaml":   strings.ReplaceAll(everywhere, "{apiVersion: v1, kind: ConfigMap}", "{apiVersion: acme.io/v1, kind: Widget}"),
		"w.yaml":        times(1, widgets),
		"script.yaml": `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: widgets}
spec:
  target: {apiVersion: acme.io/v1, kind: Widget}
  customizations:
    replicaResource:
      luaScript: |
        function GetReplicas(obj)
          local n = 0
          for i = 1, 1000 do n = n + 1 end
          return obj.spec.size, nil
        end
    replicaRevision:
      luaScript: |
        function ReviseReplica(obj, replicas)
          for i = 1, 1000 do obj.spec.size = replicas end
          return obj
        end
`,
	}
	defer propagate.LimitScripts(60_000)()
	before := folded(t, propagate.State{}, files)
	if before.Refusal != nil {
		t.Fatalf("one: %+v", before.Refusal)
	}

	files["more.yaml"] = strings.ReplaceAll(times(20, widgets), "name: w", "name: v")
	after := folded(t, before, files)
	const want = "[the scripts of ResourceInterpreterCustomizations would take more than 60000 steps]"
	if after.Refusal == nil || fmt.Sprint(after.Refusal.Problems) != want || after.Accepted != before.Accepted {
		t.Fatalf("twenty: %+v", after.Refusal)
	}

	// What did not change is not asked again.
	delete(files, "more.yaml")
	files["c.yaml"], files["d.yaml"] = times(1, templatesOf), "# nothing\n"
	if next := folded(t, after, files); next.Refusal != nil {
		t.Errorf("none: %+v", next.Refusal)
	}
}

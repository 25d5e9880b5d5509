// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/propagate"
)

const needsOfSpec = `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: %[1]s}
spec:
  target: {apiVersion: %[2]s, kind: %[1]s}
  customizations:
    dependencyInterpretation:
      luaScript: function GetDependencies(obj) return obj.spec and obj.spec.needs end
`

// Whatever requires what, circles too: one step settles it, and it is as if
// the fleet had been like that from the beginning.
func TestRequirementsHaveOneOutcome(t *testing.T) {
	nodes := []struct{ apiVersion, kind, name string }{
		{"example.io/v1", "Gadget", "g"}, {"example.io/v1", "Gadget", "h"}, {"example.io/v1", "Widget", "w"}, {"example.io/v1", "Widget", "x"},
		{"v1", "ConfigMap", "c"}, {"apps/v1", "Deployment", "d"},
	}
	rapid.Check(t, func(t *rapid.T) {
		tree := map[string]string{}
		for _, c := range []string{"m1", "m2"} {
			tree["c-"+c] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {syncMode: Push}\n", c)
		}
		for _, kind := range []string{"Gadget", "Widget"} {
			tree["k-"+kind] = fmt.Sprintf(needsOfSpec, kind, "example.io/v1")
		}
		if rapid.Bool().Draw(t, "script for ConfigMap") {
			tree["k-ConfigMap"] = fmt.Sprintf(needsOfSpec, "ConfigMap", "v1")
		}
		if rapid.Bool().Draw(t, "script for Deployment") {
			tree["k-Deployment"] = fmt.Sprintf(needsOfSpec, "Deployment", "apps/v1")
		}
		policy := func(i int) {
			n := nodes[i]
			tree["p-"+n.name] = fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: default}
spec:
  propagateDeps: true
  preserveResourcesOnDeletion: %v
  resourceSelectors: [{apiVersion: %s, kind: %s, name: %s}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
  suspension: {dispatchingOnClusters: {clusterNames: [%s]}}
`, n.name, rapid.Bool().Draw(t, "preserve"), n.apiVersion, n.kind, n.name,
				rapid.SampledFrom([]string{"m1", "m2", "m1, m2"}).Draw(t, "where"), rapid.SampledFrom([]string{"", "m1", "m1, m2"}).Draw(t, "held"))
		}
		var claimed []int
		for i, n := range nodes {
			var needs []string
			for _, o := range nodes {
				if rapid.IntRange(0, 2).Draw(t, "needs") == 0 {
					needs = append(needs, fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s}", o.apiVersion, o.kind, o.name))
				}
			}
			tree["t-"+n.name] = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec:\n  needs: [%s]\n", n.apiVersion, n.kind, n.name, strings.Join(needs, ", "))
			if n.kind == "Deployment" {
				tree["t-"+n.name] += "  template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: c}}]}]}}\n"
			}
			if rapid.IntRange(0, 3).Draw(t, "claimed") > 0 {
				claimed = append(claimed, i)
				policy(i)
			}
		}
		var s propagate.State
		for n := range 4 {
			s = propagate.Step(s, confirmed(s, commitOf(t, fmt.Sprint(n), tree)))
			if again := propagate.Step(s, commitOf(t, fmt.Sprint(n), tree)); print(&again, nil) != print(&s, nil) {
				t.Fatalf("settled: step %d of %v\n%s\n%s", n, tree, print(&s, nil), print(&again, nil))
			}
			fresh := propagate.Step(propagate.State{}, commitOf(t, "0", tree))
			if got, want := outcome(&s), outcome(&fresh); got != want {
				t.Fatalf("step %d of %v\n%s\nfrom the beginning\n%s", n, tree, got, want)
			}
			if len(claimed) > 0 {
				policy(rapid.SampledFrom(claimed).Draw(t, "edit"))
			}
		}
	})
}

func commitOf(t *rapid.T, hash string, tree map[string]string) propagate.Commit {
	c := propagate.Commit{Hash: hash}
	if c.Snapshot, c.Problems = read(tree); c.Snapshot == nil {
		t.Fatal(c.Problems)
	}
	return c
}

// outcome is where everything is, and whether it is held and kept there.
func outcome(s *propagate.State) string {
	var b strings.Builder
	for binding := range s.Bindings.Values() {
		fmt.Fprintln(&b, binding.ID)
		for _, w := range binding.Works {
			fmt.Fprintf(&b, "  %s held %v preserve %v\n", w.Cluster, w.Held, w.Preserve)
		}
	}
	return b.String()
}

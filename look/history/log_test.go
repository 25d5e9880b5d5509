// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const logFleet = `-- clusters.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us-1}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us-2}
spec: {syncMode: Push}
-- policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: ConfigMap}]
  placement:
    clusterAffinity: {clusterNames: [eu-1, us-1, us-2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
-- config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {a: "1"}
`

// logLine is a fleet in which a Deployment is scaled, held, updated under the hold and
// released again, a ConfigMap and a cluster leave, and one commit is refused.
func logLine(t *testing.T) *sourcetest.Repo {
	t.Helper()
	web := func(replicas int, image string) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: %d\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: %q}]}\n", replicas, image)
	}
	policy := sourcetest.Files(logFleet)["policy.yaml"]
	g := sourcetest.Txtar(t, logFleet)
	for _, files := range []map[string]string{
		{"web.yaml": web(3, "web:1"), "crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ships.example.com}\nspec: {group: example.com, names: {kind: Ship, plural: ships, singular: ship, shortNames: [sh]}, scope: Namespaced}\n"},
		{"web.yaml": web(5, "web:1")},
		{"policy.yaml": policy + "  suspension: {dispatchingOnClusters: {clusterNames: [us-1, us-2]}}\n"},
		{"web.yaml": web(5, "web:2")},
		{"web.yaml": web(7, "web:3"), "config.yaml": sourcetest.Delete},
		{"policy.yaml": policy + "  suspension: {dispatchingOnClusters: {clusterNames: [us-2]}}\n"},
		{"broken.yaml": "kind: [\n"},
		{"broken.yaml": sourcetest.Delete, "policy.yaml": policy},
		{"clusters.yaml": strings.SplitN(sourcetest.Files(logFleet)["clusters.yaml"], "---\n", 2)[1]},
	} {
		g.Commit("step", files)
	}
	return g
}

// logObjects are those of logLine.
var logObjects = []object.ID{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, {Kind: "ConfigMap", Namespace: "shop", Name: "web"}}

// A log has the same of every object, as of every commit, as a walk of the history up to
// there, although it keeps much less.
func TestLog(t *testing.T) {
	g := logLine(t)
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	states := func() *history.States { return &history.States{Repo: repo, History: history.New(repo, ".")} }
	log := history.NewLog()
	commits, err := states().Commits("", g.Head())
	if err != nil {
		t.Fatal(err)
	}
	var before propagate.State
	if _, err := states().History.Fold(before, commits, func(c *source.Commit, after propagate.State) error {
		log.Step(c, &before, &after)
		before = after
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	for i, c := range commits {
		for _, id := range logObjects {
			asked, err := object.ParseReference([]string{object.Argument(id)}, "")
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := states().Follow(c.Hash, asked)
			if err != nil {
				t.Fatal(err)
			}
			got := log.Timeline(c.Hash, id)
			if !reflect.DeepEqual(got.Edited, want.Edited) || len(got.Commits) != len(want.Commits) {
				t.Errorf("commit %d: edited %v, want %v", i, got.Edited, want.Edited)
			}
			if want.Objects[id] == nil {
				continue // it was not there yet
			}
			if a, b := toldOf(got.Objects[id]), toldOf(want.Objects[id]); a != b {
				t.Errorf("commit %d, %s: got\n%s\nwant\n%s", i, id, a, b)
			}
		}
	}
	if c, _, _ := log.Commit(commits[7].Hash); c.Verdict != history.Refused || len(c.Problems) == 0 {
		t.Errorf("the broken commit is %s: %v", c.Verdict, c.Problems)
	}
	if c, _, _ := log.Commit(commits[9].Hash); !reflect.DeepEqual(c.Left, []string{"eu-1"}) {
		t.Errorf("the last commit took %v out", c.Left)
	}
}

// toldOf is a timeline as text.
func toldOf(o *history.ObjectTimeline) string {
	var b strings.Builder
	for _, e := range o.Entries {
		fmt.Fprintf(&b, "%s released %v\n", e.Commit.Hash, e.Released)
		for _, h := range e.Happened {
			fmt.Fprintf(&b, "  %s %s on %q: %q %v %v", h.Type, h.Object, h.Cluster, h.Text, h.Policy, h.Because)
			if h.Replicas != nil {
				fmt.Fprintf(&b, " %v", *h.Replicas)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "waiting %v held %v\n", o.Waiting, o.Held)
	return b.String()
}

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// beforeAndAfter are the states of a fleet whose templates each go to two of the clusters,
// and of the same after some templates have changed.
func beforeAndAfter(t testing.TB, templates, clusters, changed int) (before, after propagate.State) {
	t.Helper()
	name := func(i int) string { return fmt.Sprintf("t/%d/%d.yaml", i/100, i) }
	template := func(i, version int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {version: \"%d\"}\n", i, version)
	}
	files := map[string]string{
		"all.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [m0, m1]}}}\n",
	}
	for i := range clusters {
		files[fmt.Sprintf("clusters/%d/m%d.yaml", i/100, i)] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m%d}\nspec: {syncMode: Push}\n", i)
	}
	for i := range templates {
		files[name(i)] = template(i, 1)
	}
	g := sourcetest.New(t)
	g.Commit("one", files)
	edit := map[string]string{}
	for i := range changed {
		edit[name(i)] = template(i, 2)
	}
	g.Commit("changed", edit)

	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(repo, ".")
	commits, err := h.Commits("", "main")
	if err != nil {
		t.Fatal(err)
	}
	before, err = h.Fold(before, commits[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err = h.Fold(before, commits[1:], nil)
	if err != nil || after.Works != 2*templates {
		t.Fatal(after.Works, err)
	}
	return before, after
}

// What the status counts after a commit follows the commit, not the fleet.
func TestStatusFollowsTheChange(t *testing.T) {
	cost := func(templates, clusters, changed int) float64 {
		before, after := beforeAndAfter(t, templates, clusters, changed)
		follow := reconcile.Counting(before)
		return testing.AllocsPerRun(5, func() {
			follow(after)
			follow(before)
		})
	}
	least := cost(10, 2, 1)
	for _, n := range [][2]int{{100, 2}, {1_000, 2}, {3_000, 2}, {10, 20}, {10, 200}, {10, 2_000}} {
		if got := cost(n[0], n[1], 1); got > 1.5*least {
			t.Errorf("%d templates, %d clusters: the status of one line allocates %v times, and %v times in the smallest fleet", n[0], n[1], got, least)
		}
	}
	if all := cost(1_000, 2, 1_000); all < 10*least {
		t.Errorf("the status of 1,000 files allocates %v times, and %v times of one line: nothing is counted", all, least)
	}
}

// BenchmarkStatusSlope takes the time in which the status counts the works after a commit,
// over three decades of one size, and reports the exponent with which it grows.
func BenchmarkStatusSlope(b *testing.B) {
	for _, s := range []struct {
		what  string
		sizes [4][3]int // templates, clusters, files that the commit changes
	}{
		{"templates", [4][3]int{{10, 2, 1}, {100, 2, 1}, {1_000, 2, 1}, {10_000, 2, 1}}},
		{"clusters", [4][3]int{{10, 2, 1}, {10, 20, 1}, {10, 200, 1}, {10, 2_000, 1}}},
		{"change", [4][3]int{{1_000, 2, 1}, {1_000, 2, 10}, {1_000, 2, 100}, {1_000, 2, 1_000}}},
	} {
		b.Run(s.what, func(b *testing.B) {
			for b.Loop() {
				var took [4]float64
				for i, n := range s.sizes {
					before, after := beforeAndAfter(b, n[0], n[1], n[2])
					follow := reconcile.Counting(before)
					took[i] = math.Inf(1)
					for range 50 {
						began := time.Now()
						follow(after)
						took[i] = min(took[i], time.Since(began).Seconds())
						follow(before)
					}
					b.ReportMetric(took[i]*1e6, fmt.Sprintf("µs-%d", i+1))
				}
				b.ReportMetric(math.Log10(took[3]/took[0])/3, "exponent")
			}
		})
	}
}

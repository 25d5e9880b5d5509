// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// slopeFleet has templates in directories of ten, each on the two clusters m0 and m1, of
// however many there are.
func slopeFleet(templates, clusters int) map[string]string {
	files := map[string]string{
		"all.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [m0, m1]}}}\n",
	}
	for i := range clusters {
		files[fmt.Sprintf("clusters/%d/m%d.yaml", i/10, i)] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m%d}\nspec: {syncMode: Push}\n", i)
	}
	for i := range templates {
		files[slopeFile(i)] = recallTemplate(i, "1")
	}
	return files
}

func slopeFile(i int) string { return fmt.Sprintf("t/%d/%d/%d.yaml", i/100, i/10, i) }

// commitCost is what a commit takes. None of it is a time.
type commitCost struct{ reads, renders, bindings, works int }

// costOf folds a fleet and some commits after its first, and counts what one more takes
// that changes some of its files; and what the fold of that alone allocates.
func costOf(t *testing.T, templates, clusters, commits, changed int) (c commitCost, allocations float64) {
	t.Helper()
	g := sourcetest.New(t)
	g.Commit("one", slopeFleet(templates, clusters))
	for i := range commits {
		g.Commit("more", map[string]string{slopeFile(0): recallTemplate(0, fmt.Sprint("more ", i))})
	}
	base := g.Head()
	edit := map[string]string{}
	for i := range changed {
		edit[slopeFile(i)] = recallTemplate(i, "changed")
	}
	head := g.Commit("changed", edit)

	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(repo, ".")
	before, err := h.At(base)
	if err != nil {
		t.Fatal(err)
	}

	c.reads, c.renders = repo.Reads(), h.Renders
	commit, err := repo.Commit(head)
	if err != nil {
		t.Fatal(err)
	}
	in, err := h.Read(commit, &before)
	if err != nil {
		t.Fatal(err)
	}
	after := propagate.Step(before, in)
	c.reads, c.renders = repo.Reads()-c.reads, h.Renders-c.renders
	for d := range ordered.Diff(before.Bindings, after.Bindings) {
		c.bindings++
		c.works += len(d.After.Works)
	}
	return c, testing.AllocsPerRun(3, func() { propagate.Step(before, in) })
}

// What a commit takes follows what it changes: not how many templates, clusters or commits
// there are. Each is taken over two decades and more.
func TestCostFollowsTheChange(t *testing.T) {
	want, least := costOf(t, 10, 2, 0, 1)
	if want.renders != 1 || want.bindings != 1 || want.works != 2 {
		t.Fatalf("one line is %+v", want)
	}
	for what, sizes := range map[string][][3]int{
		"templates": {{100, 2, 0}, {1000, 2, 0}, {3000, 2, 0}},
		"clusters":  {{10, 20, 0}, {10, 200, 0}, {10, 2000, 0}},
		"commits":   {{10, 2, 1}, {10, 2, 10}, {10, 2, 100}},
	} {
		for _, n := range sizes {
			got, allocations := costOf(t, n[0], n[1], n[2], 1)
			if got != want {
				t.Errorf("%s %v: one line is %+v, want %+v", what, n, got, want)
			}
			if allocations > 1.5*least {
				t.Errorf("%s %v: a step allocates %v times, and %v times in the smallest fleet", what, n, allocations, least)
			}
		}
	}

	for _, n := range []int{1, 10, 100, 1000} {
		got, _ := costOf(t, 1000, 2, 0, n)
		if got.renders != n || got.bindings != n || got.works != 2*n {
			t.Errorf("%d files are %+v", n, got)
		}
	}
}

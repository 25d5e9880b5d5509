// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// BenchmarkSlope takes the time of reading and folding a commit over three decades of one size,
// while the others stay, and reports the exponent with which it grows: 0 is not at all,
// 1 as much. TestCostFollowsTheChange holds the counts behind it.
func BenchmarkSlope(b *testing.B) {
	for _, s := range []struct {
		what  string
		sizes [4][4]int // templates, clusters, commits, files that the commit changes
	}{
		{"templates", [4][4]int{{10, 4, 0, 1}, {100, 4, 0, 1}, {1_000, 4, 0, 1}, {10_000, 4, 0, 1}}},
		{"clusters", [4][4]int{{100, 2, 0, 1}, {100, 20, 0, 1}, {100, 200, 0, 1}, {100, 2_000, 0, 1}}},
		{"commits", [4][4]int{{100, 4, 1, 1}, {100, 4, 10, 1}, {100, 4, 100, 1}, {100, 4, 1_000, 1}}},
		{"change", [4][4]int{{1_000, 4, 0, 1}, {1_000, 4, 0, 10}, {1_000, 4, 0, 100}, {1_000, 4, 0, 1_000}}},
	} {
		b.Run(s.what, func(b *testing.B) {
			for b.Loop() {
				var took [4]float64
				for i, n := range s.sizes {
					took[i] = slopeOf(b, n[0], n[1], n[2], n[3])
					b.ReportMetric(took[i]*1000, fmt.Sprintf("ms-%d", i+1))
				}
				b.ReportMetric(math.Log10(took[3]/took[0])/3, "exponent")
			}
		})
	}
}

// slopeOf is the shortest of some times that a commit takes.
func slopeOf(b *testing.B, templates, clusters, commits, changed int) float64 {
	b.Helper()
	g := sourcetest.New(b)
	g.Commit("one", slopeFleet(templates, clusters))
	for i := range commits {
		g.Commit("more", map[string]string{slopeFile(0): recallTemplate(0, fmt.Sprint("more ", i))})
	}
	base := g.Head()
	var heads []string
	for n := range 15 {
		edit := map[string]string{}
		for i := range changed {
			edit[slopeFile(i)] = recallTemplate(i, fmt.Sprint("changed ", n))
		}
		heads = append(heads, g.Commit("changed", edit))
	}

	repo, err := source.Open(g.Dir)
	if err != nil {
		b.Fatal(err)
	}
	h := history.New(repo, ".")
	state, err := h.At(base)
	if err != nil {
		b.Fatal(err)
	}
	least := math.Inf(1)
	for _, head := range heads {
		began := time.Now()
		c, err := repo.Commit(head)
		if err != nil {
			b.Fatal(err)
		}
		in, err := h.Read(c, &state)
		if err != nil {
			b.Fatal(err)
		}
		state = propagate.Step(state, in)
		least = min(least, time.Since(began).Seconds())
	}
	return least
}

// BenchmarkWorks folds 1,000 templates that each go to 1,000 clusters, and reports what
// the state takes for each of the 1,000,000 works.
func BenchmarkWorks(b *testing.B) {
	files := slopeFleet(1_000, 1_000)
	files["all.yaml"] = "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n"
	g := sourcetest.New(b)
	head := g.Commit("one", files)
	for b.Loop() {
		repo, err := source.Open(g.Dir)
		if err != nil {
			b.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		state, err := history.New(repo, ".").At(head)
		if err != nil || state.Works != 1_000_000 {
			b.Fatal(state.Works, err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-fold")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(state.Works), "B/work")
		runtime.KeepAlive(state)
	}
}

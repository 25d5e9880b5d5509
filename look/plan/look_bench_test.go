// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"
)

// BenchmarkLook is what a command needs that finds the state of 10,000 templates on 100
// clusters in the cache: the state alone, which 'get' and 'why' show parts of, and a plan
// of one file on top of it.
func BenchmarkLook(b *testing.B) {
	g := benchFleet(b)
	cache := b.TempDir()
	benchPlan(b, benchStates(b, g, cache), "base") // fills the cache

	measured := func(look func(b *testing.B)) func(b *testing.B) {
		return func(b *testing.B) {
			cpu := cpuTime()
			for b.Loop() {
				look(b)
			}
			b.ReportMetric((cpuTime()-cpu).Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(0.3, "s-limit")
		}
	}
	b.Run("state", measured(func(b *testing.B) {
		states := benchStates(b, g, cache)
		head, err := states.Resolve("base")
		if err != nil {
			b.Fatal(err)
		}
		state, err := states.At(head)
		if err != nil || state.Works != benchTemplates*benchClusters {
			b.Fatal(state.Works, err)
		}
		if n := states.History.Renders; n > benchClusters+108 {
			b.Fatalf("%d units were rendered", n)
		}
	}))
	b.Run("plan", measured(func(b *testing.B) {
		states := benchStates(b, g, cache)
		if r := benchPlan(b, states, "one"); r.Summary.Cells.Now != benchClusters {
			b.Fatal(r.Summary.Cells.Now, time.Now())
		}
	}))
}

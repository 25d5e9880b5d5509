// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"io"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
)

// BenchmarkLook is what a command needs that finds the state of 10,000 templates on 100
// clusters in the cache: the state alone, why one template is where it is, the works of one
// cluster, and a plan of one file.
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
	b.Run("why", measured(func(b *testing.B) {
		states := benchStates(b, g, cache)
		states.History.Stop = func() error { b.Error("a commit is folded"); return nil }
		head, err := states.Resolve("base")
		if err != nil {
			b.Fatal(err)
		}
		asked, err := object.ParseReference([]string{"deploy/web-5"}, "ns-05")
		if err != nil {
			b.Fatal(err)
		}
		line, state, err := states.Standing(head, asked)
		if err != nil {
			b.Fatal(err)
		}
		id, err := line.Found(&state)
		if err != nil {
			b.Fatal(err)
		}
		if why := report.NewWhy(line, &state, id, nil, time.Now()); len(why.Clusters) != benchClusters || line.Err() != nil {
			b.Fatal(len(why.Clusters), line.Err())
		}
	}))
	b.Run("works of a cluster", measured(func(b *testing.B) {
		states := benchStates(b, g, cache)
		head, err := states.Resolve("base")
		if err != nil {
			b.Fatal(err)
		}
		state, err := states.At(head)
		if err != nil {
			b.Fatal(err)
		}
		v := listing.View{State: &state, Clusters: []string{"c005"}, Selector: labels.Everything()}
		works := v.List("works")
		if err := output.Print(io.Discard, []output.List{works}, output.Options{Form: output.Form{Name: output.FormTable}}); err != nil || len(works.Items) != benchTemplates {
			b.Fatal(len(works.Items), err)
		}
	}))
	b.Run("plan", measured(func(b *testing.B) {
		states := benchStates(b, g, cache)
		if r := benchPlan(b, states, "one"); r.Summary.Cells.Now != benchClusters {
			b.Fatal(r.Summary.Cells.Now, time.Now())
		}
	}))
}

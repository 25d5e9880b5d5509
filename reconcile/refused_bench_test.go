// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// BenchmarkRefusedLine folds the same commits after a good one, after one that is
// refused, and after one that awaits confirmation: what a commit costs should not
// follow how long ago the last accepted one was (R06).
func BenchmarkRefusedLine(b *testing.B) {
	for b.Loop() {
		var refused, held []float64
		for range benchRounds {
			good := lineAfter(b, "note.yaml", "# nothing\n")
			refused = append(refused, lineAfter(b, "note.yaml", "broken: [\n")/good)
			held = append(held, lineAfter(b, "apps/000/app0.yaml", "# nothing\n")/good)
		}
		b.ReportMetric(median(refused), "ratio-refused")
		b.ReportMetric(median(held), "ratio-held")
	}
}

// lineAfter is the time per commit after one that changes a file.
func lineAfter(b *testing.B, name, content string) float64 {
	b.Helper()
	dir := b.TempDir()
	const commits = 300
	importReplay(b, dir, 1_000, commits, map[string]string{name: content, "fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 0}\n"})
	repo, err := source.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	h := history.New(repo, ".")
	all, err := h.Commits("", "main")
	if err != nil {
		b.Fatal(err)
	}
	state, err := h.Fold(propagate.State{}, all[:2], nil)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if state, err = h.Fold(state, all[2:], nil); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if refused := state.Refusal != nil; refused != (content == "broken: [\n" || name != "note.yaml") {
		b.Fatal(fmt.Sprint(state.Refusal))
	}
	return took.Seconds() / commits
}

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// What is counted by what changed is what is counted from nothing: over random histories
// with holds, lazy policies, overrides that fail and clusters that come and go.
func TestWorksAreCountedByWhatChanged(t *testing.T) {
	var sum reconcile.Works
	for seed := range uint64(8) {
		git := sourcetest.New(t)
		levels := cadenceLevels(t, git.Dir, cadenceHistory(git, rand.New(rand.NewPCG(seed, 2))), &cadenceCounts{})
		for i := range levels {
			followed, fresh := reconcile.CountWorks(levels[:i+1]...), reconcile.CountWorks(levels[i])
			if !maps.Equal(followed, fresh) {
				t.Fatalf("seed %d, commit %d: followed %v, from nothing %v", seed, i+1, followed, fresh)
			}
			checkSum(t, &levels[i], fresh, &sum)
		}
	}
	if sum.Held == 0 || sum.Deferred == 0 {
		t.Errorf("the histories hold and defer nothing: %+v", sum)
	}
}

func checkSum(t *testing.T, s *propagate.State, works map[string]reconcile.Works, sum *reconcile.Works) {
	t.Helper()
	total := 0
	for _, w := range works {
		total += w.Total
		sum.Held += w.Held
		sum.Deferred += w.Deferred
	}
	if s.Snapshot != nil && total != s.Works {
		t.Fatalf("%d works are counted of %d", total, s.Works)
	}
}

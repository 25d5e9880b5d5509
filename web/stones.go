// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"

	"github.com/fairlead/fairlead/look/history"
)

// stones are states along the line that are kept in memory: the one at another commit is
// folded from the nearest before it. States share what is equal, so one costs what its
// commits have changed, and at most what the fleet has.
type stones struct {
	every int // commits from one to the next
	kept  []stone
}

type stone struct {
	place int // of its commit, counted from 1
	history.Folded
}

const (
	// firstEvery is how many commits are between two stones of a short line.
	firstEvery = 50
	// mostStones is how many there are at most, and stoneWorks how many works they may
	// have together.
	mostStones = 64
	stoneWorks = 500_000
)

// with returns the stones with one more state, if there is one due at its place. Where
// they become too many, every second one goes.
func (s stones) with(place int, state history.Folded) stones {
	s.every = max(s.every, firstEvery)
	if place%s.every != 0 {
		return s
	}

	s.kept = append(slices.Clip(s.kept), stone{place, state})
	most := min(mostStones, stoneWorks/max(state.Works, 1))
	for len(s.kept) > most && s.every < 1<<30 {
		s.every *= 2
		s.kept = slices.DeleteFunc(slices.Clone(s.kept), func(kept stone) bool { return kept.place%s.every != 0 })
	}
	return s
}

// at returns the state at a commit, if it is kept.
func (s stones) at(commit string) (history.Folded, bool) {
	for i := range s.kept {
		if s.kept[i].Commit == commit {
			return s.kept[i].Folded, true
		}
	}
	return history.Folded{}, false
}

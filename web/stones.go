// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/ordered"
)

// stones are states along the line that are kept in memory: the one at another commit is
// folded from the nearest before it. States share what is equal, so one costs what is
// another in the next.
type stones struct {
	every int // commits from one to the next
	kept  []stone
	cost  int // of all
}

type stone struct {
	place int // of its commit, counted from 1
	cost  int // how many works are others in the next one
	history.Folded
}

const (
	// firstEvery is how many commits are between two stones of a short line.
	firstEvery = 10
	// mostStones is how many there are at most, and stoneWorks how many works they may
	// have beside those of the head: some 80 MiB.
	mostStones = 1_000
	stoneWorks = 500_000
)

// with returns the stones with one more state, if there is one due at its place: at the
// first commit, and then at every so many. Where they cost too much, every second one goes.
func (s stones) with(place int, state history.Folded) stones {
	s.every = max(s.every, firstEvery)
	if !s.due(place) {
		return s
	}

	s.kept = append(slices.Clip(s.kept), stone{place: place, Folded: state})
	s.weigh(len(s.kept) - 2)
	for (len(s.kept) > mostStones || s.cost > stoneWorks) && len(s.kept) > 2 {
		s.every *= 2
		s.kept = slices.DeleteFunc(slices.Clone(s.kept), func(kept stone) bool { return !s.due(kept.place) })
		s.cost = 0
		for i := range s.kept {
			s.kept[i].cost = 0
			s.weigh(i)
		}
	}
	return s
}

func (s *stones) due(place int) bool { return place == 1 || place%s.every == 0 }

// weigh finds out what a stone costs, if there is one after it.
func (s *stones) weigh(i int) {
	if i < 0 || i+1 >= len(s.kept) {
		return
	}
	for d := range ordered.Diff(s.kept[i].Bindings, s.kept[i+1].Bindings) {
		if d.Had {
			s.kept[i].cost += len(d.Before.Works)
		}
	}
	s.cost += s.kept[i].cost
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

// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// What is folded beside a known state is what is folded alone, at every commit, and at the
// known one it is no second copy: no unit is rendered that the known state has, and each of
// its bindings is that of the known state. The same is true of a state from the cache.
func TestKnownIsShared(t *testing.T) {
	rendered, alone := 0, 0
	for seed := range uint64(3) {
		repo, one, commits := openLine(t, seed)
		var whole []string
		var known *history.Known
		at := len(commits) - 1 - int(seed)*8
		if _, err := one.Fold(propagate.State{}, commits, func(_ *source.Commit, s propagate.State) error {
			if whole = append(whole, told(t, &s)); len(whole) == at+1 {
				known = one.Known(s)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if known == nil {
			t.Fatalf("seed %d: what was folded last is not known", seed)
		}

		beside := history.New(repo, ".")
		beside.Like(known)
		if _, err := beside.Fold(propagate.State{}, commits, func(c *source.Commit, s propagate.State) error {
			if n := c.Hash; told(t, &s) != whole[0] {
				t.Fatalf("seed %d, commit %s (%s) is\n%s\nbeside a known state, and alone\n%s", seed, n, c.Subject, told(t, &s), whole[0])
			}
			if whole = whole[1:]; c.Hash == known.State.Commit {
				noCopies(t, known, &s)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		rendered, alone = rendered+beside.Renders, alone+one.Renders

		cache := history.NewCache(t.TempDir(), ".", "", nil)
		cache.Keep(&history.Folded{State: known.State})
		again := history.New(repo, ".")
		again.Like(known)
		restored, ok := cache.Load(known.State.Commit, again)
		if !ok {
			t.Fatal("the state is not in the cache")
		}
		if noCopies(t, known, &restored.State); again.Renders > 0 {
			t.Errorf("seed %d: %d units rendered to restore a known state", seed, again.Renders)
		}
	}
	if rendered >= alone {
		t.Errorf("%d units rendered beside a known state, %d alone", rendered, alone)
	}
}

// What a commit did is told alike of a state that was folded and of one that was restored,
// whose policies and templates are copies.
func TestCopiesAreNoChange(t *testing.T) {
	told := 0
	for seed := range uint64(4) {
		repo, one, commits := openLine(t, seed)
		cache := history.NewCache(t.TempDir(), ".", "", nil)
		var before propagate.State
		if _, err := one.Fold(before, commits, func(c *source.Commit, after propagate.State) error {
			folded := before
			before = after
			changes := propagate.Changes(&folded, &after)
			if folded.Accepted == "" || len(changes) == 0 {
				return nil
			}

			told++
			cache.Keep(&history.Folded{State: folded})
			restored, ok := cache.Load(folded.Commit, history.New(repo, "."))
			if !ok {
				t.Fatalf("the state at %s is not in the cache", folded.Commit)
			}
			if got := propagate.Changes(&restored.State, &after); !reflect.DeepEqual(got, changes) {
				t.Errorf("commit %s (%s) did\n%v\nto a restored state, and\n%v\nto the folded one", c.Hash, c.Subject, got, changes)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if told < 5 {
		t.Errorf("only %d commits did something", told)
	}
}

// openLine commits a random line, and opens it for a first fold.
func openLine(t *testing.T, seed uint64) (*source.Repo, *history.History, []*source.Commit) {
	t.Helper()
	g := sourcetest.New(t)
	randomLine(g, rand.New(rand.NewPCG(seed, 2)))
	return opened(t, g)
}

// opened is a repository with the history of its head.
func opened(t *testing.T, g *sourcetest.Repo) (*source.Repo, *history.History, []*source.Commit) {
	t.Helper()
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(repo, ".")
	commits, err := h.Commits("", g.Head())
	if err != nil {
		t.Fatal(err)
	}
	return repo, h, commits
}

// noCopies fails if a state has a copy of a binding or a template of the known one. Of a file
// that has another comment since, each keeps the template that it had.
func noCopies(t *testing.T, known *history.Known, s *propagate.State) {
	t.Helper()
	for key, b := range known.State.Bindings.All() {
		if s.Bindings.At(key) != b {
			t.Errorf("binding %s is a copy", b.ID)
		}
	}
	for key, template := range known.State.Snapshot.Templates.All() {
		if template.Name != "c0" && s.Snapshot.Templates.At(key) != template {
			t.Errorf("template %s is a copy", template.ID)
		}
	}
}

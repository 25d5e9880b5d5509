// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// Decision 33: the derived name is that of the commit at which the fold began, for
// a loop that goes on, for a fold from nothing, for a look that begins later and for
// a record of a version without names.
func TestDerivedName(t *testing.T) {
	repo := sourcetest.New(t)
	root := repo.Commit("root", map[string]string{"README.md": "a"})
	middle := repo.Commit("middle", map[string]string{"README.md": "b"})
	begin := repo.Commit("begin\n\nFairlead-Begin: true", map[string]string{"README.md": "c"})
	head := repo.Commit("head", map[string]string{"README.md": "d"})
	again := repo.Commit("again\n\nFairlead-Begin: true", map[string]string{"README.md": "e"})

	opened, err := source.Open(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	hist := history.New(opened, ".")
	derived := func(commit string) string { return object.DerivedFleetName(commit, ".") }
	check := func(says string, s propagate.State, err error, name string, former ...string) {
		t.Helper()
		if err != nil || s.Name() != name || !slices.Equal(s.Former, former) {
			t.Errorf("%s: %q, formerly %q, %v; want %q, formerly %q", says, s.Name(), s.Former, err, name, former)
		}
	}

	early, err := hist.At(middle)
	check("from the root", early, err, derived(root))
	commits, err := hist.Commits(middle, again)
	if err != nil {
		t.Fatal(err)
	}
	loop, err := hist.Fold(early, commits, nil)
	check("the fold begins anew while a loop runs", loop, err, derived(begin), derived(root))
	fold, err := hist.At(again)
	check("from nothing", fold, err, derived(begin), derived(root))
	states := &history.States{Repo: opened, History: hist, Since: head}
	look, err := states.At(again)
	check("a look that begins later", look, err, derived(begin), derived(root))

	saved := early.Save()
	saved.Derived = ""
	old, err := history.Restore(saved, hist)
	check("a record of an older version", old, err, derived(root))

	holds := history.Holds(opened, head)
	if !holds(root) || !holds(head) || holds(again) || holds("") {
		t.Error("another history than that up to head")
	}
}

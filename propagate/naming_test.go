// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// Decision 33: what the fleet is called after each commit, and what it was before.
func TestNamesOfAFleet(t *testing.T) {
	called := func(name string) *fleet.Snapshot { return &fleet.Snapshot{Settings: &fleet.Settings{Name: name}} }
	var s propagate.State
	for _, c := range []struct {
		says   string
		commit propagate.Commit
		name   string
		former []string
	}{
		{"a refused commit begins the fold", propagate.Commit{Hash: "1", Derived: "one", Problems: []fleet.Problem{{}}}, "one", nil},
		{"without a name it is the derived one", propagate.Commit{Hash: "2", Snapshot: &fleet.Snapshot{}}, "one", nil},
		{"it is named", propagate.Commit{Hash: "3", Snapshot: called("sea")}, "sea", []string{"one"}},
		{"a refused commit renames nothing", propagate.Commit{Hash: "4", Problems: []fleet.Problem{{}}}, "sea", []string{"one"}},
		{"it is renamed", propagate.Commit{Hash: "5", Snapshot: called("ocean")}, "ocean", []string{"one", "sea"}},
		{"and back", propagate.Commit{Hash: "6", Snapshot: called("sea")}, "sea", []string{"ocean", "one"}},
		{"the fold begins anew", propagate.Commit{Hash: "7", Derived: "seven", Formerly: "one", Snapshot: called("sea")}, "sea", []string{"ocean", "one"}},
		{"the name is taken back", propagate.Commit{Hash: "8", Snapshot: &fleet.Snapshot{}}, "seven", []string{"ocean", "one", "sea"}},
	} {
		s = propagate.Step(s, c.commit)
		if got := s.Name(); got != c.name || !slices.Equal(s.Former, c.former) {
			t.Errorf("%s: %q, formerly %q; want %q, formerly %q", c.says, got, s.Former, c.name, c.former)
		}
	}

	// A fold that begins at the commit that says so knows what came before it.
	begun := propagate.Step(propagate.State{}, propagate.Commit{Hash: "7", Derived: "seven", Formerly: "one", Snapshot: &fleet.Snapshot{}})
	if begun.Name() != "seven" || !slices.Equal(begun.Former, []string{"one"}) {
		t.Errorf("%q, formerly %q", begun.Name(), begun.Former)
	}

	// A rewritten branch has another root.
	line := propagate.Step(propagate.State{}, propagate.Commit{Hash: "9", Derived: "nine", Snapshot: &fleet.Snapshot{}})
	rewritten := propagate.Rewrite(s, line, propagate.Commit{Hash: "9"})
	if rewritten.Name() != "nine" || !slices.Equal(rewritten.Former, []string{"ocean", "one", "sea", "seven"}) {
		t.Errorf("%q, formerly %q", rewritten.Name(), rewritten.Former)
	}

	// What is kept is what was.
	saved := rewritten.Save()
	kept, err := saved.Restore(map[string]*fleet.Snapshot{"9": rewritten.Snapshot})
	if err != nil || kept.Name() != "nine" || !slices.Equal(kept.Former, rewritten.Former) {
		t.Errorf("%q, formerly %q, %v", kept.Name(), kept.Former, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// freeze notes which commit has the last good content of what is broken in
// this one (fold rule 3). Render put that content into the snapshot already, as
// the scope of a kind can depend on it; what is noted is where it can be read
// again.
func (st *step) freeze() {
	before, after := st.prev.snapshot(), st.next.snapshot()
	st.next.Frozen = map[string]string{}
	for name, commit := range st.prev.Frozen {
		if after.IsBroken(name) {
			st.next.Frozen[name] = commit
		}
	}

	note := func(name, commit string) {
		if _, noted := st.next.Frozen[name]; !noted {
			st.next.Frozen[name] = commit
		}
	}
	for d := range ordered.Diff(before.Units, after.Units) {
		switch {
		case !d.Has || d.After.Broken == nil:
		case d.Had:
			note(d.Key, st.prev.Accepted)
		default:
			note(d.Key, "")
		}
	}

	for _, name := range after.Unparsed {
		note(name, st.prev.Accepted)
	}
}

// FrozenUnits are the paths of the units that are broken, sorted.
func (s *State) FrozenUnits() (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Frozen)) {
		if _, unit := s.snapshot().Units.Get(name); unit {
			paths = append(paths, name)
		}
	}
	return paths
}

// Broken are the problems of the frozen units, and what runs instead.
func (s *State) Broken() []fleet.Finding {
	var all []fleet.Finding
	for _, name := range s.FrozenUnits() {
		u := s.snapshot().Units.At(name)
		for _, p := range u.Broken {
			instead := "nothing of " + u.Path + " is propagated, as it never could be read"
			if commit := s.Frozen[u.Path]; commit != "" {
				instead = u.Path + " stays as of commit " + short(commit)
			}
			all = append(all, fleet.Finding{Code: fleet.FindingFrozen, Severity: fleet.SeverityError, Origin: p.Origin,
				Message: fmt.Sprintf("%s; %s", p.Message, instead)})
		}
	}
	return all
}

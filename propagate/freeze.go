// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/propagate/ordered"
)

// freeze notes which commit has the last good content of what is broken in
// this one (fold rule 3). That content is in the snapshot already, since it
// has to be there before the scope of a kind is known; what is noted is where
// it can be had again.
func (st *step) freeze() {
	before, after := st.prev.snapshot(), st.next.Snapshot
	st.next.Frozen = map[string]string{}
	for name, commit := range st.prev.Frozen {
		if after.broken(name) {
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

// Whole is whether nothing in a snapshot is broken.
func (s *Snapshot) Whole() bool {
	for u := range s.Units.Values() {
		if u.Broken != nil {
			return false
		}
	}
	return true
}

// broken is whether a unit or a kustomization file is.
func (s *Snapshot) broken(name string) bool {
	u := s.Units.At(name)
	return u != nil && u.Broken != nil || slices.Contains(s.Unparsed, name)
}

// heldBy is a commit whose tree has what a unit is in this step: an earlier
// one where the unit is frozen.
func (st *step) heldBy(unit string) string {
	return cmp.Or(st.next.Frozen[unit], st.commit.Hash)
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
func (s *State) Broken() []Finding {
	var all []Finding
	for _, name := range s.FrozenUnits() {
		u := s.snapshot().Units.At(name)
		for _, p := range u.Broken {
			instead := "nothing of " + u.Path + " is propagated, as it never could be read"
			if commit := s.Frozen[u.Path]; commit != "" {
				instead = u.Path + " stays as of commit " + short(commit)
			}
			all = append(all, Finding{Code: FindingFrozen, Level: LevelError, Origin: p.Origin,
				Message: fmt.Sprintf("%s; %s", p.Message, instead)})
		}
	}
	return all
}

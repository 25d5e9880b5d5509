// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/fairlead/fairlead/object"
)

// Name is the name of the fleet: that of fairlead.yaml, else the derived one
// (decision 33).
func (s *State) Name() string {
	if settings := s.snapshot().Settings; settings != nil && settings.Name != "" {
		return settings.Name
	}
	return s.Derived
}

// Marker is by what the fleet marks its objects and knows them again. Whoever can
// read the history adds which commits are of it.
func (s *State) Marker() object.Marker {
	return object.Marker{Name: s.Name(), Former: s.Former}
}

// begin takes the name that a commit derives for the fleet, if it begins the fold.
// A refused commit begins it too: it is where the fold began.
func (s State) begin(c Commit) State {
	for range c.values(TrailerAllowRewrite) {
		s.Rewritten = c.Hash
	}
	if c.Derived == "" || c.Derived == s.Derived {
		return s
	}

	was := s
	s.Derived = c.Derived
	s.remember(&was, c.Formerly)
	return s
}

// remember notes the names that the fleet had before: that of the state before,
// if it was accepted, and others.
func (s *State) remember(before *State, others ...string) {
	names := slices.Concat(s.Former, before.Former, others)
	if before.Accepted != "" {
		names = append(names, before.Name())
	}

	now := s.Name()
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" || name == now })
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(names, s.Former) {
		s.Former = slices.Clip(names)
	}
}

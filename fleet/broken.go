// SPDX-License-Identifier: Apache-2.0

package fleet

import "slices"

// Whole reports whether no unit in a snapshot is broken.
func (s *Snapshot) Whole() bool {
	for u := range s.Units.Values() {
		if u.Broken != nil {
			return false
		}
	}
	return true
}

// IsBroken reports whether the unit or kustomization file called name is
// broken.
func (s *Snapshot) IsBroken(name string) bool {
	u := s.Units.At(name)
	return u != nil && u.Broken != nil || slices.Contains(s.Unparsed, name)
}

// EmptySnapshot is the snapshot before the first commit.
var EmptySnapshot = &Snapshot{}

// WaitsFor reports whether a policy waits for an override that does not exist
// yet (digest §2.3).
func (s *Snapshot) WaitsFor(p *Policy) bool {
	for _, name := range p.Spec.DependentOverrides {
		if _, ok := s.Overrides.Get(OverrideRef{p.Ref.Namespace, name}.Key()); !ok {
			return true
		}
	}
	return false
}

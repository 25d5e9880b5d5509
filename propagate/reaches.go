// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/fairlead/fairlead/fleet"
)

// Reaches lists the clusters that the policy can send something to: those that
// its placement selects, and those that have something of it, sorted.
func (s *State) Reaches(p *fleet.Policy) []string {
	var names []string
	for c := range s.snapshot().Clusters.Values() {
		if p.Placement.Selects(c.Candidate) {
			names = append(names, c.Name)
		}
	}

	for b := range s.Bindings.Values() {
		if b.Claim == nil || *b.Claim != p.Ref {
			continue
		}
		for _, w := range b.Works {
			names = append(names, w.Cluster)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

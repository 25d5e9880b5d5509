// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Named returns the objects that a user's reference means, of those that a state has or
// removes on a cluster that on reports.
func Named(s *propagate.State, asked object.Reference, on func(cluster string) bool) (ids []object.ID) {
	kinds := s.Snapshot.KindNames()

	there := func(id object.ID) bool {
		for c := range s.Snapshot.Clusters.Values() {
			if on(c.Name) && Has(s, id, c.Name) {
				return true
			}
		}
		return false
	}
	for b := range s.Bindings.Values() {
		if asked.Matches(b.ID, kinds) && there(b.ID) {
			ids = append(ids, b.ID)
		}
	}
	for a := range s.Tombstones.Values() {
		if asked.Matches(a.ID, kinds) && s.Bindings.At(a.Key()) == nil && there(a.ID) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// Has reports whether a state has an object on a cluster, or removes it there.
func Has(s *propagate.State, id object.ID, cluster string) bool {
	if b := s.Bindings.At(id.Key()); b != nil {
		return b.Work(cluster) != nil
	}
	return s.Removal(cluster, id) != nil
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Brakes are the fields of a policy that hold a work back or keep it running
// (fold rule 12). They are no placement: they act in the step that edits them.
type Brakes struct {
	Suspension *policyv1alpha1.Suspension `json:"suspension,omitempty"`
	Preserve   *bool                      `json:"preserve,omitempty"`
}

func brakesOf(p *Policy) *Brakes {
	return &Brakes{p.Spec.Suspension, p.Spec.PreserveResourcesOnDeletion}
}

// Hold is whether nothing may be sent to cluster (digest §7): all are
// suspended, or this one is named.
func (b *Brakes) Hold(cluster string) bool {
	switch s := b.Suspension; {
	case s == nil:
		return false
	case s.Dispatching != nil && *s.Dispatching:
		return true
	case s.DispatchingOnClusters == nil:
		return false
	default:
		return slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
	}
}

// Keeps is whether an object that is not wanted any more is left running.
func (b *Brakes) Keeps() bool { return b.Preserve != nil && *b.Preserve }

// brakes are the claiming policy's; without a claim the last ones stay.
func brakes(old *Binding, p *Policy) *Brakes {
	switch {
	case p == nil && old == nil:
		return &Brakes{}
	case p == nil:
		return old.Brakes
	}
	now := brakesOf(p)
	if old != nil && digestJSON(old.Brakes) == p.Brakes {
		return old.Brakes
	}
	return now
}

// brakesOfRemoved are those that the binding of a removed template would have
// had in this step; if its policy went in the same commit, its last ones.
func (st *step) brakesOfRemoved(old *Binding, t *Template) *Brakes {
	if old.Claim != nil {
		if _, stays := st.next.Snapshot.Policies.Get(old.Claim.Key()); !stays {
			return old.Brakes
		}
	}
	return brakes(old, st.claim(t, old.Claim))
}

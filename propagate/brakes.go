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

// brakes are the claiming policy's. An edit of them acts in its step, pending
// or not. When the claim moves to a policy that stays pending, the old ones
// stay and its own are added, until it is in effect or its own are edited in a
// later step; without a claim the last ones stay, and under StaticPolicy those of the policy that would win apply,
// so that a hold can always be lifted.
func (st *step) brakes(old *Binding, v verdict, inEffect bool) *Brakes {
	p := v.policy
	if p == nil {
		p = v.winner
	}
	switch {
	case p == nil && old == nil:
		return &Brakes{}
	case p == nil:
		return old.Brakes
	case old == nil || inEffect || v.policy == nil:
		return keepEqual(old, brakesOf(p))
	case v.taken:
		return keepEqual(old, old.Brakes.with(brakesOf(p)))
	case st.brakesEdited(p):
		return keepEqual(old, brakesOf(p))
	}
	return old.Brakes
}

// inEffect is whether nothing of a policy and a template would change what is
// active: then nothing is pending (fold rule 13).
func (b *Binding) inEffect(p *Policy, t *Template) bool {
	return p != nil && !b.attached() && b.Active.Policy.Delayed == p.Delayed && b.Active.Template.Update == t.Update
}

// brakesEdited is whether this step edits a policy's brakes.
func (st *step) brakesEdited(p *Policy) bool {
	was, ok := st.prev.snapshot().Policies.Get(p.Ref.Key())
	return ok && was.Brakes != p.Brakes
}

// keepEqual keeps the old value of equal brakes.
func keepEqual(old *Binding, b *Brakes) *Brakes {
	if old != nil && digestJSON(old.Brakes) == digestJSON(b) {
		return old.Brakes
	}
	return b
}

// with holds what either holds, and keeps what either keeps.
func (b *Brakes) with(o *Brakes) *Brakes {
	both := &Brakes{Suspension: b.Suspension, Preserve: b.Preserve}
	if o.Keeps() {
		both.Preserve = o.Preserve
	}
	switch {
	case o.Suspension == nil:
	case b.Suspension == nil, o.all():
		both.Suspension = o.Suspension
	case !b.all():
		names := append(b.names(), o.names()...)
		slices.Sort(names)
		both.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: slices.Compact(names)}}
	}
	return both
}

func (b *Brakes) all() bool {
	return b.Suspension != nil && b.Suspension.Dispatching != nil && *b.Suspension.Dispatching
}

func (b *Brakes) names() []string {
	if b.Suspension == nil || b.Suspension.DispatchingOnClusters == nil {
		return nil
	}
	return slices.Clone(b.Suspension.DispatchingOnClusters.ClusterNames)
}

// brakesOfRemoved are those that the binding of a removed template would have
// had in this step; if its policy went in the same commit, its last ones.
func (st *step) brakesOfRemoved(old *Binding, t *Template) *Brakes {
	if old.Claim != nil {
		if _, stays := st.next.Snapshot.Policies.Get(old.Claim.Key()); !stays {
			return old.Brakes
		}
	}
	v := st.claim(old, t)
	return st.brakes(old, v, st.activates(v) || old.inEffect(v.policy, t))
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// immediate sets the fields that act at once (fold rule 12).
func (d *decision) immediate() {
	d.b.Immediate = d.claims().immediate(d.old, d.verdict, d.b.inEffect(d.verdict.policy, d.template))
	d.b.Own = d.template.Immediate
}

// inForce are the immediate fields of the policy and the template's own together
// (decisions 51 and 52).
func (b *Binding) inForce() *fleet.Immediate { return b.Immediate.With(b.Own) }

// immediate are the immediate fields of the claiming policy. An edit of them
// acts in its step, pending or not. When the claim moves to a policy that stays
// pending, the old ones stay and its own are added, until it is in effect or its
// own are edited in a later step. Without a claim the last ones stay, and under
// StaticPolicy those of the policy that would win apply, so that a hold can
// always be lifted.
func (c claims) immediate(old *Binding, v verdict, inEffect bool) *fleet.Immediate {
	p := v.policy
	if p == nil {
		p = v.winner
	}

	switch {
	case p == nil && old == nil:
		return &fleet.Immediate{}
	case p == nil:
		return old.Immediate
	case old == nil || inEffect || v.policy == nil:
		return keepEqual(old, fleet.ImmediateOf(p))
	case v.taken:
		return keepEqual(old, old.Immediate.With(fleet.ImmediateOf(p)))
	case c.immediateEdited(p):
		return keepEqual(old, fleet.ImmediateOf(p))
	}

	return old.Immediate
}

// immediateOfRemoved are the immediate fields that the binding of a removed
// template would have had in this step; if its policy was removed in the same
// commit, its last ones.
func (c claims) immediateOfRemoved(old *Binding, t *fleet.Template) *fleet.Immediate {
	if old.Claim != nil {
		if _, stays := c.after.Policies.Get(old.Claim.Key()); !stays {
			return old.Immediate
		}
	}

	v := c.claim(old, t)
	return c.immediate(old, v, c.activates(v) || old.inEffect(v.policy, t))
}

// immediateEdited reports whether this step edits a policy's immediate fields.
func (c claims) immediateEdited(p *fleet.Policy) bool {
	was, ok := c.before.Policies.Get(p.Ref.Key())
	return ok && was.Immediate != p.Immediate
}

// inEffect reports whether nothing of a policy and a template would change what
// is active: then nothing is pending (fold rule 13).
func (b *Binding) inEffect(p *fleet.Policy, t *fleet.Template) bool {
	return p != nil && !b.attached() && b.Active.Policy.Delayed == p.Delayed && b.Active.Template.Update == t.Update
}

// keepEqual keeps the old value of equal immediate fields.
func keepEqual(old *Binding, b *fleet.Immediate) *fleet.Immediate {
	if old != nil && object.DigestJSON(old.Immediate) == object.DigestJSON(b) {
		return old.Immediate
	}
	return b
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"

	"github.com/fairlead/fairlead/fleet"
)

// remove removes the binding of a removed template, with the immediate fields
// of this step, except where held owners still run what references it.
func (st *step) remove(old *Binding, needed need) {
	if old == nil {
		return
	}

	if b := st.linger(old, needed); len(b.Works) > 0 {
		st.replace(old, b, st.keeps(old))
		return
	}
	st.unbind(old)
}

// linger keeps a removed template's works where held owners still run a
// manifest that references it. They keep what was released to them.
func (st *step) linger(old *Binding, needed need) *Binding {
	b := &Binding{ID: old.ID, Active: old.Active, Immediate: old.Immediate, Own: old.Own}
	switch t := st.prev.snapshot().Templates.At(old.Key()); {
	case old.attached():
		b.Immediate = &fleet.Immediate{Preserve: &needed.preserve}
	case t != nil:
		b.Immediate = st.in.claims().immediateOfRemoved(old, t)
	}

	for _, w := range old.Works {
		if needed.on[w.Cluster].runs && w.Released != nil {
			b.Works = append(b.Works, Work{Cluster: w.Cluster, Want: w.Released, Released: w.Released, Held: true, Preserve: b.inForce().Keeps()})
		}
	}
	return b
}

// unbind removes a binding.
func (st *step) unbind(old *Binding) {
	if old == nil {
		return
	}

	// What it requires is decided after it, and is left running if it is.
	keep := st.keeps(old)
	for _, id := range old.references() {
		st.kept[id.Key()] = st.kept[id.Key()] || keep
	}

	st.removals.add(old, nil, keep)
	st.removals.keepDetached(old.Key(), keep)
	st.lingered(old)

	st.next.Bindings = st.next.Bindings.Without(old.Key())
	st.next.index.binding(old, nil)
	st.next.Works -= len(old.Works)
	st.next.Evictions -= len(old.Evictions)
}

// keeps reports whether what a binding leaves behind goes on running, as the
// immediate fields of this step say.
func (st *step) keeps(old *Binding) bool {
	t := st.prev.snapshot().Templates.At(old.Key())
	switch {
	case st.ownKeeps(old):
		return true
	case old.attached():
		return st.attachedKeeps(old, t)
	case t == nil:
		return old.Immediate.Keeps()
	}
	return st.in.claims().immediateOfRemoved(old, t).Keeps()
}

// ownKeeps reports whether the template's own annotation says so (decision 52): as
// it is in git, or was when the template was removed.
func (st *step) ownKeeps(old *Binding) bool {
	if t := st.next.snapshot().Templates.At(old.Key()); t != nil {
		return t.Immediate.Keeps()
	}
	return old.Own.Keeps()
}

// attachedKeeps is keeps for what was attached to others: it is left running if
// any of those preserves it that require it, or required it up to now, also one
// that is removed itself (decision 17). The policy that claims it counts as one
// of them, and one that would be active for it by now decides alone. A policy
// that no longer claims it leaves its last immediate fields (fold rule 12).
func (st *step) attachedKeeps(old *Binding, t *fleet.Template) bool {
	claimer, alone := st.claimerOfAttached(old, t)
	if alone {
		return fleet.ImmediateOf(claimer).Keeps()
	}

	keep := st.kept[old.Key()] || claimer != nil && fleet.ImmediateOf(claimer).Keeps()
	for owner := range st.cycle.owners(&st.next, old.ID) {
		keep = keep || owner.inForce().Keeps()
	}

	for id := range st.prev.index.owners(old.ID) {
		owner := st.next.Bindings.At(id.Key())
		if st.cycle.has(id) {
			owner = cmp.Or(st.cycle.decided[id.Key()], st.prev.Bindings.At(id.Key()))
		}
		keep = keep || owner != nil && owner.inForce().Keeps()
	}
	return keep
}

// claimerOfAttached is the policy that claims what was attached to others, nil
// without one, and whether it would be active for it by now.
func (st *step) claimerOfAttached(old *Binding, t *fleet.Template) (claimer *fleet.Policy, alone bool) {
	policyRemoved := false
	if old.Claim != nil {
		claimer = st.prev.snapshot().Policies.At(old.Claim.Key())
		policyRemoved = st.next.snapshot().Policies.At(old.Claim.Key()) == nil
	}

	now := st.next.snapshot().Templates.At(old.Key())
	if t := cmp.Or(now, t); t != nil && (now != nil || !policyRemoved) {
		c := st.in.claims()
		v := c.claim(old, t)
		if now == nil && c.activates(v) {
			return v.policy, true
		}
		claimer = cmp.Or(v.policy, claimer)
	}
	return claimer, false
}

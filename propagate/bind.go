// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"reflect"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// decide makes the binding of everything that is dirty, in waves: definitions of
// kinds first, because where they go decides where objects of their kinds can
// go; then what can require others; then the rest, which may be required.
func (st *step) decide() {
	done := map[string]bool{}
	for _, wave := range []func(object.ID) bool{
		func(id object.ID) bool { return id.GroupKind() == object.CRD },
		st.in.canRequire,
		func(id object.ID) bool { return true },
	} {
		for st.decideWave(wave, done) {
			// What is required can require others itself.
		}
	}
}

// decideWave decides about what is dirty in one wave and not decided yet. It
// reports whether there was any.
func (st *step) decideWave(wave func(object.ID) bool, done map[string]bool) bool {
	var keys []string
	for key := range st.dirty {
		if id, _ := object.ParseKey(key); !done[key] && wave(id) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)

	for _, group := range ownersFirst(st.in, keys, done) {
		if !slices.ContainsFunc(group, func(key string) bool { return st.dirty[key] }) {
			continue
		}

		if st.overloaded() {
			return false
		}

		if len(group) > 1 {
			st.bindCycle(group)
		} else {
			st.bind(group[0])
		}

		for _, key := range group {
			done[key] = true
			delete(st.dirty, key)
			st.markFollowing(key)
		}
	}

	return len(keys) > 0
}

// bind makes a decision about one template and writes it: first what its owners
// need of it, then the stages of the decision, then the binding in the place of
// the old one and the removals that follow.
func (st *step) bind(key string) {
	old, t := st.prev.Bindings.At(key), st.next.Snapshot.Templates.At(key)
	id, _ := object.ParseKey(key)

	// Owners are decided before what they require, so their works are known.
	needed := needOf(id, st.cycle.owners(&st.next, id))
	if t == nil {
		st.remove(old, needed)
		return
	}

	if old != nil && st.prev.snapshot().Templates.At(key) == nil {
		old = old.recreated()
	}

	// Without a claim and without owners there is nothing to bind.
	d := &decision{inputs: st.in, old: old, template: t, needed: needed}
	d.claim()
	if d.waits() {
		st.unbind(old)
		return
	}

	b := d.decide()
	keep := b.inForce().Keeps() || d.forOwners() && old != nil && st.keeps(old)
	st.replace(old, b, keep)
}

// recreated is what remains of a template that was removed and is created
// again: its works are what runs, and nothing was ever active for it.
func (b *Binding) recreated() *Binding {
	fresh := *b
	fresh.Active = &Active{Template: b.Active.Template, TemplateCommit: b.Active.TemplateCommit, Policy: attachedAbort, PolicyCommit: b.Active.PolicyCommit}
	fresh.Immediate = &fleet.Immediate{}
	return &fresh
}

// replace puts a binding in the place of an older one, if any, and accounts
// for the works that only the older one has.
func (st *step) replace(old, b *Binding, keep bool) {
	st.write(old, b)
	if old != nil {
		st.removals.add(old, b, keep)
	}
	st.removals.forget(b)
}

// write puts a binding into the state, unless nothing about it changed: then
// the old one stays, so that a comparison of states passes over it.
func (st *step) write(old, b *Binding) {
	if old != nil && reflect.DeepEqual(old, b) {
		return
	}

	st.next.Bindings = st.next.Bindings.With(b.Key(), b)
	st.next.index.binding(old, b)

	st.next.Works += len(b.Works)
	st.next.Evictions += len(b.Evictions)
	if old != nil {
		st.next.Works -= len(old.Works)
		st.next.Evictions -= len(old.Evictions)
	}
}

// answered is what scripts said for a binding.
func (b *Binding) answered() *answers {
	if b == nil {
		return nil
	}
	return b.answers
}

// claim is the policy that has the binding's template, nil without one.
func (b *Binding) claim() *fleet.PolicyRef {
	if b == nil {
		return nil
	}
	return b.Claim
}

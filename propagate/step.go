// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"reflect"
	"slices"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Step folds one commit. The stages are those of the fold, in its order:
//
//	validate → claims → activation → brakes → schedule → dependencies → works → guard
//
// A commit that could not be read, rendered or validated, or that the guard
// holds, contributes nothing but the reason (fold rule 3): everything else in
// the state stays, and the next commit is compared with the same snapshot.
func Step(prev State, c Commit) State {
	if c.Snapshot == nil {
		return prev.refuse(c, nil, c.Problems)
	}
	next, guard := advance(prev, c)
	if guard != nil {
		return prev.refuse(c, guard, guard.problems())
	}
	return next
}

// Preview is Step without the guard's veto: the state as if the commit were
// confirmed, and what the guard would say.
func Preview(prev State, c Commit) (State, *Guard) {
	if c.Snapshot == nil {
		return prev.refuse(c, nil, c.Problems), nil
	}
	return advance(prev, c)
}

func (s State) refuse(c Commit, g *Guard, problems []Problem) State {
	s.Commit = c.Hash
	s.Refusal = &Refusal{Commit: c.Hash, Problems: problems, Guard: g}
	return s
}

// step is one Step while it is made.
type step struct {
	commit Commit
	prev   *State
	next   State
	dirty  map[string]bool // templates to look at, by ID.Key()
	kept   map[string]bool // what owners that go leave running, by ID.Key()
	// changed are clusters, before and after, about which more changed than
	// their room.
	changed []*schedule.Cluster
	fresh   map[string]bool        // what is placed anew, by ID.Key()
	asked   map[*Template]*answers // of scripts, in this step
	circle  *circle                // that is being decided
	// now is the moment of what was observed, in seconds since 1970; 0 in a
	// step that folds a commit, which takes no time.
	now        int64
	gone       map[Place]bool // objects that are observed to be gone
	deletions  []Deletion
	emptyUnits []string
}

func newStep(prev *State, c Commit) *step {
	return &step{commit: c, prev: prev, next: *prev, dirty: map[string]bool{}, kept: map[string]bool{}, fresh: map[string]bool{}, gone: map[Place]bool{}}
}

func advance(prev State, c Commit) (State, *Guard) {
	st := newStep(&prev, c)
	st.next.Commit, st.next.Accepted, st.next.Refusal = c.Hash, c.Hash, nil
	st.next.Snapshot = c.Snapshot
	if c.Snapshot == prev.Snapshot {
		return st.next, nil
	}
	st.freeze()
	st.gates()
	returned := st.clusters()
	st.policies()
	st.templates()
	st.overrides()
	st.interpreters()
	st.rebalancers()
	st.units()
	st.bindAll()
	if len(returned) > 0 {
		st.reclaim(returned)
	}
	return st.next, st.guard()
}

// empty is the snapshot before the first commit.
var empty = &Snapshot{}

func (s *State) snapshot() *Snapshot {
	if s.Snapshot == nil {
		return empty
	}
	return s.Snapshot
}

// gates has every template looked at when a gate was switched.
func (st *step) gates() {
	before, after := st.prev.snapshot(), st.next.Snapshot
	if before.Settings == after.Settings {
		return
	}
	for name := range Gates() {
		if before.gate(name) == after.gate(name) {
			continue
		}
		for key := range after.Templates.All() {
			st.dirty[key] = true
		}
	}
}

// clusters notes which clusters came back, and has every binding looked at
// when something about any cluster changed. How much room a cluster has only
// matters to bindings that have no place: the others stay where they are
// (digest §3.6).
func (st *step) clusters() (returned map[string]bool) {
	before, after := st.prev.snapshot().Clusters, st.next.Snapshot.Clusters
	observed := false
	returned = map[string]bool{}
	for d := range ordered.Diff(before, after) {
		if d.Had && d.Has && sameMember(d.Before, d.After) {
			observed = observed || !reflect.DeepEqual(d.Before.Status, d.After.Status)
			continue
		}
		for _, c := range []*Cluster{d.Before, d.After} {
			if c != nil {
				st.changed = append(st.changed, c.placed)
			}
		}
		if !d.Had {
			returned[d.Key] = true
		}
	}
	if len(st.changed) == 0 && !observed {
		if st.prev.snapshot().gate(GateFailover) != st.next.Snapshot.gate(GateFailover) {
			st.next.index.clusters = st.next.candidates()
		}
		return nil
	}
	st.next.index.clusters = st.next.candidates()
	for key, b := range st.prev.Bindings.All() {
		if len(st.changed) > 0 || b.Scheduled.Reason != workv1alpha2.ReasonSuccess {
			st.dirty[key] = true
		}
	}
	return returned
}

// sameMember is whether nothing but the room in a cluster changed.
func sameMember(a, b *Cluster) bool {
	return reflect.DeepEqual(a.ObjectMeta, b.ObjectMeta) && reflect.DeepEqual(a.Spec, b.Spec) &&
		reflect.DeepEqual(a.Status.APIEnablements, b.Status.APIEnablements) && readyIn(a.Status.Conditions) == readyIn(b.Status.Conditions)
}

// policies has looked at what a changed policy has, and what it may get.
func (st *step) policies() {
	static := st.next.Snapshot.gate(GateStaticPolicy)
	for d := range ordered.Diff(st.prev.snapshot().Policies, st.next.Snapshot.Policies) {
		st.next.index.policy(d.Before, d.After)
		for _, p := range []*Policy{d.Before, d.After} {
			if p == nil {
				continue
			}
			for id := range st.prev.index.claimedBy(p.Ref) {
				st.dirty[id.Key()] = true
			}
		}
		if d.Has {
			for t := range st.prev.index.reach(d.After) {
				st.dirty[t.Key()] = true
			}
		}
		if d.Had && static {
			// It may be what templates of others wait for, or nobody's.
			for t := range st.prev.index.reach(d.Before) {
				st.dirty[t.Key()] = true
			}
		}
	}
}

func (st *step) templates() {
	for d := range ordered.Diff(st.prev.snapshot().Templates, st.next.Snapshot.Templates) {
		st.next.index.template(d.Before, d.After)
		st.dirty[d.Key] = true
		id, _ := ParseKey(d.Key)
		id.Name = ""
		for owner := range under(st.prev.index.selects, id.Key()) {
			st.dirty[owner.Key()] = true
		}
	}
}

// overrides has looked at what a changed override may edit, and at what waits
// for it.
func (st *step) overrides() {
	for d := range ordered.Diff(st.prev.snapshot().Overrides, st.next.Snapshot.Overrides) {
		st.next.index.override(d.Before, d.After)
		for _, o := range []*Override{d.Before, d.After} {
			if o == nil {
				continue
			}
			for t := range st.next.index.touched(o) {
				st.dirty[t.Key()] = true
			}
		}
		if d.Had != d.Has {
			st.dependents(cmp.Or(d.Before, d.After).Ref)
		}
	}
}

// dependents has looked at what policies reach that wait for an override.
func (st *step) dependents(r OverrideRef) {
	for p := range st.next.Snapshot.Policies.Values() {
		if p.Ref.Namespace != r.Namespace || !slices.Contains(p.Spec.DependentOverrides, r.Name) {
			continue
		}
		for t := range st.next.index.reach(p) {
			st.dirty[t.Key()] = true
		}
	}
}

// waitsFor is an override that a policy wants to exist before it is applied,
// and that does not (digest §2.3).
func (s *Snapshot) waitsFor(p *Policy) bool {
	for _, name := range p.Spec.DependentOverrides {
		if _, ok := s.Overrides.Get(OverrideRef{p.Ref.Namespace, name}.Key()); !ok {
			return true
		}
	}
	return false
}

// units finds those that rendered something and now render nothing.
func (st *step) units() {
	for d := range ordered.Diff(st.prev.snapshot().Units, st.next.Snapshot.Units) {
		if d.Had && d.Has && d.Before.Objects > 0 && d.After.Objects == 0 {
			st.emptyUnits = append(st.emptyUnits, d.Key)
		}
	}
}

// bindAll decides about everything that is dirty, in waves: definitions of
// kinds first, because where they go decides where objects of their kinds can
// go; then what can need others beside it; then the rest, which may be needed.
func (st *step) bindAll() {
	done := map[string]bool{}
	for _, wave := range []func(ID) bool{
		func(id ID) bool { return id.GroupKind() == crd },
		st.needsOthers,
		func(id ID) bool { return true },
	} {
		for st.bindWave(wave, done) {
			// What scripts require can require others itself.
		}
	}
}

// bindWave decides about what is dirty in one wave and not decided yet, and
// says whether there was any.
func (st *step) bindWave(wave func(ID) bool, done map[string]bool) bool {
	var keys []string
	for key := range st.dirty {
		if id, _ := ParseKey(key); !done[key] && wave(id) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, group := range st.ownersFirst(keys, done) {
		if !slices.ContainsFunc(group, func(key string) bool { return st.dirty[key] }) {
			continue
		}
		if len(group) > 1 {
			st.bindCircle(group)
		} else {
			st.bind(group[0])
		}
		for _, key := range group {
			done[key] = true
			delete(st.dirty, key)
			st.spread(key)
		}
	}
	return len(keys) > 0
}

// spread has looked at what a decision concerns besides its own template.
func (st *step) spread(key string) {
	before, after := st.prev.Bindings.At(key), st.next.Bindings.At(key)
	for _, b := range []*Binding{before, after} {
		if before == after {
			break
		}
		for _, id := range b.references() {
			st.dirty[id.Key()] = true
		}
	}
	if id, _ := ParseKey(key); id.GroupKind() != crd {
		return
	}
	for _, t := range []*Template{st.prev.snapshot().Templates.At(key), st.next.Snapshot.Templates.At(key)} {
		if t == nil {
			continue
		}
		for defined := range st.definedBy(t) {
			st.dirty[defined.Key()] = true
		}
	}
}

// bind decides about one template.
func (st *step) bind(key string) {
	old := st.prev.Bindings.At(key)
	t := st.next.Snapshot.Templates.At(key)
	id, _ := ParseKey(key)
	on, attached, preserve := st.attachments(id)
	if t == nil {
		st.remove(old, on, preserve)
		return
	}
	if old != nil && st.prev.snapshot().Templates.At(key) == nil {
		old = old.again()
	}
	v := st.claim(old, t)
	activated := st.activates(v)
	if !activated && (old == nil || old.attached()) {
		st.bindInactive(old, t, v, on, attached, preserve)
		return
	}

	b := st.decide(old, t, v, activated, on)
	st.replace(old, b, b.Brakes.Keeps())
}

// again is what lingers of a template that is created anew: its works are what
// runs, and nothing was ever active for it.
func (b *Binding) again() *Binding {
	fresh := *b
	fresh.Active = &Active{Template: b.Active.Template, TemplateCommit: b.Active.TemplateCommit, Policy: attachedAbort, PolicyCommit: b.Active.PolicyCommit}
	fresh.Brakes = &Brakes{}
	return &fresh
}

// decide makes the binding of a template that is active, or becomes so.
func (st *step) decide(old *Binding, t *Template, v verdict, activated bool, on map[string]attachment) *Binding {
	b := &Binding{ID: t.ID, Claim: v.ref(), Unmatched: !activated && (old.Unmatched || v.policy == nil && v.touched)}
	if activated {
		b.Active = st.activate(old, t, v.policy)
	} else {
		b.Active = old.Active
	}
	b.Brakes = st.brakes(old, v, b.inEffect(v.policy, t))
	b.Pending = st.pending(b, old, t, v)
	b.answers = st.answer(b.Active.Template, old.answered())
	st.place(b, old, v.policy != nil)
	st.requires(b, old)
	st.works(b, old, on)
	return b
}

// bindInactive decides about a template that was never active on its own: it
// goes where its owners need it, with its current content, or it waits.
func (st *step) bindInactive(old *Binding, t *Template, v verdict, on map[string]attachment, attached *Policy, preserve bool) {
	if len(on) == 0 && (v.policy == nil || st.next.Snapshot.waitsFor(v.policy)) {
		st.unbind(old)
		return // it waits for a policy
	}
	b := st.attach(old, t, attached, preserve)
	if v.policy != nil {
		// The policy that claims it counts as one of those that need it.
		b.Claim = v.ref()
		b.Brakes = b.Brakes.with(brakesOf(v.policy))
		b.Pending = st.pending(b, old, t, v)
		for cluster, a := range on {
			on[cluster] = attachment{held: a.held && brakesOf(v.policy).Hold(cluster)}
		}
	}
	st.works(b, old, on)
	st.replace(old, b, b.Brakes.Keeps() || old != nil && st.keeps(old))
}

// ref names the claiming policy, nil without one.
func (v verdict) ref() *PolicyRef {
	if v.policy == nil {
		return nil
	}
	return &v.policy.Ref
}

// replace puts a binding in the place of an older one, if any, and accounts
// for what that had and this has not.
func (st *step) replace(old, b *Binding, keep bool) {
	st.keep(old, b)
	if old != nil {
		st.depart(old, b, keep)
	}
	st.arrive(b)
}

// answered is what scripts said for a binding.
func (b *Binding) answered() *answers {
	if b == nil {
		return nil
	}
	return b.answers
}

// claim is the policy that has the binding's template, nil without one.
func (b *Binding) claim() *PolicyRef {
	if b == nil {
		return nil
	}
	return b.Claim
}

// remove takes a removed template's binding away, with the brakes of this
// step, except where held owners still run what references it.
func (st *step) remove(old *Binding, on map[string]attachment, preserve bool) {
	if old == nil {
		return
	}
	if b := st.linger(old, on, preserve); len(b.Works) > 0 {
		st.replace(old, b, st.keeps(old))
		return
	}
	st.unbind(old)
}

// keeps is whether what a binding leaves behind goes on running: as the brakes
// of this step say.
func (st *step) keeps(old *Binding) bool {
	t := st.prev.snapshot().Templates.At(old.Key())
	switch {
	case old.attached():
		return st.attachedKeeps(old, t)
	case t == nil:
		return old.Brakes.Keeps()
	}
	return st.brakesOfRemoved(old, t).Keeps()
}

// attachedKeeps is keeps for what was attached to others: it is left running if
// any of those has it so that require it, or required it up to now, also one
// that goes itself (decision 17). The policy that claims it counts as one of
// them, and one that would be active for it by now decides alone. A policy that
// lets go of it leaves its last brakes (fold rule 12).
func (st *step) attachedKeeps(old *Binding, t *Template) bool {
	keep := st.kept[old.Key()]
	var claimer *Policy
	went := false
	if old.Claim != nil {
		claimer = st.prev.snapshot().Policies.At(old.Claim.Key())
		went = st.next.Snapshot.Policies.At(old.Claim.Key()) == nil
	}
	now := st.next.Snapshot.Templates.At(old.Key())
	if t := cmp.Or(now, t); t != nil && (now != nil || !went) {
		v := st.claim(old, t)
		if now == nil && st.activates(v) {
			return brakesOf(v.policy).Keeps()
		}
		claimer = cmp.Or(v.policy, claimer)
	}
	keep = keep || claimer != nil && brakesOf(claimer).Keeps()
	for owner := range st.owners(old.ID) {
		keep = keep || owner.Brakes.Keeps()
	}
	for id := range st.prev.index.owners(old.ID) {
		owner := st.next.Bindings.At(id.Key())
		if st.circle != nil && st.circle.members[id.Key()] {
			owner = cmp.Or(st.circle.decided[id.Key()], st.prev.Bindings.At(id.Key()))
		}
		keep = keep || owner != nil && owner.Brakes.Keeps()
	}
	return keep
}

// unbind takes a binding away.
func (st *step) unbind(old *Binding) {
	if old == nil {
		return
	}
	keep := st.keeps(old)
	for _, id := range old.references() {
		st.kept[id.Key()] = st.kept[id.Key()] || keep
	}
	st.depart(old, nil, keep)
	if left := st.next.Left.At(old.Key()); left != nil {
		for _, g := range left.Clusters {
			g.Preserve = keep
			left = left.with(left.ID, left.APIVersion, g)
		}
		st.next.Left = st.next.Left.With(old.Key(), left)
	}
	st.next.Bindings = st.next.Bindings.Without(old.Key())
	st.next.index.binding(old, nil)
	st.next.Works -= len(old.Works)
	st.next.Evictions -= len(old.Evictions)
}

// keep writes a binding, unless nothing about it changed: then the old one
// stays, and with it everything that is kept by what differs.
func (st *step) keep(old, b *Binding) {
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

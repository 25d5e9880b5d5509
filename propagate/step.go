// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"maps"
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
	commit     Commit
	prev       *State
	next       State
	dirty      map[string]bool // templates to look at, by ID.Key()
	deletions  []Deletion
	emptyUnits []string
}

type absences = ordered.Map[*Absence]

func advance(prev State, c Commit) (State, *Guard) {
	st := &step{commit: c, prev: &prev, next: prev, dirty: map[string]bool{}}
	st.next.Commit, st.next.Accepted, st.next.Refusal = c.Hash, c.Hash, nil
	st.next.Snapshot = c.Snapshot
	if c.Snapshot == prev.Snapshot {
		return st.next, nil
	}
	returned := st.clusters()
	st.policies()
	st.templates()
	st.overrides()
	st.units()
	for _, key := range st.inOrder() {
		st.bind(key)
	}
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

// clusters notes which clusters came back, and has every binding looked at
// when something about any cluster changed. How much room a cluster has only
// matters to bindings that have no place: the others stay where they are
// (digest §3.6).
func (st *step) clusters() (returned map[string]bool) {
	before, after := st.prev.snapshot().Clusters, st.next.Snapshot.Clusters
	changed, observed := false, false
	returned = map[string]bool{}
	for d := range ordered.Diff(before, after) {
		changed = changed || !d.Had || !d.Has || !sameMember(d.Before, d.After)
		observed = observed || !changed && !reflect.DeepEqual(d.Before.Status, d.After.Status)
		if !d.Had {
			returned[d.Key] = true
		}
	}
	if !changed && !observed {
		return nil
	}
	st.next.index.clusters = make([]*schedule.Cluster, 0, after.Len())
	for c := range after.Values() {
		st.next.index.clusters = append(st.next.index.clusters, c.placed)
	}
	for key, b := range st.prev.Bindings.All() {
		if changed || b.Scheduled.Reason != workv1alpha2.ReasonSuccess {
			st.dirty[key] = true
		}
	}
	return returned
}

// sameMember is whether nothing but the room in a cluster changed.
func sameMember(a, b *Cluster) bool {
	return reflect.DeepEqual(a.ObjectMeta, b.ObjectMeta) && reflect.DeepEqual(a.Spec, b.Spec) &&
		reflect.DeepEqual(a.Status.APIEnablements, b.Status.APIEnablements)
}

// policies has looked at what a changed policy has, and what it may get.
func (st *step) policies() {
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
	}
}

func (st *step) templates() {
	for d := range ordered.Diff(st.prev.snapshot().Templates, st.next.Snapshot.Templates) {
		st.next.index.template(d.Before, d.After)
		st.dirty[d.Key] = true
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
func (st *step) waitsFor(p *Policy) bool {
	for _, name := range p.Spec.DependentOverrides {
		if _, ok := st.next.Snapshot.Overrides.Get(OverrideRef{p.Ref.Namespace, name}.Key()); !ok {
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

// inOrder lists what is dirty: definitions of kinds first, because where they
// go decides where objects of their kinds can go.
func (st *step) inOrder() []string {
	definitions := func(key string) bool {
		id, _ := ParseKey(key)
		return id.GroupKind() == crd
	}
	for key := range maps.Clone(st.dirty) {
		if !definitions(key) {
			continue
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
	return slices.SortedFunc(maps.Keys(st.dirty), func(a, b string) int {
		if da, db := definitions(a), definitions(b); da != db {
			if da {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}

// bind decides about one template.
func (st *step) bind(key string) {
	old := st.prev.Bindings.At(key)
	t := st.next.Snapshot.Templates.At(key)
	if t == nil {
		st.remove(old)
		return
	}
	p := st.claim(t, old.claim())
	if p == nil && old == nil {
		return // it waits for a policy
	}
	if p != nil && st.waitsFor(p) {
		return // it stays as it is until the overrides are there
	}

	b := &Binding{ID: t.ID}
	if p != nil {
		b.Claim = &p.Ref
	}
	b.Active, b.Pending = st.activate(old, t, p)
	b.Brakes = brakes(old, p)
	st.place(b, old)
	st.works(b, old)
	st.keep(old, b)
	if old != nil {
		st.depart(old, b, b.Brakes.Keeps())
	}
	st.arrive(b)
}

// claim is the policy that has the binding's template, nil without one.
func (b *Binding) claim() *PolicyRef {
	if b == nil {
		return nil
	}
	return b.Claim
}

// remove takes a template's binding away, with the brakes of this step.
func (st *step) remove(old *Binding) {
	if old == nil {
		return
	}
	keep := st.brakesOfRemoved(old, st.prev.Snapshot.Templates.At(old.Key())).Keeps()
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
	if old != nil {
		st.next.Works -= len(old.Works)
	}
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"reflect"
	"slices"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/schedule"
)

// mark finds the templates that the commit can concern. A template that is not
// marked keeps its binding as it is.
//
// The marks need no order among them: each adds to the same set, and reads only
// the snapshots, the state before this step and the index that is up to date
// already.
func (st *step) mark() {
	st.markGates()
	st.markClusters()
	st.markPolicies()
	st.markTemplates()
	st.markOverrides()
	st.markInterpreters()
	st.markRebalancers()
}

// markGates marks every template when a feature gate is toggled, or other namespaces
// are skipped.
func (st *step) markGates() {
	before, after := st.prev.snapshot(), st.next.snapshot()
	if before.Settings == after.Settings {
		return
	}

	if !slices.Equal(before.SkippedNamespaces(), after.SkippedNamespaces()) {
		for key := range after.Templates.All() {
			st.dirty[key] = true
		}
	}

	for name := range fleet.Gates() {
		if before.Gate(name) == after.Gate(name) {
			continue
		}
		for key := range after.Templates.All() {
			st.dirty[key] = true
		}
	}
}

// markClusters marks every binding when more than the room of a cluster
// changed. How much room a cluster has only matters to bindings that have no
// place: the others stay where they are (digest §3.6).
func (st *step) markClusters() {
	if len(st.clusters.changed) == 0 && !st.clusters.room {
		return
	}

	for key, b := range st.prev.Bindings.All() {
		if len(st.clusters.changed) > 0 || b.Scheduled.Reason != workv1alpha2.ReasonSuccess {
			st.dirty[key] = true
		}
	}
}

// clusterDiff is what changed about the clusters of the fleet.
type clusterDiff struct {
	// changed are clusters, before and after, about which more changed than
	// their room.
	changed  []*schedule.Cluster
	room     bool            // the room of a cluster changed
	returned map[string]bool // clusters that were not in the fleet before
}

func diffClusters(before, after *fleet.Snapshot) clusterDiff {
	diff := clusterDiff{returned: map[string]bool{}}
	for d := range ordered.Diff(before.Clusters, after.Clusters) {
		if d.Had && d.Has && fleet.SameExceptCapacity(d.Before, d.After) {
			diff.room = diff.room || !reflect.DeepEqual(d.Before.Status, d.After.Status)
			continue
		}

		for _, c := range []*fleet.Cluster{d.Before, d.After} {
			if c != nil {
				diff.changed = append(diff.changed, c.Candidate)
			}
		}
		if !d.Had {
			diff.returned[d.Key] = true
		}
	}
	return diff
}

// markPolicies marks the templates that a changed policy has, and those that it
// may claim now.
func (st *step) markPolicies() {
	static := st.next.snapshot().Gate(fleet.GateStaticPolicy)
	for d := range ordered.Diff(st.prev.snapshot().Policies, st.next.snapshot().Policies) {
		for _, p := range []*fleet.Policy{d.Before, d.After} {
			if p == nil {
				continue
			}
			for id := range st.prev.index.claimedBy(p.Ref) {
				st.dirty[id.Key()] = true
			}
		}

		if d.Has {
			st.markReach(&st.prev.index, d.After)
		}
		if d.Had && static {
			// Templates that other policies claim, or none, may be pending on it.
			st.markReach(&st.prev.index, d.Before)
		}
	}
}

// markReach marks the templates of an index that a policy's selectors may match.
func (st *step) markReach(ix *index, p *fleet.Policy) {
	for t := range ix.reach(p) {
		st.dirty[t.Key()] = true
	}
}

// markTemplates marks the templates that changed, and those whose scripts
// select objects of their kind by labels.
func (st *step) markTemplates() {
	for d := range ordered.Diff(st.prev.snapshot().Templates, st.next.snapshot().Templates) {
		st.dirty[d.Key] = true

		kind, _ := object.ParseKey(d.Key)
		kind.Name = ""
		for owner := range under(st.prev.index.selects, kind.Key()) {
			st.dirty[owner.Key()] = true
		}
	}
}

// markOverrides marks the templates that a changed override may edit, and those
// that wait for it.
func (st *step) markOverrides() {
	for d := range ordered.Diff(st.prev.snapshot().Overrides, st.next.snapshot().Overrides) {
		for _, o := range []*fleet.Override{d.Before, d.After} {
			if o == nil {
				continue
			}
			for t := range st.next.index.touched(o) {
				st.dirty[t.Key()] = true
			}
		}

		if d.Had != d.Has {
			st.markDependents(cmp.Or(d.Before, d.After).Ref)
		}
	}
}

// markDependents marks what policies may match that depend on an override.
func (st *step) markDependents(r fleet.OverrideRef) {
	for p := range st.next.snapshot().Policies.Values() {
		if p.Ref.Namespace == r.Namespace && slices.Contains(p.Spec.DependentOverrides, r.Name) {
			st.markReach(&st.next.index, p)
		}
	}
}

// markInterpreters marks the bindings of a kind whose interpreter changed (fold
// rule 15: it acts at once).
func (st *step) markInterpreters() {
	changed := map[string]bool{}
	for d := range ordered.Diff(st.prev.snapshot().Interpreters, st.next.snapshot().Interpreters) {
		if d.Had && d.Has && d.Before.Digest == d.After.Digest {
			continue // it moved to another file
		}
		for _, in := range []*fleet.Interpreter{d.Before, d.After} {
			if in != nil {
				changed[join(in.APIVersion, in.Kind)] = true
			}
		}
	}

	if len(changed) == 0 {
		return
	}

	for key, b := range st.prev.Bindings.All() {
		active, now := b.Active.Template, st.next.snapshot().Templates.At(key)
		if changed[join(active.APIVersion, active.Kind)] || now != nil && changed[join(now.APIVersion, now.Kind)] {
			st.dirty[key] = true
		}
	}
}

// markRebalancers marks the workloads that a new or edited rebalancer names, to
// be placed anew.
func (st *step) markRebalancers() {
	for d := range ordered.Diff(st.prev.snapshot().Rebalancers, st.next.snapshot().Rebalancers) {
		if !d.Has || d.Had && d.Before.Digest == d.After.Digest {
			continue
		}
		for _, id := range d.After.Workloads {
			if st.prev.Bindings.At(id.Key()) != nil {
				st.dirty[id.Key()], st.in.fresh[id.Key()] = true, true
			}
		}
	}
}

// markObserved is the mark of a step without a commit: every binding when a
// cluster became ready or ceased to be, and else those that time or their own
// health can move.
func (st *step) markObserved() {
	f := st.in.failover()
	for key, b := range st.prev.Bindings.All() {
		if len(st.in.changed) > 0 || f.concerns(b) {
			st.dirty[key] = true
		}
	}
}

// markFollowing marks what the decision about one template concerns besides the
// template itself: what its binding references, and if it defines a kind, the
// templates of that kind. It is called after each decision, as they follow from it.
func (st *step) markFollowing(key string) {
	before, after := st.prev.Bindings.At(key), st.next.Bindings.At(key)
	if before != after {
		for _, b := range []*Binding{before, after} {
			for _, id := range b.references() {
				st.dirty[id.Key()] = true
			}
		}
	}

	if id, _ := object.ParseKey(key); id.GroupKind() != object.CRD {
		return
	}

	for _, definition := range []*fleet.Template{st.prev.snapshot().Templates.At(key), st.next.snapshot().Templates.At(key)} {
		if definition == nil {
			continue
		}
		for t := range st.next.index.definedBy(definition) {
			st.dirty[t.Key()] = true
		}
	}
}

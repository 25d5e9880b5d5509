// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// Change is what one step did to one object: on a cluster, or, where
// Cluster is empty, to its binding as a whole.
type Change struct {
	Object  object.ID
	Cluster string
	Type    ChangeType
	Text    string // what the type does not say
	Policy  fleet.PolicyRef

	// Replicas is nil for kinds without, and for a binding as a whole.
	Replicas *ReplicaChange
	Because  []Because
}

// ChangeType is what happened.
type ChangeType string

// What happens to an object on a cluster.
const (
	ChangeCreated     ChangeType = "created"
	ChangeUpdated     ChangeType = "updated"
	ChangeScaled      ChangeType = "scaled"
	ChangeHeld        ChangeType = "held"      // content waits
	ChangeSuspended   ChangeType = "suspended" // held from here on, and nothing waits yet
	ChangeReleased    ChangeType = "released"  // what waited goes out
	ChangeResumed     ChangeType = "resumed"   // held no more, and nothing had waited
	ChangeReverted    ChangeType = "reverted"  // what waited was taken back
	ChangeBlocked     ChangeType = "blocked"   // there is no content to send
	ChangeUnblocked   ChangeType = "unblocked" // there is again, and it is what runs
	ChangeDeleted     ChangeType = "deleted"
	ChangeLeftRunning ChangeType = "left-running" // without our marks
	ChangeMoved       ChangeType = "moved"        // deleted, and as many others took it over
	ChangeDetached    ChangeType = "detached"     // its cluster left the fleet: it stays
	ChangeReturned    ChangeType = "returned"     // its cluster came back: it is as it was
	ChangeEvicted     ChangeType = "evicted"      // it is being moved away
)

// What happens to a binding as a whole.
const (
	ChangeClaimed     ChangeType = "claimed"
	ChangeUnclaimed   ChangeType = "unclaimed"
	ChangeDeferred    ChangeType = "deferred"  // a change waits
	ChangeActivated   ChangeType = "activated" // what waited is in effect
	ChangeUnmatched   ChangeType = "unmatched" // no policy takes the template
	ChangeUnscheduled ChangeType = "unscheduled"
)

// Sends reports whether the step changes what the cluster may run.
func (t ChangeType) Sends() bool {
	switch t {
	case ChangeCreated, ChangeUpdated, ChangeScaled, ChangeReleased:
		return true
	}
	return false
}

// Removes reports whether nothing of ours is there afterwards.
func (t ChangeType) Removes() bool {
	return t == ChangeDeleted || t == ChangeLeftRunning || t == ChangeMoved || t == ChangeDetached
}

// Changes is what a step from one state to the next did, by object and
// cluster; of an object what is about its binding comes first. Its cost
// follows what the step changed.
func Changes(before, after *State) []Change {
	all := &differ{planner: newPlanner(before, after)}
	for d := range ordered.Diff(before.Bindings, after.Bindings) {
		all.changed(d.Before, d.After)
	}
	for d := range ordered.Diff(before.snapshot().Templates, after.snapshot().Templates) {
		all.unmatched(d.Before, d.After)
	}
	all.reclaimed(func(object.ID) bool { return true })
	return all.changes
}

// BindingChanges is what a step did to the bindings that of picks, and to their works, by
// object and cluster.
func BindingChanges(before, after *State, of func(before, after *Binding) bool) []Change {
	d := &differ{planner: newPlanner(before, after)}
	for b := range ordered.Diff(before.Bindings, after.Bindings) {
		if of(b.Before, b.After) {
			d.changed(b.Before, b.After)
		}
	}
	d.sort()
	return d.changes
}

// ChangesOf is what a step did to one object.
func ChangesOf(id object.ID, before, after *State) []Change {
	d := &differ{planner: newPlanner(before, after)}
	key := id.Key()
	if was, is := before.Bindings.At(key), after.Bindings.At(key); was != is {
		d.changed(was, is)
	}
	d.unmatched(before.snapshot().Templates.At(key), after.snapshot().Templates.At(key))
	d.reclaimed(func(other object.ID) bool { return other == id })
	return d.changes
}

// differ compares two states as a planner does. It also has what a plan leaves
// out: a plan is about what a merge would do, and this about what was done.
type differ struct {
	*planner
	changes []Change
}

func (d *differ) add(c Change) { d.changes = append(d.changes, c) }

// changed adds the changes of a binding and of its works.
func (d *differ) changed(before, after *Binding) {
	d.whole(before, after)
	d.clusters(before, after)
}

// reclaimed adds what is removed from clusters that come back into the fleet.
func (d *differ) reclaimed(of func(object.ID) bool) {
	d.cells = nil
	d.returned()
	for _, c := range d.cells {
		what := ChangeDeleted
		if c.Action == ActionPreserve {
			what = ChangeLeftRunning
		}
		if of(c.Object) {
			d.add(Change{Object: c.Object, Cluster: c.Cluster, Type: what, Because: c.Because})
		}
	}
	d.sort()
}

func (d *differ) sort() {
	slices.SortStableFunc(d.changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Object.Key(), b.Object.Key()), cmp.Compare(a.Cluster, b.Cluster))
	})
}

// whole adds the changes of a binding as such.
func (d *differ) whole(before, after *Binding) {
	if after == nil {
		return
	}
	tell := func(what ChangeType, at Because, format string, args ...any) {
		d.add(Change{Object: after.ID, Type: what, Policy: d.refOf(after), Text: fmt.Sprintf(format, args...), Because: []Because{at}})
	}

	was := before.claim()
	switch {
	case before == nil: // what becomes of it names the policy
	case after.Claim != nil && was == nil:
		tell(ChangeClaimed, Because{"policy", d.why.policy(after).Origin}, "by %s", after.Claim)
	case after.Claim != nil && *was != *after.Claim:
		tell(ChangeClaimed, Because{"policy", d.why.policy(after).Origin}, "by %s, before it was %s", after.Claim, was)
	case after.Claim == nil && was != nil:
		tell(ChangeUnclaimed, Because{"template", origin(after, d.head)}, "%s no longer claims it; it stays as it is", *was)
	}

	waited := before != nil && before.Pending != nil
	switch {
	case after.Pending != nil && (!waited || *before.Pending != *after.Pending):
		step := tracer{d.head, after}.pendingStep()
		tell(ChangeDeferred, Because{"pending", step.Origin}, "%s", step.Text)
	case after.Pending == nil && waited && !before.Active.same(after.Active):
		tell(ChangeActivated, Because{"policy", d.why.policy(after).Origin}, "what waited since %s is in effect", short(before.Pending.Since))
	case after.Pending == nil && waited:
		tell(ChangeReverted, Because{"policy", d.why.policy(after).Origin}, "what waited since %s was taken back", short(before.Pending.Since))
	}

	failed := after.Scheduled.Reason != "" && after.Scheduled.Reason != workv1alpha2.ReasonSuccess
	if failed && (before == nil || before.Scheduled != after.Scheduled) {
		tell(ChangeUnscheduled, Because{"placement", d.why.policy(after).At("spec.placement")}, "%s", after.Scheduled.Message)
	}
}

// refOf is the policy that a binding is under.
func (d *differ) refOf(b *Binding) fleet.PolicyRef {
	if b.Claim != nil {
		return *b.Claim
	}
	return b.Active.Policy.Ref
}

// unmatched adds a template that is new or changed and that no policy takes.
func (d *differ) unmatched(before, after *fleet.Template) {
	if after == nil || before != nil && before.Update == after.Update || d.head.Bindings.At(after.Key()) != nil {
		return
	}

	step := tracer{state: d.head}.claimSteps(after)[0]
	d.add(Change{Object: after.ID, Type: ChangeUnmatched, Text: step.Text, Because: []Because{{"template", after.Origin}}})
}

// workChange is a work before and after a step.
type workChange struct {
	Change                 // what is known before its type
	before, after *Binding // nil where the template has none
	was, is       *Work    // nil where there is none
	action        Action   // that a plan has for it
}

// clusters adds what became of each work of a binding.
func (d *differ) clusters(before, after *Binding) {
	d.cells = nil
	d.binding(before, after)
	cells := map[string]Cell{}
	for _, c := range d.cells {
		cells[c.Cluster] = c
	}

	gained := d.takenOver(before, after)
	for _, cluster := range clustersOf(before, after) {
		c := workChange{before: before, after: after, was: before.workOn(cluster), is: after.workOn(cluster), action: cells[cluster].Action}
		c.Object, c.Cluster, c.Policy = cmp.Or(after, before).ID, cluster, d.refOf(cmp.Or(after, before))
		c.Because, c.Replicas = cells[cluster].Because, cells[cluster].Replicas

		if c.is == nil {
			d.removedWork(c, gained)
			continue
		}
		d.wantedWork(c)
	}
}

// workOn is Work, also of no binding.
func (b *Binding) workOn(cluster string) *Work {
	if b == nil {
		return nil
	}
	return b.Work(cluster)
}

// takenOver are the clusters that a binding moves to in this step: it gains as
// many as are deleted (fold rule 21). None where it does not move.
func (d *differ) takenOver(before, after *Binding) []string {
	if before == nil || after == nil {
		return nil
	}

	lost := 0
	var gained []string
	for i := range before.Works {
		w := &before.Works[i]
		if after.Work(w.Cluster) == nil && w.Released != nil && d.deletes(before.ID, w.Cluster) {
			lost++
		}
	}

	for i := range after.Works {
		if before.Work(after.Works[i].Cluster) == nil {
			gained = append(gained, after.Works[i].Cluster)
		}
	}

	if lost == 0 || len(gained) < lost {
		return nil
	}
	return gained
}

// deletes reports whether a copy on a cluster is deleted.
func (d *differ) deletes(id object.ID, cluster string) bool {
	removal := d.head.Removal(cluster, id)
	return removal != nil && !removal.Preserve
}

// removedWork adds what became of a work that is not wanted any more. gained are
// the clusters that took it over.
func (d *differ) removedWork(c workChange, gained []string) {
	if c.was.Released == nil {
		return // it was held from the beginning: nothing is there
	}

	removal := d.head.Removal(c.Cluster, c.Object)
	switch {
	case removal == nil:
		c.Type = ChangeDetached
		if cluster := d.base.snapshot().Clusters.At(c.Cluster); cluster != nil {
			c.Because = []Because{{"cluster-left", cluster.Origin}}
		}
	case removal.Preserve:
		c.Type = ChangeLeftRunning
	case len(gained) > 0:
		c.Type, c.Text = ChangeMoved, "to "+strings.Join(gained, " ")
	default:
		c.Type = ChangeDeleted
	}

	d.add(c.Change)
}

// wantedWork adds what became of a work that is wanted.
func (d *differ) wantedWork(c workChange) {
	returned := false
	if c.was == nil {
		c.was = detachedWork(d.base, c.Object, c.Cluster)
		returned = c.was != nil
	}
	if c.was == nil {
		c.was = &Work{Cluster: c.Cluster}
	}

	if c.after.Evicts(c.Cluster) && (c.before == nil || !c.before.Evicts(c.Cluster)) {
		c.Type, c.Text, c.Because = ChangeEvicted, c.after.evictionReason(c.Cluster), []Because{d.why.evicted(c.after, c.Cluster)}
		d.add(c.Change)
		return // the eviction holds it
	}

	switch c.Type = became(c.was, c.is, c.action, returned); c.Type {
	case "":
		return
	case ChangeResumed:
		c.Because = []Because{{"resumed", d.why.policy(c.after).At("spec.suspension")}}
	case ChangeBlocked:
		c.Text = c.is.Blocked
	}

	d.add(c.Change)
}

// evictionReason is why a binding is evicted from a cluster.
func (b *Binding) evictionReason(cluster string) string {
	for _, e := range b.Evictions {
		if e.Cluster == cluster {
			return e.Reason
		}
	}
	return ""
}

// became is the type of the change from one work to the next, "" where none is
// worth telling.
func became(was, is *Work, action Action, returned bool) ChangeType {
	sent := is.Released != nil && (was.Released == nil || was.Released.Digest != is.Released.Digest)
	waits := is.Blocked == "" && (is.Released == nil || is.Released.Digest != is.Want.Digest)
	waited := was.Want != nil && was.Blocked == "" && (was.Released == nil || was.Released.Digest != was.Want.Digest)

	switch {
	case is.Blocked != "" && is.Blocked != was.Blocked:
		return ChangeBlocked
	case sent && was.Held:
		return ChangeReleased
	case sent && action == ActionScale:
		return ChangeScaled
	case sent && action == ActionCreate:
		return ChangeCreated
	case sent:
		return ChangeUpdated
	case is.Blocked != "":
		return ""
	case is.Held && waits && (!was.Held || was.Want.Digest != is.Want.Digest):
		return ChangeHeld
	case is.Held && !was.Held:
		return ChangeSuspended
	case is.Held && waited && !waits:
		return ChangeReverted
	case !is.Held && was.Held:
		return ChangeResumed
	case was.Blocked != "":
		return ChangeUnblocked
	case returned:
		return ChangeReturned
	}

	return ""
}

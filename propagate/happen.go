// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/ordered"
)

// Happening is what one step did to one object: on a cluster, or, where
// Cluster is empty, to its binding as a whole.
type Happening struct {
	Object  ID
	Cluster string
	What    What
	Text    string // what the word does not say
	Policy  PolicyRef
	// Replicas is nil for kinds without, and for a binding as a whole.
	Replicas *ReplicaChange
	Because  []Because
}

// What is a word for a happening.
type What string

// What happens to an object on a cluster.
const (
	WhatCreated   What = "created"
	WhatUpdated   What = "updated"
	WhatScaled    What = "scaled"
	WhatHeld      What = "held"      // content waits
	WhatSuspended What = "suspended" // held from here on, and nothing waits yet
	WhatReleased  What = "released"  // what waited goes out
	WhatResumed   What = "resumed"   // held no more, and nothing had waited
	WhatReverted  What = "reverted"  // what waited was taken back
	WhatBlocked   What = "blocked"   // there is no content to send
	WhatUnblocked What = "unblocked" // there is again, and it is what runs
	WhatDeleted   What = "deleted"
	WhatPreserved What = "preserved" // left running, without our marks
	WhatMoved     What = "moved"     // deleted, and as many others took it over
	WhatLeft      What = "left"      // its cluster left the fleet: it stays
	WhatReturned  What = "returned"  // its cluster came back: it is as it was
	WhatEvicted   What = "evicted"   // it is being moved away
)

// What happens to a binding as a whole.
const (
	WhatClaimed     What = "claimed"
	WhatUnclaimed   What = "unclaimed"
	WhatDeferred    What = "deferred"  // a change waits
	WhatActivated   What = "activated" // what waited is in effect
	WhatUnmatched   What = "unmatched" // no policy takes the template
	WhatUnscheduled What = "unscheduled"
)

// Sends is whether the step changes what the cluster may run.
func (w What) Sends() bool {
	switch w {
	case WhatCreated, WhatUpdated, WhatScaled, WhatReleased:
		return true
	}
	return false
}

// Removes is whether nothing of ours is there afterwards.
func (w What) Removes() bool {
	return w == WhatDeleted || w == WhatPreserved || w == WhatMoved || w == WhatLeft
}

// Happened is what a step from one state to the next did, by object and
// cluster; of an object what is about its binding comes first. Its cost
// follows what the step changed.
func Happened(before, after *State) []Happening {
	n := &narrator{planner: planner{base: before, head: after}}
	for d := range ordered.Diff(before.Bindings, after.Bindings) {
		n.changed(d.Before, d.After)
	}
	for d := range ordered.Diff(before.snapshot().Templates, after.snapshot().Templates) {
		n.unmatched(d.Before, d.After)
	}
	n.reclaimed(func(ID) bool { return true })
	return n.told
}

// HappenedTo is what a step did to one object.
func HappenedTo(id ID, before, after *State) []Happening {
	n := &narrator{planner: planner{base: before, head: after}}
	key := id.Key()
	if was, is := before.Bindings.At(key), after.Bindings.At(key); was != is {
		n.changed(was, is)
	}
	n.unmatched(before.snapshot().Templates.At(key), after.snapshot().Templates.At(key))
	n.reclaimed(func(other ID) bool { return other == id })
	return n.told
}

// narrator tells what a plan leaves out, too: the plan is about what a merge
// would do, and this about what was done.
type narrator struct {
	planner
	told []Happening
}

func (n *narrator) add(h Happening) { n.told = append(n.told, h) }

// changed tells about a binding that a step changed.
func (n *narrator) changed(before, after *Binding) {
	n.whole(before, after)
	n.clusters(before, after)
}

// reclaimed tells what departs from clusters that come back into the fleet.
func (n *narrator) reclaimed(of func(ID) bool) {
	n.cells = nil
	n.returned()
	for _, c := range n.cells {
		what := WhatDeleted
		if c.Action == ActionPreserve {
			what = WhatPreserved
		}
		if of(c.Object) {
			n.add(Happening{Object: c.Object, Cluster: c.Cluster, What: what, Because: c.Because})
		}
	}
	slices.SortStableFunc(n.told, func(a, b Happening) int {
		return cmp.Or(cmp.Compare(a.Object.Key(), b.Object.Key()), cmp.Compare(a.Cluster, b.Cluster))
	})
}

// whole tells about a binding as such.
func (n *narrator) whole(before, after *Binding) {
	if after == nil {
		return
	}
	tell := func(what What, at Because, format string, args ...any) {
		n.add(Happening{Object: after.ID, What: what, Policy: n.refOf(after), Text: fmt.Sprintf(format, args...), Because: []Because{at}})
	}
	was := before.claim()
	switch {
	case before == nil: // what becomes of it names the policy
	case after.Claim != nil && was == nil:
		tell(WhatClaimed, Because{"policy", n.policy(after).Origin}, "by %s", after.Claim)
	case after.Claim != nil && *was != *after.Claim:
		tell(WhatClaimed, Because{"policy", n.policy(after).Origin}, "by %s, before it was %s", after.Claim, was)
	case after.Claim == nil && was != nil:
		tell(WhatUnclaimed, Because{"template", origin(after, n.head)}, "%s has it no more; it stays as it is", *was)
	}
	waited := before != nil && before.Pending != nil
	switch {
	case after.Pending != nil && (!waited || *before.Pending != *after.Pending):
		l := n.head.pendingLink(after)
		tell(WhatDeferred, Because{"pending", l.Origin}, "%s", l.Text)
	case after.Pending == nil && waited && before.Active != after.Active:
		tell(WhatActivated, Because{"policy", n.policy(after).Origin}, "what waited since %s is in effect", short(before.Pending.Since))
	case after.Pending == nil && waited:
		tell(WhatReverted, Because{"policy", n.policy(after).Origin}, "what waited since %s was taken back", short(before.Pending.Since))
	}
	failed := after.Scheduled.Reason != "" && after.Scheduled.Reason != workv1alpha2.ReasonSuccess
	if failed && (before == nil || before.Scheduled != after.Scheduled) {
		tell(WhatUnscheduled, Because{"placement", n.policy(after).At("spec.placement")}, "%s", after.Scheduled.Message)
	}
}

// refOf is the policy that a binding is under.
func (n *narrator) refOf(b *Binding) PolicyRef {
	if b.Claim != nil {
		return *b.Claim
	}
	return b.Active.Policy.Ref
}

// unmatched tells of a template that is new or changed and goes nowhere.
func (n *narrator) unmatched(before, after *Template) {
	if after == nil || before != nil && before.Update == after.Update || n.head.Bindings.At(after.Key()) != nil {
		return
	}
	l := n.head.claimLink(nil, after)[0]
	n.add(Happening{Object: after.ID, What: WhatUnmatched, Text: l.Text, Because: []Because{{"template", after.Origin}}})
}

// clusters tells what became of each work of a binding.
func (n *narrator) clusters(before, after *Binding) {
	n.cells = nil
	n.binding(before, after)
	cells := map[string]Cell{}
	for _, c := range n.cells {
		cells[c.Cluster] = c
	}
	taken := n.takenOver(before, after)
	for _, cluster := range clustersOf(before, after) {
		h := Happening{Object: cmp.Or(after, before).ID, Cluster: cluster, Policy: n.refOf(cmp.Or(after, before))}
		if c, ok := cells[cluster]; ok {
			h.Because, h.Replicas = c.Because, c.Replicas
		}
		was, is := before.workOn(cluster), after.workOn(cluster)
		if is == nil {
			n.gone(h, was, taken)
			continue
		}
		n.stands(h, before, after, was, is, cells[cluster].Action)
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
func (n *narrator) takenOver(before, after *Binding) []string {
	if before == nil || after == nil {
		return nil
	}
	lost := 0
	var gained []string
	for i := range before.Works {
		w := &before.Works[i]
		if after.Work(w.Cluster) == nil && w.Released != nil && n.deletes(before.ID, w.Cluster) {
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

func (n *narrator) deletes(id ID, cluster string) bool {
	g := n.head.Departure(cluster, id)
	return g != nil && !g.Preserve
}

// gone tells what became of a work that is not wanted any more.
func (n *narrator) gone(h Happening, was *Work, taken []string) {
	if was.Released == nil {
		return // it was held from the beginning: nothing is there
	}
	departure := n.head.Departure(h.Cluster, h.Object)
	switch {
	case departure == nil:
		h.What = WhatLeft
		if c := n.base.snapshot().Clusters.At(h.Cluster); c != nil {
			h.Because = []Because{{"cluster-left", c.Origin}}
		}
	case departure.Preserve:
		h.What = WhatPreserved
	case len(taken) > 0:
		h.What, h.Text = WhatMoved, "to "+strings.Join(taken, " ")
	default:
		h.What = WhatDeleted
	}
	n.add(h)
}

// stands tells what became of a work that is wanted.
func (n *narrator) stands(h Happening, before, after *Binding, was, is *Work, action Action) {
	left := was == nil
	if g := n.base.Left.At(after.Key()).on(is.Cluster); left && g != nil {
		was = &Work{Cluster: is.Cluster, Want: g.Released, Released: g.Released}
	}
	if was == nil {
		was = &Work{Cluster: is.Cluster}
	}
	returned := left && was.Want != nil
	if after.Evicts(is.Cluster) && (before == nil || !before.Evicts(is.Cluster)) {
		e := h
		e.What, e.Text, e.Because = WhatEvicted, n.reasonOf(after, is.Cluster), []Because{n.whyEvicted(after, is.Cluster)}
		n.add(e)
		return // it is held like that
	}
	switch h.What = became(was, is, action, returned); h.What {
	case "":
		return
	case WhatResumed:
		h.Because = []Because{{"resumed", n.policy(after).At("spec.suspension")}}
	case WhatBlocked:
		h.Text = is.Blocked
	}
	n.add(h)
}

func (n *narrator) reasonOf(b *Binding, cluster string) string {
	for _, e := range b.Evictions {
		if e.Cluster == cluster {
			return e.Reason
		}
	}
	return ""
}

// became is the word for the way from one work to the next, "" where nothing
// worth a word is different.
func became(was, is *Work, action Action, returned bool) What {
	sent := is.Released != nil && (was.Released == nil || was.Released.Digest != is.Released.Digest)
	waits := is.Blocked == "" && (is.Released == nil || is.Released.Digest != is.Want.Digest)
	waited := was.Want != nil && was.Blocked == "" && (was.Released == nil || was.Released.Digest != was.Want.Digest)
	switch {
	case is.Blocked != "" && is.Blocked != was.Blocked:
		return WhatBlocked
	case sent && was.Held:
		return WhatReleased
	case sent && action == ActionScale:
		return WhatScaled
	case sent && action == ActionCreate:
		return WhatCreated
	case sent:
		return WhatUpdated
	case is.Blocked != "":
		return ""
	case is.Held && waits && (!was.Held || was.Want.Digest != is.Want.Digest):
		return WhatHeld
	case is.Held && !was.Held:
		return WhatSuspended
	case is.Held && waited && !waits:
		return WhatReverted
	case !is.Held && was.Held:
		return WhatResumed
	case was.Blocked != "":
		return WhatUnblocked
	case returned:
		return WhatReturned
	}
	return ""
}

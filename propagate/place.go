// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// evict takes over the targets of the old binding, without those that it has
// to give up.
func (d *decision) evict() {
	b, old := d.b, d.old
	if old == nil {
		return
	}
	b.Targets, b.AffinityName, b.Placed, b.Observed, b.Scheduled = old.Targets, old.AffinityName, old.Placed, old.Observed, old.Scheduled
	d.failover().evict(b, old)
}

// schedule chooses the binding's targets, or keeps the ones it has (fold rule
// 15, digest §3.5-3.7).
func (d *decision) schedule() {
	b := d.b
	if d.verdict.policy == nil || b.Active.Policy.Spec.SchedulerName != fleet.DefaultScheduler {
		// What no policy claims, or what another scheduler is to place, only
		// loses clusters.
		b.Targets = present(d.after, b.Targets)
		return
	}
	if b.answers != nil && b.answers.noReplicas != "" {
		b.Targets = present(d.after, b.Targets)
		b.Scheduled = Scheduled{workv1alpha2.ReasonSchedulerError, b.answers.noReplicas}
		return
	}

	if !d.mustSchedule() {
		if b.Scheduled.Reason != workv1alpha2.ReasonSuccess {
			// What could not be placed was taken back, and the targets are its own.
			b.Scheduled = Scheduled{workv1alpha2.ReasonSuccess, schedule.MessageSuccess}
		}
		return
	}

	placement, request := b.Active.Policy.Placement, b.request(d.after)
	request.Fresh = d.fresh[b.Key()]
	out := placement.Schedule(request, d.after.index.clusters)

	b.Targets, b.AffinityName, b.Observed = out.Targets, out.Affinity, out.Observed
	b.Scheduled = Scheduled{out.Reason, out.Message}
	if out.Reason == workv1alpha2.ReasonSuccess {
		b.Placed = placement.Digest(out.Affinity)
	}
}

// request is what a binding's placement has to know of it.
func (b *Binding) request(s *State) schedule.Request {
	wanted, workload := b.replicas()
	return schedule.Request{
		APIVersion: b.Active.Template.APIVersion,
		Kind:       b.Kind,
		Workload:   workload,
		Replicas:   wanted,
		Needs:      b.demand().Needs,
		Previous:   present(s, b.Targets),
		Affinity:   b.AffinityName,
		PlacesAPI:  s.placesAPI(b.Active.Template),
		Evicting:   b.evicting(),
	}
}

// mustSchedule reports whether targets are chosen anew (digest §3.5). Things
// without replicas and duplicated ones follow every change of what they are
// placed by; divided ones stay where they are until their placement or their
// replicas differ from what chose their targets, or a cluster of theirs leaves.
// What has no place is tried again in every decision.
func (d *decision) mustSchedule() bool {
	b, old, placement := d.b, d.old, d.b.Active.Policy.Placement
	wanted, workload := b.replicas()
	switch {
	case d.fresh[b.Key()]:
		return true
	case old == nil || old.Active == nil || old.Placed == (object.Digest{}) || old.Scheduled.Reason == workv1alpha2.ReasonNoClusterFit:
		return true
	case !workload || !placement.Divided():
		return d.placedByOther()
	case b.Placed != placement.Digest(b.AffinityName), d.clusterLeft():
		return true
	}

	var placed int64
	for _, t := range b.Targets {
		placed += t.Count
	}

	return placed != wanted
}

// placedByOther reports whether anything changed that targets which are not
// divided are chosen by. They are not chosen in every decision: with regions a
// second choice can move them.
func (d *decision) placedByOther() bool {
	b, old := d.b, d.old
	return old.Scheduled.Reason != workv1alpha2.ReasonSuccess || d.clusterChanged() ||
		len(b.Targets) != len(old.Targets) || old.Active != b.Active || old.answers != b.answers ||
		d.before.definition(b.Active.Template) != d.after.definition(b.Active.Template) ||
		old.Claim == nil || d.before.snapshot().WaitsFor(b.Active.Policy)
}

// clusterChanged reports whether a cluster changed that matters to the
// placement, or that is a target.
func (d *decision) clusterChanged() bool {
	return d.clusterLeft() || slices.ContainsFunc(d.changed, func(c *schedule.Cluster) bool {
		return d.b.Active.Policy.Placement.Concerns(c, d.b.AffinityName)
	})
}

// clusterLeft reports whether a target is not in the fleet any more.
func (d *decision) clusterLeft() bool { return len(present(d.after, d.b.Targets)) != len(d.b.Targets) }

// present are the targets whose cluster is in the fleet.
func present(s *State, targets []schedule.Share) []schedule.Share {
	left := func(t schedule.Share) bool {
		_, ok := s.snapshot().Clusters.Get(t.Name)
		return !ok
	}
	if !slices.ContainsFunc(targets, left) {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), left)
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// place chooses the binding's targets, or keeps the ones it has (fold rule
// 15, digest §3.5-3.7). applied is whether a policy applies to it.
func (st *step) place(b, old *Binding, applied bool) {
	wanted, workload := b.replicas()
	if old != nil {
		b.Targets, b.AffinityName, b.Placed, b.Observed, b.Scheduled = old.Targets, old.AffinityName, old.Placed, old.Observed, old.Scheduled
		st.evict(b, old)
	}
	if !applied || b.Active.Policy.Spec.SchedulerName != defaultScheduler {
		// What no policy applies to, or what another scheduler is to place,
		// only loses clusters.
		b.Targets = st.present(b.Targets)
		return
	}
	if b.answers != nil && b.answers.unasked != "" {
		b.Targets = st.present(b.Targets)
		b.Scheduled = Scheduled{workv1alpha2.ReasonSchedulerError, b.answers.unasked}
		return
	}
	placement := b.Active.Policy.placement
	if !st.mustSchedule(b, old, wanted, workload) {
		if b.Scheduled.Reason != workv1alpha2.ReasonSuccess {
			// What could not be placed was taken back, and the targets are its own.
			b.Scheduled = Scheduled{workv1alpha2.ReasonSuccess, schedule.MessageSuccess}
		}
		return
	}
	out := placement.Schedule(st.request(b), st.next.index.clusters)
	b.Targets, b.AffinityName, b.Observed = out.Targets, out.Affinity, out.Observed
	b.Scheduled = Scheduled{out.Reason, out.Message}
	if out.Reason == workv1alpha2.ReasonSuccess {
		b.Placed = placement.Digest(out.Affinity)
	}
}

// request is what a binding asks its placement.
func (st *step) request(b *Binding) schedule.Request {
	wanted, workload := b.replicas()
	return schedule.Request{
		APIVersion: b.Active.Template.APIVersion,
		Kind:       b.Kind,
		Workload:   workload,
		Replicas:   wanted,
		Needs:      b.asks().needs,
		Previous:   st.present(b.Targets),
		Affinity:   b.AffinityName,
		PlacesAPI:  st.placesAPI(b.Active.Template),
		Fresh:      st.fresh[b.Key()],
		Evicting:   b.evicting(),
	}
}

// mustSchedule is digest §3.5: things without replicas and duplicated ones
// follow every change of what they are placed by; divided ones stay where they
// are until their placement or their replicas differ from what chose their
// targets, or a cluster of theirs leaves. What has no place is tried again
// whenever it is looked at.
func (st *step) mustSchedule(b, old *Binding, wanted int64, workload bool) bool {
	placement := b.Active.Policy.placement
	switch {
	case st.fresh[b.Key()]:
		return true
	case old == nil || old.Active == nil || old.Placed == (Digest{}) || old.Scheduled.Reason == workv1alpha2.ReasonNoClusterFit:
		return true
	case !workload || !placement.Divided():
		// Not whenever it is looked at: with regions a second look can move it.
		return old.Scheduled.Reason != workv1alpha2.ReasonSuccess ||
			st.concerned(b) || len(b.Targets) != len(old.Targets) || old.Active != b.Active || old.answers != b.answers || st.definitionMoved(b.Active.Template) ||
			old.Claim == nil || st.prev.snapshot().waitsFor(b.Active.Policy)
	case b.Placed != placement.Digest(b.AffinityName), len(st.present(b.Targets)) != len(b.Targets):
		return true
	}
	var placed int64
	for _, t := range b.Targets {
		placed += t.Count
	}
	return placed != wanted
}

// concerned is whether a cluster changed that the placement looks at, or that
// has a target.
func (st *step) concerned(b *Binding) bool {
	return len(st.present(b.Targets)) != len(b.Targets) || slices.ContainsFunc(st.changed, func(c *schedule.Cluster) bool {
		return b.Active.Policy.placement.Concerns(c, b.AffinityName)
	})
}

// present are the targets whose cluster is in the fleet.
func (st *step) present(targets []schedule.Share) []schedule.Share {
	gone := func(t schedule.Share) bool { _, ok := st.next.Snapshot.Clusters.Get(t.Name); return !ok }
	if !slices.ContainsFunc(targets, gone) {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), gone)
}

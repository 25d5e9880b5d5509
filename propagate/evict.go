// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Eviction is a target that a binding gave up (digest §10.3). Until it ends,
// the cluster is not chosen again, and the copy there is kept as it is unless
// it is purged directly.
type Eviction struct {
	Cluster  string                   `json:"cluster"`
	Replicas int64                    `json:"replicas,omitempty"`
	Reason   string                   `json:"reason"`
	Purge    policyv1alpha1.PurgeMode `json:"purge"`
	// Grace is how many seconds the copy has at most, Since the moment they
	// count from: 0 as long as no observation was made.
	Grace int64 `json:"grace"`
	Since int64 `json:"since,omitempty"`
	// Gone is set once the member has confirmed that a copy which is purged
	// directly is gone.
	Gone bool `json:"gone,omitempty"`
}

// Reasons of an eviction.
const (
	ReasonTaintUntolerated   = "TaintUntolerated"
	ReasonApplicationFailure = "ApplicationFailure"
)

// defaultGrace is how many seconds a copy is kept for others to take over,
// where its policy says nothing.
const defaultGrace = 600

// evict ends evictions whose time has come, and begins those that the taints
// of a cluster or the health of the application ask for. It pauses where
// anything about the binding is held (decision 24).
func (st *step) evict(b, old *Binding) {
	if len(old.Evictions) == 0 && !st.next.Snapshot.gate(GateFailover) {
		return
	}
	b.Evictions = nil
	paused := b.paused(old.Evictions)
	for _, e := range old.Evictions {
		e.Gone = e.Gone || st.gone[Place{e.Cluster, b.ID}]
		if _, inFleet := st.next.Snapshot.Clusters.Get(e.Cluster); !inFleet || !paused && st.ends(b, &e) {
			continue
		}
		if e.Since == 0 {
			e.Since = st.now
		}
		b.Evictions = append(b.Evictions, e)
	}
	if paused || !st.next.Snapshot.gate(GateFailover) || takesAllWithIt(b.GroupKind()) {
		return
	}
	var stay []schedule.Share
	for _, t := range b.Targets {
		reason := st.failing(b, t.Name)
		if reason == "" {
			stay = append(stay, t)
			continue
		}
		b.Evictions = append(b.Evictions, b.eviction(t, reason, st.now))
	}
	if len(stay) < len(b.Targets) {
		b.Targets = stay
	}
}

// takesAllWithIt is of kinds that are never evicted: what they contain would
// go with them.
func takesAllWithIt(gk schema.GroupKind) bool { return gk == crd || gk == namespace }

// paused is whether a cluster that the binding runs on, or is being taken
// from, is held.
func (b *Binding) paused(evictions []Eviction) bool {
	return slices.ContainsFunc(b.Targets, func(t schedule.Share) bool { return b.Brakes.Hold(t.Name) }) ||
		slices.ContainsFunc(evictions, func(e Eviction) bool { return b.Brakes.Hold(e.Cluster) })
}

func (b *Binding) eviction(t schedule.Share, reason string, now int64) Eviction {
	e := Eviction{Cluster: t.Name, Replicas: t.Count, Reason: reason, Purge: policyv1alpha1.PurgeGracefully, Grace: defaultGrace, Since: now}
	switch f := b.Active.Policy.Spec.Failover; {
	case f == nil:
	case reason == ReasonApplicationFailure:
		e.Purge = f.Application.PurgeMode
		if f.Application.GracePeriodSeconds != nil {
			e.Grace = int64(*f.Application.GracePeriodSeconds)
		}
	case f.Cluster != nil:
		e.Purge = f.Cluster.PurgeMode
	}
	return e
}

// failing is the reason to take a binding from a cluster, "" without one.
func (st *step) failing(b *Binding, cluster string) string {
	c := st.next.Snapshot.Clusters.At(cluster)
	switch {
	case c == nil:
	case st.expelled(b, c):
		return ReasonTaintUntolerated
	case st.failed(b, cluster):
		return ReasonApplicationFailure
	}
	return ""
}

// expelled is digest §10.2: a NoExecute taint that nothing tolerates expels at
// once, one that is tolerated for a while when that is over.
func (st *step) expelled(b *Binding, c *Cluster) bool {
	for i := range c.Spec.Taints {
		taint := &c.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		tolerated, seconds := b.Active.Policy.placement.Tolerates(taint)
		if !tolerated || seconds != nil && st.over(taint, c, *seconds) {
			return true
		}
	}
	return false
}

// over is whether a taint is there for longer than it is tolerated.
func (st *step) over(taint *corev1.Taint, c *Cluster, seconds int64) bool {
	if seconds <= 0 {
		return true
	}
	since := st.next.Seen.cluster(c.Name).Taints[taintKey(taint)]
	if taint.TimeAdded != nil {
		since = taint.TimeAdded.Unix()
	}
	return st.now > 0 && since > 0 && st.now-since >= seconds
}

// failed is digest §10.4: the application is unhealthy for longer than its
// policy tolerates.
func (st *step) failed(b *Binding, cluster string) bool {
	f := b.Active.Policy.Spec.Failover
	if st.now == 0 || f == nil || f.Application == nil {
		return false
	}
	seen := st.next.Seen.work(Place{cluster, b.ID})
	return seen.Health == Unhealthy && st.now-seen.Since >= int64(*f.Application.DecisionConditions.TolerationSeconds)
}

// ends is whether an eviction is over: others have taken over, or had the
// time to. The copy of what runs nowhere else stays.
func (st *step) ends(b *Binding, e *Eviction) bool {
	f := b.Active.Policy.Spec.Failover
	stays := e.Purge == policyv1alpha1.PurgeNever && f != nil && f.Application != nil && f.Application.PurgeMode == policyv1alpha1.PurgeNever
	switch {
	case st.now == 0, stays:
		return false
	case e.blocks(), len(b.Targets) == 0, b.Scheduled.Reason != workv1alpha2.ReasonSuccess:
		return false
	case e.Since > 0 && st.now-e.Since >= e.Grace:
		return true
	}
	return !slices.ContainsFunc(b.Targets, func(t schedule.Share) bool {
		return st.next.Seen.work(Place{t.Name, b.ID}).Health != Healthy
	})
}

// task shows an eviction in Karmada's terms.
func (e *Eviction) task() workv1alpha2.GracefulEvictionTask {
	t := workv1alpha2.GracefulEvictionTask{FromCluster: e.Cluster, PurgeMode: e.Purge, Reason: e.Reason, Producer: "TaintManager"}
	if e.Reason == ReasonApplicationFailure {
		t.Producer = "ApplicationFailover"
	}
	if e.Replicas > 0 {
		t.Replicas = ptr(int32(e.Replicas))
	}
	if e.Purge == policyv1alpha1.PurgeNever {
		// Karmada's way to say that the copy stays until somebody decides.
		t.PurgeMode, t.SuppressDeletion = policyv1alpha1.PurgeGracefully, ptr(true)
	} else {
		t.GracePeriodSeconds = ptr(int32(e.Grace))
	}
	return t
}

// blocks is whether nothing is sent anywhere until the copy is gone.
func (e *Eviction) blocks() bool { return e.Purge == policyv1alpha1.PurgeDirectly && !e.Gone }

// blocked is whether an eviction of the binding keeps its works from being
// sent.
func (b *Binding) blocked() bool {
	return slices.ContainsFunc(b.Evictions, func(e Eviction) bool { return e.blocks() })
}

// Evicts is whether the binding is being taken from a cluster.
func (b *Binding) Evicts(cluster string) bool {
	return slices.ContainsFunc(b.Evictions, func(e Eviction) bool { return e.Cluster == cluster })
}

// evicts is whether it is an eviction, and no suspension, that holds the
// binding's work on a cluster.
func (b *Binding) evicts(cluster string) bool {
	return !b.Brakes.Hold(cluster) && (b.Evicts(cluster) || b.blocked())
}

// evicting are the clusters that the binding is being taken from.
func (b *Binding) evicting() []string {
	var names []string
	for _, e := range b.Evictions {
		names = append(names, e.Cluster)
	}
	return names
}

// evicted are the works on clusters that the binding is being taken from.
// They are neither changed nor removed while that lasts.
func (st *step) evicted(b, old *Binding, on map[string]attachment) []Work {
	var works []Work
	for _, e := range b.Evictions {
		was := st.before(b.ID, old, e.Cluster)
		_, needed := on[e.Cluster]
		if e.Purge == policyv1alpha1.PurgeDirectly || needed || was == nil || was.Released == nil {
			continue
		}
		works = append(works, Work{Cluster: e.Cluster, Want: was.Released, Released: was.Released, Held: true, Preserve: b.Brakes.Keeps()})
	}
	return works
}

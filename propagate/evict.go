// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
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
	// directly is removed.
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

// failover decides about evictions by what was observed up to a moment.
type failover struct {
	fleet   *fleet.Snapshot
	seen    *Seen
	now     int64          // 0 in a step that folds a commit
	removed map[Place]bool // objects that are confirmed to be removed
}

// evict ends evictions that are complete, and begins those that the taints of a
// cluster or the health of the application demand. It pauses where anything
// about the binding is held (decision 24).
func (f failover) evict(b, old *Binding) {
	enabled := f.fleet.Gate(fleet.GateFailover)
	if len(old.Evictions) == 0 && !enabled {
		return
	}

	b.Evictions = nil
	paused := b.paused(old.Evictions)
	for _, e := range old.Evictions {
		e.Gone = e.Gone || f.removed[Place{e.Cluster, b.ID}]
		if _, inFleet := f.fleet.Clusters.Get(e.Cluster); !inFleet || !paused && f.ends(b, &e) {
			continue
		}

		if e.Since == 0 {
			e.Since = f.now
		}
		b.Evictions = append(b.Evictions, e)
	}

	if paused || !enabled || takesAllWithIt(b.GroupKind()) {
		return
	}

	var stay []schedule.Share
	for _, t := range b.Targets {
		reason := f.reason(b, t.Name)
		if reason == "" {
			stay = append(stay, t)
			continue
		}
		b.Evictions = append(b.Evictions, b.eviction(t, reason, f.now))
	}

	if len(stay) < len(b.Targets) {
		b.Targets = stay
	}
}

// takesAllWithIt reports whether objects of a kind are never evicted: what they
// contain would be removed with them.
func takesAllWithIt(gk schema.GroupKind) bool { return gk == object.CRD || gk == object.Namespace }

// paused reports whether a cluster that the binding runs on, or is being evicted
// from, is held.
func (b *Binding) paused(evictions []Eviction) bool {
	return slices.ContainsFunc(b.Targets, func(t schedule.Share) bool { return b.inForce().Hold(t.Name) }) ||
		slices.ContainsFunc(evictions, func(e Eviction) bool { return b.inForce().Hold(e.Cluster) })
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

// concerns reports whether time or what was observed can move a binding.
func (f failover) concerns(b *Binding) bool {
	return len(b.Evictions) > 0 || slices.ContainsFunc(b.Targets, func(t schedule.Share) bool { return f.reason(b, t.Name) != "" })
}

// reason is why a binding is evicted from a cluster, "" if it is not.
func (f failover) reason(b *Binding, cluster string) string {
	c := f.fleet.Clusters.At(cluster)
	switch {
	case c == nil:
	case f.untolerated(b, c):
		return ReasonTaintUntolerated
	case f.failed(b, cluster):
		return ReasonApplicationFailure
	}
	return ""
}

// untolerated is digest §10.2: a NoExecute taint that nothing tolerates evicts
// at once, one that is tolerated for a while when that has expired.
func (f failover) untolerated(b *Binding, c *fleet.Cluster) bool {
	for i := range c.Spec.Taints {
		taint := &c.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}

		tolerated, seconds := b.Active.Policy.Placement.Tolerates(taint)
		if !tolerated || seconds != nil && f.tolerationExpired(taint, c, *seconds) {
			return true
		}
	}
	return false
}

// tolerationExpired reports whether a taint has been there for longer than it is
// tolerated.
func (f failover) tolerationExpired(taint *corev1.Taint, c *fleet.Cluster, seconds int64) bool {
	if seconds <= 0 {
		return true
	}

	since := f.seen.cluster(c.Name).Taints[taintKey(taint)]
	if taint.TimeAdded != nil {
		since = taint.TimeAdded.Unix()
	}
	return f.now > 0 && since > 0 && f.now-since >= seconds
}

// failed is digest §10.4: the application has been unhealthy for longer than its
// policy tolerates.
func (f failover) failed(b *Binding, cluster string) bool {
	policy := b.Active.Policy.Spec.Failover
	if f.now == 0 || policy == nil || policy.Application == nil {
		return false
	}

	seen := f.seen.work(Place{cluster, b.ID})
	return seen.Health == Unhealthy && f.now-seen.Since >= int64(*policy.Application.DecisionConditions.TolerationSeconds)
}

// ends reports whether an eviction is complete: others have taken over, or had
// the time to. The copy of what runs nowhere else stays.
func (f failover) ends(b *Binding, e *Eviction) bool {
	policy := b.Active.Policy.Spec.Failover
	stays := e.Purge == policyv1alpha1.PurgeNever && policy != nil && policy.Application != nil && policy.Application.PurgeMode == policyv1alpha1.PurgeNever

	switch {
	case f.now == 0, stays:
		return false
	case e.blocks(), len(b.Targets) == 0, b.Scheduled.Reason != workv1alpha2.ReasonSuccess:
		return false
	case e.Since > 0 && f.now-e.Since >= e.Grace:
		return true
	}
	return !slices.ContainsFunc(b.Targets, func(t schedule.Share) bool {
		return f.seen.work(Place{t.Name, b.ID}).Health != Healthy
	})
}

// task shows an eviction in Karmada's terms.
func (e *Eviction) task() workv1alpha2.GracefulEvictionTask {
	t := workv1alpha2.GracefulEvictionTask{FromCluster: e.Cluster, PurgeMode: e.Purge, Reason: e.Reason, Producer: "TaintManager"}
	if e.Reason == ReasonApplicationFailure {
		t.Producer = "ApplicationFailover"
	}

	if e.Replicas > 0 {
		t.Replicas = new(int32(e.Replicas))
	}
	if e.Purge == policyv1alpha1.PurgeNever {
		// In Karmada's terms the copy stays until a person decides.
		t.PurgeMode, t.SuppressDeletion = policyv1alpha1.PurgeGracefully, new(true)
	} else {
		t.GracePeriodSeconds = new(int32(e.Grace))
	}
	return t
}

// blocks reports whether nothing is sent anywhere until the copy is removed.
func (e *Eviction) blocks() bool { return e.Purge == policyv1alpha1.PurgeDirectly && !e.Gone }

// blocked reports whether an eviction of the binding keeps its works from being
// sent.
func (b *Binding) blocked() bool {
	return slices.ContainsFunc(b.Evictions, func(e Eviction) bool { return e.blocks() })
}

// Evicts reports whether the binding is being evicted from a cluster.
func (b *Binding) Evicts(cluster string) bool {
	return slices.ContainsFunc(b.Evictions, func(e Eviction) bool { return e.Cluster == cluster })
}

// evicts reports whether it is an eviction, and no suspension, that holds the
// binding's work on a cluster.
func (b *Binding) evicts(cluster string) bool {
	return !b.inForce().Hold(cluster) && (b.Evicts(cluster) || b.blocked())
}

// evicting are the clusters that the binding is being evicted from.
func (b *Binding) evicting() []string {
	var names []string
	for _, e := range b.Evictions {
		names = append(names, e.Cluster)
	}
	return names
}

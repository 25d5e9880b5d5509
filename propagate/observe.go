// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/propagate/interpret"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Observations are what was seen of the members at a moment: the only input
// of a decision that is not in git (fold rule 22). They act under the gate
// Failover alone.
type Observations struct {
	// At is the moment, in seconds since 1970. Time passes by nothing else: a
	// commit takes none.
	At int64
	// Ready says of a cluster whether it answers. One that is not named keeps
	// its last observation.
	Ready map[string]metav1.ConditionStatus
	// Health says how a work does. One that is not named keeps its last
	// observation.
	Health map[Place]Health
	// Gone are objects that their member has confirmed to be gone.
	Gone []Place
}

// Place is one object on one cluster.
type Place struct {
	Cluster string
	ID
}

// Health is how an object does on a member.
type Health = interpret.Health

// What is known of an object's health.
const (
	Healthy       = interpret.Healthy
	Unhealthy     = interpret.Unhealthy
	UnknownHealth = interpret.Unknown
)

// Seen is what a state keeps of observations: as much as decisions follow. It
// is never altered.
type Seen struct {
	Clusters map[string]SeenCluster `json:"clusters,omitempty"`
	// Works, by ID.Key() and cluster.
	Works map[string]map[string]SeenWork `json:"works,omitempty"`
}

// SeenCluster is what was seen of a cluster.
type SeenCluster struct {
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// Taints are the moments at which its NoExecute taints were first seen.
	Taints map[string]int64 `json:"taints,omitempty"`
}

// SeenWork is how a work does, and since when.
type SeenWork struct {
	Health Health `json:"health"`
	Since  int64  `json:"since"`
}

// Watched is whether observations can change a state: without the gate and
// with no eviction under way nothing needs to be observed.
func (s *State) Watched() bool {
	return s.Snapshot != nil && (s.Snapshot.gate(GateFailover) || s.Evictions > 0)
}

// Watches are the works whose health decides something: those of a policy
// with application failover, and those that take over from others.
func (s *State) Watches() []Place {
	var places []Place
	gate := s.Snapshot != nil && s.Snapshot.gate(GateFailover)
	for b := range s.Bindings.Values() {
		if len(b.Evictions) == 0 && !(gate && b.Active.Policy.Spec.Failover != nil && b.Active.Policy.Spec.Failover.Application != nil) {
			continue
		}
		for _, t := range b.Targets {
			places = append(places, Place{t.Name, b.ID})
		}
	}
	return places
}

// Leaving are the objects whose disappearance others wait for.
func (s *State) Leaving() []Place {
	var places []Place
	if s.Evictions == 0 {
		return nil
	}
	for b := range s.Bindings.Values() {
		for _, e := range b.Evictions {
			if e.blocks() {
				places = append(places, Place{e.Cluster, b.ID})
			}
		}
	}
	return places
}

// Observe is a step without a commit: what was seen of the members is taken
// in, and time passes to the moment of it. The snapshot stays, and a state
// that nothing new was seen of is returned as it is.
func Observe(prev State, o Observations) State {
	if !prev.Watched() {
		return prev
	}
	st := newStep(&prev, Commit{Hash: prev.Accepted})
	st.next.Snapshot, st.now = prev.Snapshot, o.At
	st.observed(o)
	st.readiness()
	for key, b := range prev.Bindings.All() {
		if st.timely(b) {
			st.dirty[key] = true
		}
	}
	st.bindAll()
	return st.next
}

// observed takes in what was seen.
func (st *step) observed(o Observations) {
	seen := &Seen{Clusters: map[string]SeenCluster{}, Works: map[string]map[string]SeenWork{}}
	for c := range st.next.Snapshot.Clusters.Values() {
		was := st.prev.Seen.cluster(c.Name)
		is := SeenCluster{Ready: was.Ready}
		if ready, ok := o.Ready[c.Name]; ok {
			is.Ready = ready
		}
		for _, taint := range c.Spec.Taints {
			if taint.Effect != corev1.TaintEffectNoExecute {
				continue
			}
			if is.Taints == nil {
				is.Taints = map[string]int64{}
			}
			since, known := was.Taints[taintKey(&taint)]
			if !known {
				since = o.At
			}
			is.Taints[taintKey(&taint)] = since
		}
		if is.Ready != "" || is.Taints != nil {
			seen.Clusters[c.Name] = is
		}
	}
	for _, p := range st.prev.Watches() {
		is := st.prev.Seen.work(p)
		if h, ok := o.Health[p]; ok && h != is.Health {
			is = SeenWork{h, o.At}
		}
		if is.Health == "" {
			continue
		}
		if seen.Works[p.Key()] == nil {
			seen.Works[p.Key()] = map[string]SeenWork{}
		}
		seen.Works[p.Key()][p.Cluster] = is
	}
	for _, p := range o.Gone {
		st.gone[p] = true
	}
	if !reflect.DeepEqual(seen, st.prev.Seen) {
		st.next.Seen = seen
	}
}

// readiness has every binding looked at when a cluster became ready, or is so
// no more.
func (st *step) readiness() {
	for c := range st.next.Snapshot.Clusters.Values() {
		if st.prev.Seen.cluster(c.Name).Ready != st.next.Seen.cluster(c.Name).Ready {
			st.changed = append(st.changed, st.prev.placed(c), st.next.placed(c))
		}
	}
	if len(st.changed) == 0 {
		return
	}
	st.next.index.clusters = st.next.candidates()
	for key := range st.prev.Bindings.All() {
		st.dirty[key] = true
	}
}

// timely is whether time or what was seen can move a binding.
func (st *step) timely(b *Binding) bool {
	return len(b.Evictions) > 0 || slices.ContainsFunc(b.Targets, func(t schedule.Share) bool { return st.failing(b, t.Name) != "" })
}

func taintKey(t *corev1.Taint) string { return t.Key + "=" + t.Value }

func (s *Seen) cluster(name string) SeenCluster {
	if s == nil {
		return SeenCluster{}
	}
	return s.Clusters[name]
}

func (s *Seen) work(p Place) SeenWork {
	if s == nil {
		return SeenWork{}
	}
	return s.Works[p.Key()][p.Cluster]
}

// candidates are the fleet's clusters as placement sees them.
func (s *State) candidates() []*schedule.Cluster {
	clusters := make([]*schedule.Cluster, 0, s.Snapshot.Clusters.Len())
	for c := range s.Snapshot.Clusters.Values() {
		clusters = append(clusters, s.placed(c))
	}
	return clusters
}

// placed is a cluster as placement sees it. What was observed of it replaces
// what its document says, under the gate Failover.
func (s *State) placed(c *Cluster) *schedule.Cluster {
	ready := s.Seen.cluster(c.Name).Ready
	if ready == "" || ready == readyIn(c.Status.Conditions) || !s.snapshot().gate(GateFailover) {
		return c.placed
	}
	return schedule.NewCluster(c.Cluster, readyTaints(ready)...)
}

// readyIn is the status of the condition Ready, "" without one.
func readyIn(conditions []metav1.Condition) metav1.ConditionStatus {
	for _, c := range conditions {
		if c.Type == clusterv1alpha1.ConditionReady {
			return c.Status
		}
	}
	return ""
}

// readyTaints are those of digest §10.1, except that a cluster of which
// nothing is known counts as ready: a fleet in git needs no status.
func readyTaints(ready metav1.ConditionStatus) []corev1.Taint {
	switch ready {
	case metav1.ConditionFalse:
		return []corev1.Taint{{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
	case metav1.ConditionUnknown:
		return []corev1.Taint{{Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	}
	return nil
}

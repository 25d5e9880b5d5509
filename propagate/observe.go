// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// Observations are what was seen of the members at a moment: the only input
// of a decision that is not in git (fold rule 22). They act under the gate
// Failover alone.
type Observations struct {
	// At is the moment, in seconds since 1970. Time passes by nothing else: a
	// commit takes none.
	At int64

	// Log is in which log they are, where several processes fold the same ones; "" if
	// they are in none. In a log each has a later moment than the one before.
	Log string

	// Ready is whether a cluster responds. One that is not named keeps
	// its last observation.
	Ready map[string]metav1.ConditionStatus

	// Health is how a work does. One that is not named keeps its last
	// observation.
	Health map[Place]Health

	// Gone are objects that their member has confirmed to be removed.
	Gone []Place
}

// Place is one object on one cluster.
type Place struct {
	Cluster string
	object.ID
}

// Health is how an object does on a member.
type Health = interpret.Health

// What is known of an object's health.
const (
	Healthy       = interpret.Healthy
	Unhealthy     = interpret.Unhealthy
	UnknownHealth = interpret.Unknown
)

// Seen is what a state keeps of observations: as much as decisions depend on. It
// is never altered.
type Seen struct {
	// Log and At are the last observations of a log that were taken in; "" and 0 if
	// the last ones were in none.
	Log string `json:"log,omitempty"`
	At  int64  `json:"at,omitempty"`

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

// Logged returns in which log the last observations were that were taken in, and their
// moment; "" and 0 if they were in none.
func (s *State) Logged() (log string, at int64) {
	if s.Seen == nil {
		return "", 0
	}
	return s.Seen.Log, s.Seen.At
}

// Watched reports whether observations can change a state: without the gate and
// with no eviction under way nothing needs to be observed.
func (s *State) Watched() bool {
	return s.Snapshot != nil && (s.Snapshot.Gate(fleet.GateFailover) || s.Evictions > 0)
}

// Watches are the works whose health decides something: those of a policy
// with application failover, and those that take over from others.
func (s *State) Watches() []Place {
	var places []Place
	gate := s.Snapshot != nil && s.Snapshot.Gate(fleet.GateFailover)
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

// Observe is a step without a commit, of the stages reindex, mark and decide:
// what was seen of the members is kept, and time passes to the moment of it. The
// snapshot stays. A state that no observation can change is returned as it is, and
// so is one on which an observation fails.
//
// Of a log the observations are taken in once, whatever they change.
func Observe(prev State, o Observations) (next State) {
	if o.Log != "" {
		if log, at := prev.Logged(); log == o.Log && o.At <= at {
			return prev
		}
	}
	defer recovered(func() { next = prev.noted(o) })

	if !prev.Watched() {
		return prev.noted(o)
	}

	st := newStep(&prev, Commit{Hash: prev.Accepted})
	st.in.now = o.At
	for _, p := range o.Gone {
		st.in.removed[p] = true
	}

	if seen := prev.see(o); !reflect.DeepEqual(seen, prev.Seen) {
		st.next.Seen = seen
	}

	st.reindexReady()
	st.markObserved()
	st.decide()
	return st.next
}

// noted is a state after observations of a log that change nothing of it.
func (s State) noted(o Observations) State {
	if o.Log == "" {
		return s
	}
	seen := Seen{}
	if s.Seen != nil {
		seen = *s.Seen
	}
	seen.Log, seen.At = o.Log, o.At
	s.Seen = &seen
	return s
}

// see is what a state keeps of observations.
func (s *State) see(o Observations) *Seen {
	seen := &Seen{Clusters: map[string]SeenCluster{}, Works: map[string]map[string]SeenWork{}}
	if o.Log != "" {
		seen.Log, seen.At = o.Log, o.At
	}

	for c := range s.Snapshot.Clusters.Values() {
		if is := s.Seen.cluster(c.Name).and(c, o); is.Ready != "" || is.Taints != nil {
			seen.Clusters[c.Name] = is
		}
	}

	for _, p := range s.Watches() {
		is := s.Seen.work(p)
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

	return seen
}

// and is what is known of a cluster once more was observed.
func (was SeenCluster) and(c *fleet.Cluster, o Observations) SeenCluster {
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

	return is
}

// reindexReady brings the index forward when a cluster became ready, or ceased
// to be.
func (st *step) reindexReady() {
	for c := range st.next.Snapshot.Clusters.Values() {
		if st.prev.Seen.cluster(c.Name).Ready != st.next.Seen.cluster(c.Name).Ready {
			st.in.changed = append(st.in.changed, st.prev.placed(c), st.next.placed(c))
		}
	}
	if len(st.in.changed) > 0 {
		st.next.index.clusters = st.next.candidates()
	}
}

func taintKey(t *corev1.Taint) string { return t.Key + "=" + t.Value }

// Alike reports whether two say the same of the members.
func (s *Seen) Alike(other *Seen) bool {
	if s == nil || other == nil {
		return s == other
	}
	return reflect.DeepEqual(s.Clusters, other.Clusters) && reflect.DeepEqual(s.Works, other.Works)
}

// Ready is whether a cluster was seen to respond; "" if that is not known.
func (s *Seen) Ready(cluster string) metav1.ConditionStatus { return s.cluster(cluster).Ready }

// Health is how a work was seen to do; unknown if it was not.
func (s *Seen) Health(p Place) Health {
	if seen := s.work(p).Health; seen != "" {
		return seen
	}
	return UnknownHealth
}

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

// candidates are the fleet's clusters as placement takes them.
func (s *State) candidates() []*schedule.Cluster {
	clusters := make([]*schedule.Cluster, 0, s.Snapshot.Clusters.Len())
	for c := range s.Snapshot.Clusters.Values() {
		clusters = append(clusters, s.placed(c))
	}
	return clusters
}

// placed is a cluster as placement takes it. What was observed of it replaces
// what is in its document, under the gate Failover.
func (s *State) placed(c *fleet.Cluster) *schedule.Cluster {
	ready := s.Seen.cluster(c.Name).Ready
	if ready == "" || ready == fleet.ReadyCondition(c.Status.Conditions) || !s.snapshot().Gate(fleet.GateFailover) {
		return c.Candidate
	}
	return schedule.NewCluster(c.Cluster, fleet.ReadyTaints(ready)...)
}

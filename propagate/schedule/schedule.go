// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Placement is a policy's placement, ready to be asked for many templates.
type Placement struct {
	*policyv1alpha1.Placement
	groups  []group // at least one
	spread  spread
	weights *weights
}

// NewPlacement prepares a placement that was checked and defaulted, and that
// must not be altered afterwards.
func NewPlacement(p *policyv1alpha1.Placement) *Placement {
	prepared := &Placement{Placement: p, groups: newGroups(p), spread: newSpread(p.SpreadConstraints)}
	var rules []policyv1alpha1.StaticClusterWeight
	if r := p.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		rules = r.WeightPreference.StaticWeightList
	}
	prepared.weights = newWeights(rules)
	return prepared
}

// Divided is whether the clusters share the replicas.
func (p *Placement) Divided() bool {
	return p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.Divided
}

// Digest is of what the scheduler follows while a group is in use: of the
// affinity groups only that one counts (digest §3.5). It is zero when there is
// no such group.
func (p *Placement) Digest(group string) [sha256.Size]byte {
	for i := range p.groups {
		if p.groups[i].name == group {
			return p.groups[i].digest
		}
	}
	return [sha256.Size]byte{}
}

// digest hashes the placement as if a group was its only one; nil is none. It
// hashes JSON, where an empty list and none are equal.
func digest(p policyv1alpha1.Placement, group *policyv1alpha1.ClusterAffinityTerm) [sha256.Size]byte {
	p.ClusterAffinities, p.WorkloadAffinity = nil, nil
	if group != nil {
		p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{*group}
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("schedule: a placement has no JSON: %v", err))
	}
	return sha256.Sum256(b)
}

// Request is one thing to place.
type Request struct {
	APIVersion, Kind string
	// Workload says whether it has replicas to give; others go whole to every
	// chosen cluster, without a number.
	Workload bool
	Replicas int64
	// Needs are those of one replica.
	Needs *Needs
	// Previous are the present targets, Affinity the group they came from.
	Previous []Share
	Affinity string
	// Fresh divides all replicas anew and tries all groups from the first on.
	Fresh bool
	// Evicting are clusters that it is being taken from.
	Evicting []string
	// PlacesAPI says whether the fleet itself brings this API to a cluster.
	PlacesAPI func(cluster string) bool
}

// MessageSuccess is the message of a Success.
const MessageSuccess = "Binding has been scheduled successfully."

// Outcome is the result of a schedule. On any reason but Success Targets says
// what becomes of the previous ones: kept, or none when nothing fits.
type Outcome struct {
	Targets  []Share // by name
	Affinity string  // the group in use
	// Observed says that an observation of the members ranked or excluded a
	// cluster (fold rule 22).
	Observed bool
	Reason   string
	Message  string
}

// Schedule places one thing on clusters: the first group that has a place for
// it decides, beginning with the one in use (digest §4.6). When none has, the
// first one's reason counts.
func (p *Placement) Schedule(r Request, clusters []*Cluster) Outcome {
	out, _ := p.decide(&r, clusters)
	return out
}

// decide is the outcome of a schedule, and the try that it follows from.
func (p *Placement) decide(r *Request, clusters []*Cluster) (Outcome, *try) {
	previous := make(map[string]int64, len(r.Previous))
	for _, s := range r.Previous {
		previous[s.Name] = s.Count
	}
	var first *try
	var why error
	observed := false
	for i := p.start(*r); i < len(p.groups); i++ {
		t := &try{Placement: p, Request: r, group: &p.groups[i], previous: previous}
		targets, err := t.place(clusters)
		observed = observed || t.observed
		if err == nil {
			return Outcome{targets, t.group.name, observed, workv1alpha2.ReasonSuccess, MessageSuccess}, t
		}
		if first == nil {
			first, why = t, err
		}
	}
	return r.fails(why, observed), first
}

// start is where the groups are tried from: one that was left is not tried
// again by itself.
func (p *Placement) start(r Request) int {
	if r.Fresh {
		return 0
	}
	return max(slices.IndexFunc(p.groups, func(g group) bool { return g.name == r.Affinity }), 0)
}

// fails is digest §3.7: where no cluster fits at all the targets go, after
// any other failure they stay.
func (r *Request) fails(err error, observed bool) Outcome {
	out := Outcome{r.Previous, r.Affinity, observed, workv1alpha2.ReasonSchedulerError, err.Error()}
	var f *failure
	if errors.As(err, &f) {
		out.Reason = f.reason
	}
	if out.Reason == workv1alpha2.ReasonNoClusterFit {
		out.Targets = nil
	}
	return out
}

// failure is why one group has no place. Any other error is a SchedulerError.
type failure struct{ reason, message string }

func (f *failure) Error() string { return f.message }

// try is one group of a placement for one thing.
type try struct {
	*Placement
	*Request
	group    *group
	previous map[string]int64
	observed bool
	chosen   []candidate // that share the replicas
}

func (t *try) place(clusters []*Cluster) ([]Share, error) {
	candidates, err := t.filter(clusters)
	if err != nil {
		return nil, err
	}
	if t.spreads() || t.Workload && t.byCapacity() {
		t.rank(candidates)
	}
	chosen, err := t.choose(candidates)
	if err != nil {
		return nil, fmt.Errorf("failed to select clusters: %w", err)
	}
	t.chosen = chosen
	return t.assign(chosen)
}

// rank puts the candidates in order. What wants no replicas fits anywhere.
func (t *try) rank(candidates []candidate) {
	for i := range candidates {
		c := &candidates[i]
		c.free = unbounded
		if t.Replicas > 0 {
			c.free = c.room.takes(t.Needs)
		}
	}
	t.observed = t.observed || t.Replicas > 0
	slices.SortFunc(candidates, inOrder)
}

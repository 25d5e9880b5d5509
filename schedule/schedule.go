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

// Placement is a policy's placement, prepared for many templates.
type Placement struct {
	*policyv1alpha1.Placement
	groups  []group // at least one
	spread  spread
	weights *weights
}

// NewPlacement prepares a valid, defaulted placement, which must not be
// modified afterwards.
func NewPlacement(p *policyv1alpha1.Placement) *Placement {
	prepared := &Placement{Placement: p, groups: newGroups(p), spread: newSpread(p.SpreadConstraints)}
	var rules []policyv1alpha1.StaticClusterWeight
	if r := p.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		rules = r.WeightPreference.StaticWeightList
	}
	prepared.weights = newWeights(rules)
	return prepared
}

// Divided reports whether the replicas are divided among the clusters.
func (p *Placement) Divided() bool {
	return p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.Divided
}

// Digest covers what the scheduler depends on while a group is in use: only
// that one of the affinity groups (digest §3.5). It is zero if the group does
// not exist.
func (p *Placement) Digest(group string) [sha256.Size]byte {
	for i := range p.groups {
		if p.groups[i].name == group {
			return p.groups[i].digest
		}
	}
	return [sha256.Size]byte{}
}

// digest hashes the placement as if group was its only one; nil means none. It
// hashes JSON, in which an empty list and no list are equal.
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

// Request is one object to place.
type Request struct {
	APIVersion, Kind string
	// Workload reports whether it has replicas to divide. Anything else goes to
	// every chosen cluster as a whole, without a number.
	Workload bool
	Replicas int64
	// Needs are those of one replica.
	Needs *Needs
	// Previous are the current targets, Affinity the group that they came from.
	Previous []Share
	Affinity string
	// Fresh divides all replicas from scratch and tries all groups from the first.
	Fresh bool
	// Evicting are the clusters that it is being evicted from.
	Evicting []string
	// PlacesAPI reports whether the fleet itself installs this API on a cluster.
	PlacesAPI func(cluster string) bool
}

// MessageSuccess is the message of a Success.
const MessageSuccess = "Binding has been scheduled successfully."

// Outcome is the result of a schedule. If Reason is not Success, Targets are
// what remains of the previous ones: all of them, or none if nothing fits.
type Outcome struct {
	Targets  []Share // by name
	Affinity string  // the group in use
	// Observed means that an observation of the members ranked or excluded a
	// cluster (fold rule 22).
	Observed bool
	Reason   string
	Message  string
}

// Schedule places one object. The first group that fits wins, starting with the
// one in use (digest §4.6). If none fits, the first group's reason counts.
func (p *Placement) Schedule(r Request, clusters []*Cluster) Outcome {
	out, _ := p.decide(&r, clusters)
	return out
}

// decide returns the outcome of a schedule, and the try that produced it.
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

// start is the first group to try: a group that was left is not tried again
// automatically.
func (p *Placement) start(r Request) int {
	if r.Fresh {
		return 0
	}
	return max(slices.IndexFunc(p.groups, func(g group) bool { return g.name == r.Affinity }), 0)
}

// fails is digest §3.7: if no cluster fits at all the targets are removed,
// after any other failure they stay.
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

// failure is why a group does not fit. Any other error is a SchedulerError.
type failure struct{ reason, message string }

func (f *failure) Error() string { return f.message }

// try is the attempt to place one object with one group.
type try struct {
	*Placement
	*Request
	group    *group
	previous map[string]int64
	observed bool
	chosen   []candidate // the ones that divide the replicas
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

// rank sorts the candidates. An object without replicas fits anywhere.
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

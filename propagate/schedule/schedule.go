// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Placement is a policy's placement, ready to be asked for many templates.
type Placement struct {
	*policyv1alpha1.Placement
	affinity *Affinity
	weights  []weight
}

type weight struct {
	clusters *Affinity
	count    int64
}

// NewPlacement prepares a placement that was checked and defaulted.
func NewPlacement(p *policyv1alpha1.Placement) *Placement {
	prepared := &Placement{Placement: p, affinity: NewAffinity(p.ClusterAffinity)}
	if r := p.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		for _, w := range r.WeightPreference.StaticWeightList {
			prepared.weights = append(prepared.weights, weight{NewAffinity(&w.TargetCluster), w.Weight})
		}
	}
	return prepared
}

// Divided is whether the clusters share the replicas.
func (p *Placement) Divided() bool {
	return p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.Divided
}

// Request is one thing to place.
type Request struct {
	APIVersion, Kind string
	// Workload says whether it has replicas to give; others go whole to every
	// chosen cluster, without a number.
	Workload bool
	Replicas int64
	// Previous are the present targets. A target is not turned away for an
	// API that it has stopped to announce (digest §4.2).
	Previous []Share
	// PlacesAPI says whether the fleet itself brings this API to a cluster.
	PlacesAPI func(cluster string) bool
}

// Outcome is the result of a schedule. On any reason but Success Targets says
// what becomes of the previous ones: kept, or none when nothing fits.
type Outcome struct {
	Targets []Share
	Reason  string
	Message string
}

// Schedule places one thing on clusters, which are in name order.
func (p *Placement) Schedule(r Request, clusters []*clusterv1alpha1.Cluster) Outcome {
	chosen, unfit := p.filter(r, clusters)
	if len(chosen) == 0 {
		return Outcome{Reason: workv1alpha2.ReasonNoClusterFit, Message: unfit.String(len(clusters))}
	}
	return Outcome{
		Targets: p.assign(r, chosen),
		Reason:  workv1alpha2.ReasonSuccess,
		Message: "Binding has been scheduled successfully.",
	}
}

// Reasons why a cluster is turned away (digest §4.2).
const (
	unfitAPI      = "cluster(s) did not have the API resource"
	unfitAffinity = "cluster(s) did not match the placement cluster affinity constraint"
)

// unfit counts the clusters that were turned away, by reason.
type unfit map[string]int

// String is the message of a NoClusterFit among so many clusters.
func (u unfit) String(clusters int) string {
	if clusters == 0 || len(u) == 0 {
		return fmt.Sprintf("0/%d clusters are available: no cluster exists.", clusters)
	}
	var parts []string
	for reason, n := range u {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d clusters are available: %s.", clusters, strings.Join(parts, ", "))
}

func (p *Placement) filter(r Request, clusters []*clusterv1alpha1.Cluster) (chosen []*clusterv1alpha1.Cluster, why unfit) {
	why = unfit{}
	for _, c := range clusters {
		switch {
		case !r.isTarget(c.Name) && !r.served(c):
			why[unfitAPI]++
		case !p.affinity.Match(c):
			why[unfitAffinity]++
		default:
			chosen = append(chosen, c)
		}
	}
	return chosen, why
}

func (r Request) isTarget(cluster string) bool {
	return slices.ContainsFunc(r.Previous, func(s Share) bool { return s.Name == cluster })
}

// served is fold rule 15: a cluster that announces no APIs at all may serve
// any, and one that will receive the kind's definition serves it.
func (r Request) served(c *clusterv1alpha1.Cluster) bool {
	if len(c.Status.APIEnablements) == 0 {
		return true
	}
	for _, e := range c.Status.APIEnablements {
		if e.GroupVersion != r.APIVersion {
			continue
		}
		for _, resource := range e.Resources {
			if resource.Kind == r.Kind {
				return true
			}
		}
	}
	return r.PlacesAPI != nil && r.PlacesAPI(c.Name)
}

// assign shares the replicas between the chosen clusters (digest §4.7). A
// workload's cluster without a replica is no target.
func (p *Placement) assign(r Request, chosen []*clusterv1alpha1.Cluster) []Share {
	shares := make([]Share, 0, len(chosen))
	switch {
	case !r.Workload:
		for _, c := range chosen {
			shares = append(shares, Share{Name: c.Name})
		}
		return shares
	case !p.Divided():
		for _, c := range chosen {
			shares = append(shares, Share{c.Name, r.Replicas})
		}
		return slices.DeleteFunc(shares, func(s Share) bool { return s.Count == 0 })
	}
	return Webster(p.staticWeights(chosen), r.Replicas)
}

// staticWeights gives each cluster the greatest weight of the rules that
// match it, and all the same when none matches any.
func (p *Placement) staticWeights(chosen []*clusterv1alpha1.Cluster) []Share {
	shares := make([]Share, len(chosen))
	var any int64
	for i, c := range chosen {
		shares[i].Name = c.Name
		for _, w := range p.weights {
			if w.count > shares[i].Count && w.clusters.Match(c) {
				shares[i].Count = w.count
			}
		}
		any |= shares[i].Count
	}
	if any == 0 {
		for i := range shares {
			shares[i].Count = 1
		}
	}
	return shares
}

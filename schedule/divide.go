// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// assign divides the replicas among the chosen clusters (digest §4.7). A
// cluster without a replica of a workload is not a target.
func (t *try) assign(chosen []candidate) ([]Share, error) {
	switch {
	case !t.Workload:
		return equally(chosen, 0), nil
	case !t.Divided() && t.Replicas == 0:
		return nil, nil
	case !t.Divided():
		return equally(chosen, t.Replicas), nil
	case t.byCapacity():
		return t.divide(chosen)
	}

	return Webster(t.weights.of(chosen), t.Replicas), nil
}

// equally gives every cluster the same count.
func equally(chosen []candidate, count int64) []Share {
	shares := make([]Share, len(chosen))
	for i := range chosen {
		shares[i] = Share{chosen[i].Name, count}
	}
	sortByName(shares)
	return shares
}

func sortByName(shares []Share) {
	slices.SortFunc(shares, func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
}

// byCapacity reports whether replicas are divided by the capacity of clusters.
func (p *Placement) byCapacity() bool {
	return p.Divided() && (p.aggregates() || p.ReplicaScheduling.WeightPreference != nil && p.ReplicaScheduling.WeightPreference.DynamicWeight != "")
}

// aggregates reports whether replicas go to as few clusters as possible.
func (p *Placement) aggregates() bool {
	return p.ReplicaScheduling.ReplicaDivisionPreference == policyv1alpha1.Aggregated
}

// divide fills one tier after another: each takes what fits, and the rest goes
// to the next (digest §4.6).
func (t *try) divide(chosen []candidate) ([]Share, error) {
	if len(t.group.tiers) == 1 {
		return t.divideTier(chosen, t.Replicas)
	}

	var shares []Share
	rest := t.Replicas
	for tier := range t.group.tiers {
		of := slices.DeleteFunc(slices.Clone(chosen), func(c candidate) bool { return c.tier != tier })
		part := min(rest, sum(of, (*candidate).available))
		taken, err := t.divideTier(of, part)
		if err != nil {
			return nil, err
		}
		shares = append(shares, taken...)
		rest -= part
	}

	if rest > 0 {
		return nil, unschedulable("", t.Replicas-rest)
	}

	sortByName(shares)
	return shares, nil
}

// divideTier divides replicas by capacity. Running replicas stay where they
// are: only the difference is divided, unless a fresh schedule is requested.
func (t *try) divideTier(chosen []candidate, replicas int64) ([]Share, error) {
	had := sum(chosen, func(c *candidate) int64 { return c.had })
	switch {
	case t.Fresh:
		return t.deal(chosen, replicas, "failed to do fresh scale: ", (*candidate).available)
	case replicas == had:
		return merge(chosen, nil), nil
	case replicas < had:
		// In proportion to the running replicas, regardless of capacity.
		slices.SortFunc(chosen, func(a, b candidate) int { return strings.Compare(a.Name, b.Name) })
		return t.deal(chosen, replicas, "failed to scale down: ", func(c *candidate) int64 { return c.had })
	}

	added, err := t.deal(chosen, replicas-had, "failed to scale up: ", func(c *candidate) int64 { return c.free })
	if err != nil {
		return nil, err
	}

	return merge(chosen, added), nil
}

// merge adds shares to the clusters' previous ones.
func merge(chosen []candidate, added []Share) []Share {
	more := make(map[string]int64, len(added))
	for _, s := range added {
		more[s.Name] = s.Count
	}

	shares := make([]Share, 0, len(chosen))
	for i := range chosen {
		if n := chosen[i].had + more[chosen[i].Name]; n > 0 {
			shares = append(shares, Share{chosen[i].Name, n})
		}
	}

	sortByName(shares)
	return shares
}

// deal divides replicas in proportion to weights, which also limit each share.
func (t *try) deal(chosen []candidate, replicas int64, doing string, weight func(*candidate) int64) ([]Share, error) {
	all := sum(chosen, weight)
	if all < replicas {
		return nil, unschedulable(doing, all)
	}

	if t.aggregates() {
		chosen = fewest(chosen, replicas, weight)
	}

	weights := make([]Share, len(chosen))
	for i := range chosen {
		weights[i] = Share{chosen[i].Name, weight(&chosen[i])}
	}

	return Webster(weights, replicas), nil
}

// fewest returns the fewest clusters that hold the replicas, if those that
// already run some come first, then the heaviest.
func fewest(chosen []candidate, replicas int64, weight func(*candidate) int64) []candidate {
	sorted := slices.Clone(chosen)
	slices.SortStableFunc(sorted, func(a, b candidate) int {
		if runs := a.had > 0; runs != (b.had > 0) {
			if runs {
				return -1
			}
			return 1
		}
		return cmp.Compare(weight(&b), weight(&a))
	})

	for i := range sorted {
		if replicas -= weight(&sorted[i]); replicas <= 0 {
			return sorted[:i+1]
		}
	}

	return sorted
}

func unschedulable(doing string, available int64) error {
	return &failure{workv1alpha2.ReasonUnschedulable,
		fmt.Sprintf("failed to assign replicas: %sClusters available replicas %d are not enough to schedule.", doing, available)}
}

// weights are the rules of a static weight list, indexed by the cluster name or
// label that they ask for: a list often has one rule per cluster.
type weights struct {
	byName  map[string][]weight
	byLabel map[label][]weight
	others  []weight
}

type weight struct {
	clusters *Affinity
	count    int64
}

type label struct{ key, value string }

func newWeights(rules []policyv1alpha1.StaticClusterWeight) *weights {
	w := &weights{byName: map[string][]weight{}, byLabel: map[label][]weight{}}
	for i := range rules {
		rule := weight{NewAffinity(&rules[i].TargetCluster), rules[i].Weight}
		switch labels := anyLabel(&rules[i].TargetCluster); {
		case len(rule.clusters.ClusterNames) > 0:
			for name := range rule.clusters.names {
				w.byName[name] = append(w.byName[name], rule)
			}
		case len(labels) > 0:
			for _, l := range labels {
				w.byLabel[l] = append(w.byLabel[l], rule)
			}
		default:
			w.others = append(w.others, rule)
		}
	}

	return w
}

// anyLabel returns labels of which a matching cluster has at least one.
func anyLabel(a *policyv1alpha1.ClusterAffinity) []label {
	if a.LabelSelector == nil {
		return nil
	}

	for key, value := range a.LabelSelector.MatchLabels {
		return []label{{key, value}} // any of them will do
	}

	for _, e := range a.LabelSelector.MatchExpressions {
		if string(e.Operator) != string(corev1.NodeSelectorOpIn) {
			continue
		}
		var any []label
		for _, value := range e.Values {
			any = append(any, label{e.Key, value})
		}
		return any
	}

	return nil
}

// of gives each cluster the greatest weight of the matching rules. If no rule
// matches any cluster, all get the same.
func (w *weights) of(chosen []candidate) []Share {
	shares := make([]Share, len(chosen))
	var any int64
	for i := range chosen {
		shares[i] = Share{chosen[i].Name, w.weigh(chosen[i].Cluster)}
		any |= shares[i].Count
	}

	if any == 0 {
		for i := range shares {
			shares[i].Count = 1
		}
	}

	return shares
}

func (w *weights) weigh(c *Cluster) int64 {
	best := greatest(0, w.byName[c.Name], c)
	if len(w.byLabel) > 0 {
		for key, value := range c.Labels {
			best = greatest(best, w.byLabel[label{key, value}], c)
		}
	}
	return greatest(best, w.others, c)
}

func greatest(best int64, rules []weight, c *Cluster) int64 {
	for i := range rules {
		if rules[i].count > best && rules[i].clusters.Match(c.Cluster) {
			best = rules[i].count
		}
	}
	return best
}

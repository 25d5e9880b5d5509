// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// CheckAffinity validates an affinity.
func CheckAffinity(a *policyv1alpha1.ClusterAffinity) error {
	if a.LabelSelector != nil {
		if _, err := metav1.LabelSelectorAsSelector(a.LabelSelector); err != nil {
			return fmt.Errorf("labelSelector: %w", err)
		}
	}

	if a.FieldSelector == nil {
		return nil
	}

	for _, e := range a.FieldSelector.MatchExpressions {
		switch e.Key {
		case "provider", "region", "zone":
		default:
			return fmt.Errorf("fieldSelector: key %q must be provider, region or zone", e.Key)
		}

		if e.Operator != corev1.NodeSelectorOpIn && e.Operator != corev1.NodeSelectorOpNotIn {
			return fmt.Errorf("fieldSelector: operator %q must be In or NotIn", e.Operator)
		}
		if len(e.Values) == 0 {
			return fmt.Errorf("fieldSelector: key %q has no values", e.Key)
		}
	}

	return nil
}

// Affinity is a prepared ClusterAffinity. A nil Affinity matches every cluster.
type Affinity struct {
	*policyv1alpha1.ClusterAffinity
	names, exclude map[string]bool // nil without any
	labels         labels.Selector // nil without any
}

// NewAffinity prepares a valid affinity.
func NewAffinity(a *policyv1alpha1.ClusterAffinity) *Affinity {
	if a == nil {
		return nil
	}

	prepared := &Affinity{ClusterAffinity: a, names: set(a.ClusterNames), exclude: set(a.ExcludeClusters)}
	if a.LabelSelector != nil {
		s, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
		if err != nil {
			s = labels.Nothing()
		}
		if !s.Empty() {
			prepared.labels = s
		}
	}

	return prepared
}

func set(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// Match is digest §4.1: every part must match.
func (a *Affinity) Match(c *clusterv1alpha1.Cluster) bool {
	switch {
	case a == nil:
		return true
	case a.names != nil && !a.names[c.Name], a.exclude != nil && a.exclude[c.Name]:
		return false
	case a.labels != nil && !a.labels.Matches(labels.Set(c.Labels)):
		return false
	}

	return a.FieldSelector == nil || matchFields(a.FieldSelector, c)
}

func matchFields(s *policyv1alpha1.FieldSelector, c *clusterv1alpha1.Cluster) bool {
	for _, e := range s.MatchExpressions {
		has := false
		switch e.Key {
		case "provider":
			has = c.Spec.Provider != "" && slices.Contains(e.Values, c.Spec.Provider)
		case "region":
			has = c.Spec.Region != "" && slices.Contains(e.Values, c.Spec.Region)
		case "zone":
			has = slices.ContainsFunc(c.Spec.Zones, func(z string) bool { return slices.Contains(e.Values, z) })
		}

		if has != (e.Operator == corev1.NodeSelectorOpIn) {
			return false
		}
	}

	return true
}

// group is one of the clusterAffinities. Its first tier is its own affinity;
// later tiers take what does not fit into the earlier ones.
type group struct {
	name   string
	tiers  []*Affinity
	digest [sha256.Size]byte
}

// newGroups returns the groups of a placement. Without clusterAffinities, its
// clusterAffinity is the only group, without a name.
func newGroups(p *policyv1alpha1.Placement) []group {
	if len(p.ClusterAffinities) == 0 {
		return []group{{tiers: []*Affinity{NewAffinity(p.ClusterAffinity)}, digest: digest(*p, nil)}}
	}

	var groups []group
	for i := range p.ClusterAffinities {
		term := &p.ClusterAffinities[i]
		g := group{name: term.AffinityName, tiers: []*Affinity{NewAffinity(&term.ClusterAffinity)}, digest: digest(*p, term)}
		for j := range term.OverflowAffinities {
			g.tiers = append(g.tiers, NewAffinity(&term.OverflowAffinities[j].ClusterAffinity))
		}
		groups = append(groups, g)
	}

	return groups
}

// tier is the first tier that a cluster belongs to. Only a workload overflows.
func (g *group) tier(c *Cluster, workload bool) (tier int, ok bool) {
	tiers := g.tiers
	if !workload {
		tiers = tiers[:1]
	}

	for i, a := range tiers {
		if a.Match(c.Cluster) {
			return i, true
		}
	}

	return 0, false
}

// Concerns reports whether a change of this cluster can matter while the group
// is in use: the scheduler only looks at the clusters of that group.
func (p *Placement) Concerns(c *Cluster, group string) bool {
	_, ok := p.groups[p.start(Request{Affinity: group})].tier(c, true)
	return ok
}

// Selects reports whether any group of the placement matches a cluster.
func (p *Placement) Selects(c *Cluster) bool {
	return slices.ContainsFunc(p.groups, func(g group) bool { _, ok := g.tier(c, true); return ok })
}

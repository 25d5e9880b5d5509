// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// CheckAffinity says what is wrong with an affinity, or nil.
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

// Affinity is a ClusterAffinity that is ready to be asked many times. A nil
// Affinity matches every cluster.
type Affinity struct {
	*policyv1alpha1.ClusterAffinity
	labels labels.Selector
}

// NewAffinity prepares a checked affinity.
func NewAffinity(a *policyv1alpha1.ClusterAffinity) *Affinity {
	if a == nil {
		return nil
	}
	prepared := &Affinity{ClusterAffinity: a, labels: labels.Everything()}
	if a.LabelSelector != nil {
		s, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
		if err != nil {
			s = labels.Nothing()
		}
		prepared.labels = s
	}
	return prepared
}

// Match is digest §4.1: every part must hold, exclude is looked at first.
func (a *Affinity) Match(c *clusterv1alpha1.Cluster) bool {
	switch {
	case a == nil:
		return true
	case slices.Contains(a.ExcludeClusters, c.Name):
		return false
	case !a.labels.Matches(labels.Set(c.Labels)):
		return false
	case a.FieldSelector != nil && !matchFields(a.FieldSelector, c):
		return false
	}
	return len(a.ClusterNames) == 0 || slices.Contains(a.ClusterNames, c.Name)
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

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// selector is a resource selector with its label selector parsed.
type selector struct {
	policyv1alpha1.ResourceSelector
	labels labels.Selector // nil when there is none
}

// checkSelector validates one selector of a document in namespace, "" for a
// document of the whole fleet.
func checkSelector(c *check, path string, r policyv1alpha1.ResourceSelector, namespace string) selector {
	if r.APIVersion == "" {
		c.at(path, "%s.apiVersion is required", path)
	}
	if r.Kind == "" {
		c.at(path, "%s.kind is required", path)
	}
	if namespace != "" && r.Namespace != namespace {
		c.at(path+".namespace", "%s.namespace is %q, but it only selects in its own namespace %q", path, r.Namespace, namespace)
	}
	s := selector{ResourceSelector: r}
	if r.LabelSelector != nil {
		var err error
		if s.labels, err = metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
			c.at(path+".labelSelector", "%s.labelSelector: %v", path, err)
		}
	}
	return s
}

// How well a selector matches: the implicit priority of digest §2.2.
const (
	missed = iota
	matchedAll
	matchedLabels
	matchedName
)

// match is the policy's implicit priority for t: the best of its selectors,
// or missed.
func (p *Policy) match(t *Template) int {
	best := missed
	for _, s := range p.selectors {
		best = max(best, s.match(t))
	}
	return best
}

// match follows digest §2.2, in its order. The apiVersion must be equal to
// the letter: apps/v1 does not select apps/v1beta1.
func (s *selector) match(t *Template) int {
	switch {
	case s.APIVersion != t.APIVersion || s.Kind != t.Kind:
		return missed
	case s.Namespace != "" && s.Namespace != t.Namespace:
		return missed
	case s.Name != "" && s.Name == t.Name:
		return matchedName
	case s.Name != "":
		return missed
	case s.labels == nil:
		return matchedAll
	case s.labels.Matches(labels.Set(t.Labels)):
		return matchedLabels
	}
	return missed
}

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Selector is a resource selector with its label selector parsed.
type Selector struct {
	policyv1alpha1.ResourceSelector
	labels labels.Selector // nil without a labelSelector
}

// checkSelector validates one selector of a document in namespace; "" means a
// cluster-scoped document.
func checkSelector(c *check, path string, r policyv1alpha1.ResourceSelector, namespace string) Selector {
	if r.APIVersion == "" {
		c.at(path, "%s.apiVersion is required", path)
	}
	if r.Kind == "" {
		c.at(path, "%s.kind is required", path)
	}
	if namespace != "" && r.Namespace != namespace {
		c.at(path+".namespace", "%s.namespace is %q, but it only selects in its own namespace %q", path, r.Namespace, namespace)
	}

	s := Selector{ResourceSelector: r}
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
	NoMatch = iota
	MatchAll
	MatchLabels
	MatchName
)

// Match is the policy's implicit priority for t: the best of its selectors,
// or missed.
func (p *Policy) Match(t *Template) int {
	best := NoMatch
	for _, s := range p.Selectors {
		best = max(best, s.match(t))
	}
	return best
}

// Matches reports whether the selector selects t.
func (s *Selector) Matches(t *Template) bool { return s.match(t) > NoMatch }

// Text reads "apps/v1 Deployment web in shop, labels app=web".
func (s *Selector) Text() string {
	text := s.APIVersion + " " + s.Kind
	if s.Name != "" {
		text += " " + s.Name
	}
	if s.Namespace != "" {
		text += " in " + s.Namespace
	}
	if s.Name == "" && s.labels != nil && !s.labels.Empty() {
		text += ", labels " + s.labels.String()
	}
	return text
}

// match follows digest §2.2, in its order. The apiVersion must be identical:
// apps/v1 does not select apps/v1beta1.
func (s *Selector) match(t *Template) int {
	switch {
	case s.APIVersion != t.APIVersion || s.Kind != t.Kind:
		return NoMatch
	case s.Namespace != "" && s.Namespace != t.Namespace:
		return NoMatch
	case s.Name != "" && s.Name == t.Name:
		return MatchName
	case s.Name != "":
		return NoMatch
	case s.labels == nil:
		return MatchAll
	case s.labels.Matches(labels.Set(t.Labels)):
		return MatchLabels
	}

	return NoMatch
}

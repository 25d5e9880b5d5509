// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"k8s.io/apimachinery/pkg/labels"
)

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

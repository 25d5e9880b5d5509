// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// MatchedBy returns the policy's implicit priority for a template, and the
// position of the selector that gives it.
func (p *Policy) MatchedBy(t *Template) (match int, at Origin) {
	at = p.Origin
	for i := range p.Selectors {
		if m := p.Selectors[i].match(t); m > match {
			match, at = m, p.AtAny(fmt.Sprintf("spec.resourceSelectors[%d]", i), "spec.resourceSelectors")
		}
	}
	return match, at
}

// MatchText puts an implicit priority in words.
func MatchText(match int) string {
	return [...]string{NoMatch: "", MatchAll: "by kind", MatchLabels: "by labels", MatchName: "by name"}[match]
}

// Against explains why a policy claims a template that another one matches too.
func (p *Policy) Against(match int, other *Policy, otherMatch int) string {
	switch namespaced := p.Ref.Namespace != ""; {
	case namespaced && other.Ref.Namespace == "":
		return fmt.Sprintf("it takes precedence over %s, because it is namespaced", other.Ref)
	case namespaced == (other.Ref.Namespace != "") && p.Beats(match, other, otherMatch):
		return fmt.Sprintf("it takes precedence over %s, %s", other.Ref, p.precedence(match, other, otherMatch))
	}
	return fmt.Sprintf("%s takes precedence over it for templates that no policy has claimed", other.Ref)
}

func (p *Policy) precedence(match int, other *Policy, otherMatch int) string {
	switch {
	case p.priority() != other.priority():
		return fmt.Sprintf("whose priority is %d, not %d", other.priority(), p.priority())
	case match != otherMatch:
		return "which matches " + MatchText(otherMatch)
	}
	return "whose name sorts after it"
}

// NearMiss is a policy that does not match a template, and why not.
type NearMiss struct {
	Policy *Policy
	Misses []string
	Origin // of the selector
	Far    int
}

// NearMiss explains why a selector of the template's kind does not match it. It
// returns nil for a selector of another kind, and for one that matches. A miss
// by labels is nearer than one by version or namespace; a miss by name is
// farthest, since that selector was meant for another object.
func (s *Selector) NearMiss(t *Template) *NearMiss {
	if s.Kind != t.Kind || s.match(t) > NoMatch {
		return nil
	}

	n := &NearMiss{}
	if s.APIVersion != t.APIVersion {
		n.add(2, "it selects apiVersion %s, not %s", s.APIVersion, t.APIVersion)
	}
	if s.Namespace != "" && s.Namespace != t.Namespace {
		n.add(2, "it selects only in namespace %s", s.Namespace)
	}

	switch {
	case s.Name != "" && s.Name != t.Name:
		n.add(3, "it selects only the name %s", s.Name)
	case s.Name == "" && s.labels != nil && !s.labels.Matches(labels.Set(t.Labels)):
		n.add(1, "its labelSelector %s does not match the labels", s.labels)
	}

	return n
}

func (n *NearMiss) add(far int, format string, args ...any) {
	n.Far += far
	n.Misses = append(n.Misses, fmt.Sprintf(format, args...))
}

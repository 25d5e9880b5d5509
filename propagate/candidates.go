// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// matchedBy is the policy's implicit priority for a template, and where the
// selector stands that gives it.
func (p *Policy) matchedBy(t *Template) (match int, at Origin) {
	at = p.Origin
	for i := range p.selectors {
		if m := p.selectors[i].match(t); m > match {
			match, at = m, p.near(fmt.Sprintf("spec.resourceSelectors[%d]", i), "spec.resourceSelectors")
		}
	}
	return match, at
}

// by puts an implicit priority in words.
func by(match int) string {
	return [...]string{missed: "", matchedAll: "by kind", matchedLabels: "by labels", matchedName: "by name"}[match]
}

// rivals says how a policy stands to the others that match a template, as a
// part of the sentence that it claims it.
func (s *State) rivals(p *Policy, match int, t *Template) string {
	var text string
	for _, scope := range []string{t.Namespace, ""} {
		others := map[PolicyRef]bool{}
		for other := range s.index.candidates(scope, t) {
			m := other.match(t)
			if m == missed || other.Ref == p.Ref || others[other.Ref] {
				continue
			}
			others[other.Ref] = true
			text += "; " + p.against(match, other, m)
		}
		if t.Namespace == "" {
			break
		}
	}
	return text
}

// against says why a policy has a template that another one matches too.
func (p *Policy) against(match int, other *Policy, otherMatch int) string {
	switch namespaced := p.Ref.Namespace != ""; {
	case namespaced && other.Ref.Namespace == "":
		return fmt.Sprintf("it goes before %s, because it is of the namespace", other.Ref)
	case namespaced == (other.Ref.Namespace != "") && p.beats(match, other, otherMatch):
		return fmt.Sprintf("it goes before %s, %s", other.Ref, p.because(match, other, otherMatch))
	}
	return fmt.Sprintf("%s goes before it for templates that nobody has", other.Ref)
}

func (p *Policy) because(match int, other *Policy, otherMatch int) string {
	switch {
	case p.priority() != other.priority():
		return fmt.Sprintf("whose priority is %d and not %d", other.priority(), p.priority())
	case match != otherMatch:
		return "which matches " + by(otherMatch)
	}
	return "whose name is behind it in the alphabet"
}

// Near is a policy that misses a template, and by what.
type Near struct {
	Policy *Policy
	Misses []string
	Origin // of the selector
	far    int
}

// Closest are the policies that come closest to matching a template, the
// closest first: at most three, and only of its kind.
func (s *State) Closest(t *Template) []Near {
	var all []Near
	for p := range s.snapshot().Policies.Values() {
		var best *Near
		for i := range p.selectors {
			n := p.selectors[i].misses(t)
			if n == nil || best != nil && best.far <= n.far {
				continue
			}
			n.Policy, n.Origin, best = p, p.near(fmt.Sprintf("spec.resourceSelectors[%d]", i), "spec.resourceSelectors"), n
		}
		if best != nil {
			all = append(all, *best)
		}
	}
	slices.SortStableFunc(all, func(a, b Near) int {
		return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.Policy.Ref.Key(), b.Policy.Ref.Key()))
	})
	return all[:min(len(all), 3)]
}

// misses says what keeps a selector of the template's kind from matching it;
// nil for one of another kind, and one that matches. Labels are nearer than a
// version or a namespace, and another name is farthest: it was meant for
// something else.
func (s *selector) misses(t *Template) *Near {
	if s.Kind != t.Kind || s.match(t) > missed {
		return nil
	}
	n := &Near{}
	if s.APIVersion != t.APIVersion {
		n.add(2, "it selects apiVersion %s, and the template's is %s", s.APIVersion, t.APIVersion)
	}
	if s.Namespace != "" && s.Namespace != t.Namespace {
		n.add(2, "it selects in namespace %s", s.Namespace)
	}
	switch {
	case s.Name != "" && s.Name != t.Name:
		n.add(3, "it selects the name %s", s.Name)
	case s.Name == "" && s.labels != nil && !s.labels.Matches(labels.Set(t.Labels)):
		n.add(1, "its labelSelector %s does not match the labels", s.labels)
	}
	return n
}

func (n *Near) add(far int, format string, args ...any) {
	n.far += far
	n.Misses = append(n.Misses, fmt.Sprintf(format, args...))
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// rivals compares a policy that claims a template with the others that match it,
// as a part of the sentence that says so.
func (tr tracer) rivals(p *fleet.Policy, match int, t *fleet.Template) string {
	var text string
	for _, scope := range []string{t.Namespace, ""} {
		others := map[fleet.PolicyRef]bool{}
		for other := range tr.state.index.candidates(scope, t) {
			m := other.Match(t)
			if m == fleet.NoMatch || other.Ref == p.Ref || others[other.Ref] {
				continue
			}

			others[other.Ref] = true
			text += "; " + p.Against(match, other, m)
		}

		if t.Namespace == "" {
			break
		}
	}

	return text
}

// NearMisses are the policies that almost match a template, the nearest first: at
// most three, and only of its kind.
func (s *State) NearMisses(t *fleet.Template) []fleet.NearMiss {
	var all []fleet.NearMiss
	for p := range s.snapshot().Policies.Values() {
		var best *fleet.NearMiss
		for i := range p.Selectors {
			n := p.Selectors[i].NearMiss(t)
			if n == nil || best != nil && best.Far <= n.Far {
				continue
			}

			n.Policy, n.Origin, best = p, p.AtAny(fmt.Sprintf("spec.resourceSelectors[%d]", i), "spec.resourceSelectors"), n
		}
		if best != nil {
			all = append(all, *best)
		}
	}

	slices.SortStableFunc(all, func(a, b fleet.NearMiss) int {
		return cmp.Or(cmp.Compare(a.Far, b.Far), strings.Compare(a.Policy.Ref.Key(), b.Policy.Ref.Key()))
	})
	return all[:min(len(all), 3)]
}

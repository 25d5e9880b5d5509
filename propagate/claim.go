// SPDX-License-Identifier: Apache-2.0

package propagate

import "cmp"

// claim is fold rule 11: a template keeps the policy that has it as long as
// that policy exists and still matches, whatever else appears, unless one
// preempts it; otherwise it is matched from scratch.
func (st *step) claim(t *Template, held *PolicyRef) *Policy {
	if held != nil {
		if p, ok := st.next.Snapshot.Policies.Get(held.Key()); ok && p.match(t) > missed {
			return cmp.Or(st.preemptor(t, p), p)
		}
	}
	return st.best(t)
}

// best is digest §2.3: among the policies of the template's namespace, and
// only if none matches among the cluster policies, the greatest priority,
// then the most specific match, then the smallest name.
func (st *step) best(t *Template) *Policy {
	if t.Namespace != "" {
		if p := st.bestIn(t.Namespace, t); p != nil {
			return p
		}
	}
	return st.bestIn("", t)
}

func (st *step) bestIn(scope string, t *Template) *Policy {
	var best *Policy
	var bestMatch int
	for p := range st.next.index.candidates(scope, t) {
		m := p.match(t)
		if m > missed && (best == nil || p.beats(m, best, bestMatch)) {
			best, bestMatch = p, m
		}
	}
	return best
}

func (p *Policy) beats(match int, other *Policy, otherMatch int) bool {
	switch {
	case p.priority() != other.priority():
		return p.priority() > other.priority()
	case match != otherMatch:
		return match > otherMatch
	}
	return p.Ref.Name < other.Ref.Name
}

func (p *Policy) priority() int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"

// preemptor is the policy that takes a claimed template from the one that has
// it, nil when none may (digest §2.8, decision 14). It is looked at in every
// step, not only when the preemptor changed (fold rule 11).
func (st *step) preemptor(t *Template, held *Policy) *Policy {
	if !st.next.Snapshot.gate(GatePreemption) {
		return nil
	}
	for _, scope := range []string{t.Namespace, ""} {
		var best *Policy
		var bestMatch int
		for p := range st.next.index.candidates(scope, t) {
			m := p.match(t)
			if m > missed && p.preempts(held) && (best == nil || p.beats(m, best, bestMatch)) {
				best, bestMatch = p, m
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// preempts is whether p may take what other has: a policy of the namespace
// always from one of the fleet and never the other way round, and otherwise
// only with a greater priority, its own and not that of the match.
func (p *Policy) preempts(other *Policy) bool {
	switch {
	case p.Spec.Preemption != policyv1alpha1.PreemptAlways || p.Ref == other.Ref:
		return false
	case p.Ref.Namespace != "" && other.Ref.Namespace == "":
		return true
	case p.Ref.Namespace == "" && other.Ref.Namespace != "":
		return false
	}
	return p.priority() > other.priority()
}

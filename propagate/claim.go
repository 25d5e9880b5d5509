// SPDX-License-Identifier: Apache-2.0

package propagate

import "cmp"

// LabelClaimedBy on a template, with any value, says that somebody else takes
// care of it: no policy does, and what it has stays as it is (digest §2.1).
const LabelClaimedBy = "resourcetemplate.karmada.io/claimed-by"

func (t *Template) claimedByOthers() bool { return t.Labels[LabelClaimedBy] != "" }

// verdict is what a step says about who has a template.
type verdict struct {
	// policy claims the template; nil when none does.
	policy *Policy
	// winner is the policy that would claim it on its next update, which
	// StaticPolicy waits for; nil without the gate.
	winner *Policy
	// taken says that policy takes what it did not have before this step.
	taken bool
	// touched says that the template was created or updated in this step, or
	// what counts as that: its labels left its policy, or its policy is
	// activated on purpose.
	touched bool
}

// claim is fold rule 11: a template keeps the policy that has it as long as
// that policy exists and still matches, whatever else appears, unless one
// preempts it; otherwise it is matched from scratch. Under StaticPolicy a
// claim is only taken over when the template changes (rule 14).
func (st *step) claim(old *Binding, t *Template) verdict {
	held := old.claim()
	v := verdict{touched: st.touched(t, held)}
	if t.claimedByOthers() {
		return v
	}
	v.policy = st.holder(t, held)
	switch {
	case st.next.Snapshot.gate(GateStaticPolicy):
		st.claimStatic(&v, old, t)
	case v.policy != nil:
		v.policy = cmp.Or(st.preemptor(t, v.policy), v.policy)
	default:
		v.policy = st.best(t)
	}
	v.touched = v.touched || v.policy != nil && st.onPurpose(v.policy)
	v.taken = v.policy != nil && (held == nil || *held != v.policy.Ref)
	return v
}

// claimStatic: on an update the best policy wins, whoever had the template, and
// so it does when the policy that has it is activated on purpose, or the best
// one while none has it. One that waits unclaimed is else taken by a policy only
// if it changed while nothing matched, which one that was never active did.
func (st *step) claimStatic(v *verdict, old *Binding, t *Template) {
	v.winner = st.best(t)
	if asked := cmp.Or(v.policy, v.winner); asked != nil && st.onPurpose(asked) {
		v.touched = true
	}
	if v.touched || v.policy == nil && (old == nil || old.attached() || old.Unmatched) {
		v.policy = v.winner
	}
}

// holder is the policy that has the template, if it still may.
func (st *step) holder(t *Template, held *PolicyRef) *Policy {
	if held == nil {
		return nil
	}
	if p, ok := st.next.Snapshot.Policies.Get(held.Key()); ok && p.match(t) > missed {
		return p
	}
	return nil
}

// touched is whether a step creates or updates a template (decision 1).
func (st *step) touched(t *Template, held *PolicyRef) bool {
	was := st.prev.snapshot().Templates.At(t.Key())
	if was == nil || was.Update != t.Update {
		return true
	}
	if held == nil {
		return false
	}
	p, ok := st.next.Snapshot.Policies.Get(held.Key())
	return ok && p.match(was) > missed && p.match(t) == missed
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

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"

	"github.com/fairlead/fairlead/fleet"
)

// claims decides which policy has a template, by what a step changes in git.
type claims struct {
	before, after *fleet.Snapshot
	index         *index // of after
}

// verdict is which policy has a template in a step.
type verdict struct {
	// policy claims the template; nil when none does.
	policy *fleet.Policy

	// winner is the policy that would claim it on its next update, which
	// StaticPolicy waits for; nil without the gate.
	winner *fleet.Policy

	// taken says that policy did not have the template before this step.
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
func (c claims) claim(old *Binding, t *fleet.Template) verdict {
	held := old.claim()
	v := verdict{touched: c.touched(t, held)}
	if t.ClaimedByOthers() || c.after.Skips(t.ID) != "" {
		return v
	}

	v.policy = c.holder(t, held)
	switch {
	case c.after.Gate(fleet.GateStaticPolicy):
		c.claimStatic(&v, old, t)
	case v.policy != nil:
		v.policy = cmp.Or(c.preemptor(t, v.policy), v.policy)
	default:
		v.policy = c.index.best(t)
	}

	v.touched = v.touched || v.policy != nil && c.onPurpose(v.policy)
	v.taken = v.policy != nil && (held == nil || *held != v.policy.Ref)
	return v
}

// claimStatic claims under StaticPolicy. On an update the best policy wins,
// whoever had the template, and so it does when the policy that has it is
// activated on purpose, or the best one while none has it. A template that
// waits unclaimed is otherwise claimed only if it changed while nothing matched,
// which one that was never active did.
func (c claims) claimStatic(v *verdict, old *Binding, t *fleet.Template) {
	v.winner = c.index.best(t)
	if p := cmp.Or(v.policy, v.winner); p != nil && c.onPurpose(p) {
		v.touched = true
	}
	if v.touched || v.policy == nil && (old == nil || old.attached() || old.Unmatched) {
		v.policy = v.winner
	}
}

// holder is the policy that has the template, nil if it no longer may.
func (c claims) holder(t *fleet.Template, held *fleet.PolicyRef) *fleet.Policy {
	if held == nil {
		return nil
	}
	if p, ok := c.after.Policies.Get(held.Key()); ok && p.Match(t) > fleet.NoMatch {
		return p
	}
	return nil
}

// touched reports whether a step creates or updates a template (decision 1).
func (c claims) touched(t *fleet.Template, held *fleet.PolicyRef) bool {
	was := c.before.Templates.At(t.Key())
	if was == nil || was.Update != t.Update {
		return true
	}
	if held == nil {
		return false
	}
	p, ok := c.after.Policies.Get(held.Key())
	return ok && p.Match(was) > fleet.NoMatch && p.Match(t) == fleet.NoMatch
}

// onPurpose reports whether a policy is activated in this step: its annotation
// appears or changes. One that comes with the policy does not count, nor does
// its removal.
func (c claims) onPurpose(p *fleet.Policy) bool {
	was, ok := c.before.Policies.Get(p.Ref.Key())
	return ok && p.Activate != "" && p.Activate != was.Activate
}

// best is digest §2.3: among the policies of the template's namespace, and
// only if none matches among the cluster policies, the greatest priority,
// then the most specific match, then the smallest name.
func (ix *index) best(t *fleet.Template) *fleet.Policy {
	return ix.bestOf(t, func(*fleet.Policy) bool { return true })
}

// bestOf is best among the policies that may claim the template.
func (ix *index) bestOf(t *fleet.Template, may func(*fleet.Policy) bool) *fleet.Policy {
	for _, scope := range []string{t.Namespace, ""} {
		var best *fleet.Policy
		var bestMatch int
		for p := range ix.candidates(scope, t) {
			m := p.Match(t)
			if m > fleet.NoMatch && may(p) && (best == nil || p.Beats(m, best, bestMatch)) {
				best, bestMatch = p, m
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

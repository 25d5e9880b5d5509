// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
)

// activates is fold rule 13: a template's content and a policy's delayed
// fields become active when the template changes, when the policy does not
// delay, or when it is activated on purpose.
func (c claims) activates(v verdict) bool {
	switch {
	case v.policy == nil || c.after.WaitsFor(v.policy):
		return false
	case v.touched:
		return true
	case v.policy.Lazy():
		// What changed while nothing matched does not count for it.
		return false
	case c.after.Gate(fleet.GateStaticPolicy):
		return v.taken
	}
	return true
}

// activate puts the template and the policy that claims it into effect, or
// leaves what is.
func (d *decision) activate() {
	if !d.activates {
		d.b.Active = d.old.Active
		return
	}
	d.b.Active = d.active(d.old, d.template, d.verdict.policy)
}

// active is a template and a policy in effect, each as of a commit that holds
// it. What did not change keeps the commit that brought it.
func (in *inputs) active(old *Binding, t *fleet.Template, p *fleet.Policy) *Active {
	next := &Active{Template: t, TemplateCommit: in.holds(t.Unit), Policy: p, PolicyCommit: in.holds(p.Unit)}
	if old == nil {
		return next
	}

	was := old.Active
	if was.Template.Digest == t.Digest && was.Template.APIVersion == t.APIVersion {
		next.Template, next.TemplateCommit = was.Template, was.TemplateCommit
	}
	if was.Policy.Ref == p.Ref && was.Policy.Delayed == p.Delayed {
		next.Policy, next.PolicyCommit = was.Policy, was.PolicyCommit
	}

	if *next == *was {
		return was
	}
	return next
}

// pending notes what waits once everything that may be active is: nothing when
// what is in git and what is in effect are the same. Under StaticPolicy it is
// measured against the policy that would win (fold rule 11).
func (d *decision) pending() {
	claimer := cmp.Or(d.verdict.winner, d.verdict.policy)
	reason := d.pendingReason(claimer)
	if reason == "" {
		return
	}

	next := &Pending{Reason: reason, Since: d.commit}
	if claimer != nil {
		next.Policy = &claimer.Ref
	}
	if d.old != nil && d.old.Pending != nil && d.old.Pending.Reason == reason {
		next.Since = d.old.Pending.Since
	}
	d.b.Pending = next
}

// pendingReason is why a change waits, "" when none does.
func (d *decision) pendingReason(claimer *fleet.Policy) string {
	changed := d.b.Active.Template.Update != d.template.Update

	switch {
	case claimer == nil && changed:
		return workv1alpha2.ReasonNoMatchingPolicy
	case claimer == nil:
		return ""
	case d.after.snapshot().WaitsFor(claimer) && (changed || d.b.Active.Policy.Delayed != claimer.Delayed):
		return workv1alpha2.ReasonDependentOverridesMissing
	case d.b.inEffect(claimer, d.template):
		// An equal copy under another name, or an edit that was reverted.
		return ""
	case claimer.Lazy():
		return workv1alpha2.ReasonLazyPolicyPending
	}
	return workv1alpha2.ReasonStaticPolicyPending
}

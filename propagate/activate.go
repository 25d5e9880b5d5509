// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// AnnotationActivate on a policy forces it into effect: a change of its value
// in a commit counts as an update of every template that the policy claims
// (decision 15).
const AnnotationActivate = fleetv1alpha1.AnnotationActivate

// activates is fold rule 13: a template's content and a policy's delayed
// fields become active when the template changes, when the policy does not
// delay, or when it is activated on purpose.
func (st *step) activates(v verdict) bool {
	switch {
	case v.policy == nil || st.next.Snapshot.waitsFor(v.policy):
		return false
	case v.touched:
		return true
	case v.policy.lazy():
		// What changed while nothing matched does not count for it.
		return false
	case st.next.Snapshot.gate(GateStaticPolicy):
		return v.taken
	}
	return true
}

func (p *Policy) lazy() bool { return p.Spec.ActivationPreference == policyv1alpha1.LazyActivation }

// onPurpose is whether a policy is activated in this step: its annotation
// appears or changes. One that comes with the policy does not count, nor does
// its removal.
func (st *step) onPurpose(p *Policy) bool {
	was, ok := st.prev.snapshot().Policies.Get(p.Ref.Key())
	return ok && p.Activate != "" && p.Activate != was.Activate
}

// activate puts a template and a policy into effect, each as of a commit that
// holds it. What did not change keeps the commit that brought it.
func (st *step) activate(old *Binding, t *Template, p *Policy) *Active {
	next := &Active{Template: t, TemplateCommit: st.heldBy(t.Unit), Policy: p, PolicyCommit: st.heldBy(p.Unit)}
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

// pending is what waits once everything that may be active is: nil when what
// git says and what is in effect are the same. Under StaticPolicy it is
// measured against the policy that would win (fold rule 11).
func (st *step) pending(b, old *Binding, t *Template, v verdict) *Pending {
	claimer := cmp.Or(v.winner, v.policy)
	next := &Pending{Reason: st.waitingReason(b, t, claimer), Since: st.commit.Hash}
	if next.Reason == "" {
		return nil
	}
	if claimer != nil {
		next.Policy = &claimer.Ref
	}
	if old != nil && old.Pending != nil && old.Pending.Reason == next.Reason {
		next.Since = old.Pending.Since
	}
	return next
}

func (st *step) waitingReason(b *Binding, t *Template, claimer *Policy) string {
	changed := b.Active.Template.Update != t.Update
	switch {
	case claimer == nil && changed:
		return workv1alpha2.ReasonNoMatchingPolicy
	case claimer == nil:
		return ""
	case st.next.Snapshot.waitsFor(claimer) && (changed || b.Active.Policy.Delayed != claimer.Delayed):
		return workv1alpha2.ReasonDependentOverridesMissing
	case b.inEffect(claimer, t):
		// An equal copy under another name, or an edit that was reverted.
		return ""
	case claimer.lazy():
		return workv1alpha2.ReasonLazyPolicyPending
	}
	return workv1alpha2.ReasonStaticPolicyPending
}

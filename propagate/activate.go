// SPDX-License-Identifier: Apache-2.0

package propagate

import workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"

// activate is fold rule 13: under a policy that does not delay, the template
// and the policy are in effect as they stand. Without a claim the binding
// keeps what was active (decision 23), and waits once git says otherwise.
func (st *step) activate(old *Binding, t *Template, p *Policy) (*Active, *Pending) {
	if p == nil {
		return old.Active, st.waiting(old, t)
	}
	next := &Active{Template: t, TemplateCommit: st.commit.Hash, Policy: p, PolicyCommit: st.commit.Hash}
	if old == nil || old.Active == nil {
		return next, nil
	}
	// What did not change keeps the commit that brought it.
	was := old.Active
	if was.Template.Digest == t.Digest && was.Template.APIVersion == t.APIVersion {
		next.Template, next.TemplateCommit = was.Template, was.TemplateCommit
	}
	if was.Policy.Ref == p.Ref && was.Policy.Delayed == p.Delayed {
		next.Policy, next.PolicyCommit = was.Policy, was.PolicyCommit
	}
	if *next == *was {
		return was, nil
	}
	return next, nil
}

// waiting is an unclaimed template's: pending as soon as its content is not
// the active one any more.
func (st *step) waiting(old *Binding, t *Template) *Pending {
	switch {
	case old.Active.Template.Update == t.Update:
		return nil
	case old.Pending != nil:
		return old.Pending
	}
	return &Pending{Reason: workv1alpha2.ReasonNoMatchingPolicy, Since: st.commit.Hash}
}

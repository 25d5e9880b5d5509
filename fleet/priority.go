// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// LabelClaimedBy on a template, with any value, says that another tool manages
// it: no policy claims it, and what it has stays as it is (digest §2.1).
const LabelClaimedBy = "resourcetemplate.karmada.io/claimed-by"

// ClaimedByOthers reports whether the template has LabelClaimedBy.
func (t *Template) ClaimedByOthers() bool { return t.Labels[LabelClaimedBy] != "" }

// Beats reports whether p comes before other for an unclaimed template that
// both match: by explicit priority, then by how well each matches (see Match),
// then by name.
func (p *Policy) Beats(match int, other *Policy, otherMatch int) bool {
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

// Preempts reports whether p may take a template from other. A namespaced
// policy always may from a cluster policy, never the other way round. Otherwise
// p needs a greater explicit priority; how well it matches does not count.
func (p *Policy) Preempts(other *Policy) bool {
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

// AnnotationActivate on a policy forces it into effect: a commit that changes
// its value counts as an update of every template that the policy claims
// (decision 15).
const AnnotationActivate = fleetv1alpha1.AnnotationActivate

// Lazy reports whether the policy waits for an update of a template before it
// takes effect on it.
func (p *Policy) Lazy() bool { return p.Spec.ActivationPreference == policyv1alpha1.LazyActivation }

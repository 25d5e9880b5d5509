// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
)

// Findings are what a reader should know about the state: templates that wait
// for a policy or for a cluster that fits, names of clusters that do not exist,
// documents that are never propagated.
func (s *State) Findings() []fleet.Finding {
	snapshot := s.snapshot()
	all := s.Broken()
	for f := range snapshot.Findings.Values() {
		all = append(all, *f)
	}

	for t := range snapshot.Templates.Values() {
		if f := templateFinding(s, t); f != nil {
			all = append(all, *f)
		}
		if t.Immediate != nil {
			all = append(all, snapshot.UnknownHeld(t)...)
		}
		if t.Assumed {
			all = append(all, fleet.Finding{Code: fleet.FindingScopeAssumed, Severity: fleet.SeverityNotice, Object: t.ID, Origin: t.Origin,
				Message: fmt.Sprintf("%s is taken to be namespaced, in default: nothing says whether %s is; its CustomResourceDefinition in the fleet would", t.ID, t.GroupKind())})
		}
	}

	for b := range s.Bindings.Values() {
		all = append(all, bindingFindings(s, b)...)
	}

	all = append(all, pendingFindings(s)...)
	for p := range snapshot.Policies.Values() {
		all = append(all, snapshot.UnknownClusters(p)...)
		all = append(all, snapshot.NoEffect(p)...)
	}

	all = append(all, snapshot.UnknownWaves()...)
	for o := range snapshot.Overrides.Values() {
		all = append(all, snapshot.UnknownTargets(o)...)
	}

	for in := range snapshot.Interpreters.Values() {
		all = append(all, in.IdleScripts()...)
	}

	for r := range snapshot.Rebalancers.Values() {
		all = append(all, unbalanced(s, r)...)
	}

	sortFindings(all)
	return all
}

// templateFinding is why a template is not propagated as it is in git, nil when
// it is.
func templateFinding(s *State, t *fleet.Template) *fleet.Finding {
	b := s.Bindings.At(t.Key())
	f := &fleet.Finding{Severity: fleet.SeverityCaution, Object: t.ID, Origin: t.Origin}
	switch {
	case t.ClaimedByOthers() && (b == nil || !b.attached()):
		f.Code, f.Severity = fleet.FindingNotPropagated, fleet.SeverityNotice
		f.Message = fmt.Sprintf("%s is left to %s, as its label %s says", t.ID, t.Labels[fleet.LabelClaimedBy], fleet.LabelClaimedBy)
	case (b == nil || b.Claim == nil) && s.snapshot().Skips(t.ID) != "":
		f.Code, f.Severity = fleet.FindingNotPropagated, fleet.SeverityNotice
		f.Message = fmt.Sprintf("%s is not propagated: namespace %s is local to each cluster (spec.skippedNamespaces)", t.ID, s.snapshot().Skips(t.ID))
	case b == nil && waitsForOverrides(s, t):
		f.Code = fleet.FindingWaits
		f.Message = fmt.Sprintf("%s waits for the overrides that its policy depends on", t.ID)
	case b == nil:
		f.Code = fleet.FindingNoPolicy
		f.Message = fmt.Sprintf("%s waits: no policy matches it", t.ID)
	case b.Claim == nil && b.Pending != nil && b.Pending.Reason == workv1alpha2.ReasonNoMatchingPolicy:
		f.Code = fleet.FindingNoPolicy
		f.Message = fmt.Sprintf("%s matches no policy any more: its copies stay as they are and its changes wait", t.ID)
	case b.Claim != nil && !b.attached() && b.Active.Policy.Spec.SchedulerName != fleet.DefaultScheduler:
		f.Code, f.Policy = fleet.FindingUnscheduled, b.Active.Policy.Ref
		f.Message = fmt.Sprintf("%s is left to scheduler %q, which is not this one: it stays where it is", t.ID, b.Active.Policy.Spec.SchedulerName)
	case b.Scheduled.Reason != "" && b.Scheduled.Reason != workv1alpha2.ReasonSuccess:
		how := "goes nowhere"
		if len(b.Targets) > 0 {
			how = "stays where it is"
		}
		f.Code, f.Policy = fleet.FindingUnscheduled, b.Active.Policy.Ref
		f.Message = fmt.Sprintf("%s %s: %s", t.ID, how, b.Scheduled.Message)
	default:
		return nil
	}

	return f
}

// bindingFindings are about what a binding requires, and what requires it.
func bindingFindings(s *State, b *Binding) (all []fleet.Finding) {
	if b.answers != nil && b.answers.noRefs != "" && b.Active.Policy.Spec.PropagateDeps {
		all = append(all, fleet.Finding{Code: fleet.FindingInterpreter, Severity: fleet.SeverityCaution, Object: b.ID, Origin: origin(b, s),
			Message: fmt.Sprintf("what %s requires stays as it was: %s", b.ID, b.answers.noRefs)})
	}
	if b.attached() {
		all = append(all, ownersDisagree(s, b)...)
	}
	return all
}

// pendingFindings are the policies that wait for templates to change.
func pendingFindings(s *State) (all []fleet.Finding) {
	waiting, elsewhere := map[fleet.PolicyRef]int{}, map[fleet.PolicyRef]bool{}
	for b := range s.Bindings.Values() {
		if b.Pending == nil || b.Pending.Policy == nil {
			continue
		}
		waiting[*b.Pending.Policy]++
		if b.Claim != nil && *b.Claim != *b.Pending.Policy {
			elsewhere[*b.Pending.Policy] = true
		}
	}

	for p := range s.snapshot().Policies.Values() {
		n := waiting[p.Ref]
		if n == 0 {
			continue
		}

		or := ", or to be activated"
		if elsewhere[p.Ref] {
			or = "" // its activation does not reach what other policies claim
		}
		all = append(all, fleet.Finding{Code: fleet.FindingNotActivated, Severity: fleet.SeverityCaution, Policy: p.Ref, Origin: p.Origin,
			Message: fmt.Sprintf("%s waits for the next change of %s%s", p.Ref, count(n, "template"), or)})
	}

	return all
}

// ownersDisagree is the finding that the owners of a dependency want different
// things of it, and what holds (digest §8.4).
func ownersDisagree(s *State, b *Binding) []fleet.Finding {
	overwrites, preserves := map[bool]bool{}, map[bool]bool{}
	for id := range s.index.owners(b.ID) {
		owner := s.Bindings.At(id.Key())
		overwrites[owner.Active.Policy.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite] = true
		preserves[owner.inForce().Keeps()] = true
	}

	var parts []string
	if len(overwrites) > 1 {
		parts = append(parts, "conflictResolution (Overwrite holds)")
	}
	if len(preserves) > 1 {
		parts = append(parts, "preserveResourcesOnDeletion (true holds)")
	}

	if len(parts) == 0 {
		return nil
	}
	return []fleet.Finding{{Code: fleet.FindingOwnersDisagree, Severity: fleet.SeverityCaution, Object: b.ID, Origin: origin(b, s),
		Message: fmt.Sprintf("%s is required by templates whose policies disagree on %s", b.ID, strings.Join(parts, " and "))}}
}

// waitsForOverrides reports whether a template has no binding although a policy
// matches it.
func waitsForOverrides(s *State, t *fleet.Template) bool {
	p := s.index.best(t)
	return p != nil && s.snapshot().WaitsFor(p)
}

// sortFindings puts errors first, then cautions, then by code and place.
func sortFindings(all []fleet.Finding) {
	rank := map[fleet.Severity]int{fleet.SeverityError: 0, fleet.SeverityCaution: 1, fleet.SeverityNotice: 2}
	slices.SortStableFunc(all, func(a, b fleet.Finding) int {
		return cmp.Or(
			cmp.Compare(rank[a.Severity], rank[b.Severity]),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Object.Key(), b.Object.Key()),
			strings.Compare(strings.Join(a.Clusters, ","), strings.Join(b.Clusters, ",")),
		)
	})
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Level says how much a finding matters.
type Level string

// An error must be dealt with, a caution be looked at, a notice be known.
const (
	LevelError   Level = "error"
	LevelCaution Level = "caution"
	LevelNotice  Level = "notice"
)

// The codes of findings.
const (
	FindingRenderError      = "render-error"
	FindingFleetWideDelete  = "fleet-wide-delete"
	FindingNoPolicy         = "no-policy"
	FindingUnknownCluster   = "unknown-cluster"
	FindingNotPropagated    = "not-propagated"
	FindingDeleteSuspended  = "delete-while-suspended"
	FindingDropSuspended    = "drop-while-suspended"
	FindingOrphanOnMove     = "orphan-on-move"
	FindingPolicyHoldStays  = "policy-removed-hold-stays"
	FindingReplicaShortfall = "replica-shortfall"
	FindingReplicaExcess    = "replica-excess"
	FindingNewCluster       = "new-cluster"
	FindingClusterLeft      = "cluster-left"
	FindingBaseMoved        = "base-moved"
	FindingOverrideFailed   = "override-failed"
	FindingOwnersDisagree   = "dependency-policy-conflict"
	FindingNoEffect         = "no-effect"
	FindingNotActivated     = "lazy-not-activated"
	FindingWaits            = "waiting-for-overrides"
	FindingUnscheduled      = "unscheduled"
	FindingInterpreter      = "interpreter-failed"
	FindingNotPlaced        = "rebalances-nothing"
	FindingFrozen           = "frozen-unit"
	FindingRefused          = "refused-everywhere"
)

// Finding is something that a reviewer should know and that refuses nothing.
type Finding struct {
	Code     string
	Level    Level
	Message  string
	Object   ID
	Clusters []string
	Policy   PolicyRef
	Origin   Origin
	// Trailer is the commit message line that releases a held commit.
	Trailer string
}

// String reads "file:line: message".
func (f Finding) String() string { return Problem{f.Origin, f.Message}.Error() }

// Findings are what is worth saying about the state as it stands: templates
// that wait for a policy or for a cluster that fits, names of clusters that
// do not exist, documents that are never propagated.
func (s *State) Findings() []Finding {
	var all []Finding
	snapshot := s.snapshot()
	all = append(all, s.Broken()...)
	for f := range snapshot.Findings.Values() {
		all = append(all, *f)
	}
	for t := range snapshot.Templates.Values() {
		b := s.Bindings.At(t.Key())
		switch {
		case t.claimedByOthers() && (b == nil || !b.attached()):
			all = append(all, Finding{Code: FindingNotPropagated, Level: LevelNotice, Object: t.ID, Origin: t.Origin,
				Message: fmt.Sprintf("%s is left to %s, as its label %s says", t.ID, t.Labels[LabelClaimedBy], LabelClaimedBy)})
		case b == nil && s.waitsForOverrides(t):
			all = append(all, Finding{Code: FindingWaits, Level: LevelCaution, Object: t.ID, Origin: t.Origin,
				Message: fmt.Sprintf("%s waits for the overrides that its policy depends on", t.ID)})
		case b == nil:
			all = append(all, Finding{Code: FindingNoPolicy, Level: LevelCaution, Object: t.ID, Origin: t.Origin,
				Message: fmt.Sprintf("%s waits: no policy matches it", t.ID)})
		case b.Claim == nil && b.Pending != nil && b.Pending.Reason == workv1alpha2.ReasonNoMatchingPolicy:
			all = append(all, Finding{Code: FindingNoPolicy, Level: LevelCaution, Object: t.ID, Origin: t.Origin,
				Message: fmt.Sprintf("%s matches no policy any more: its copies stay as they are and its changes wait", t.ID)})
		case b.Claim != nil && !b.attached() && b.Active.Policy.Spec.SchedulerName != defaultScheduler:
			all = append(all, Finding{Code: FindingUnscheduled, Level: LevelCaution, Object: t.ID, Origin: t.Origin, Policy: b.Active.Policy.Ref,
				Message: fmt.Sprintf("%s is left to scheduler %q, which is not this one: it stays where it is", t.ID, b.Active.Policy.Spec.SchedulerName)})
		case b.Scheduled.Reason != "" && b.Scheduled.Reason != workv1alpha2.ReasonSuccess:
			how := "goes nowhere"
			if len(b.Targets) > 0 {
				how = "stays where it is"
			}
			all = append(all, Finding{Code: FindingUnscheduled, Level: LevelCaution, Object: t.ID, Origin: t.Origin, Policy: b.Active.Policy.Ref,
				Message: fmt.Sprintf("%s %s: %s", t.ID, how, b.Scheduled.Message)})
		}
	}
	waiting, elsewhere := map[PolicyRef]int{}, map[PolicyRef]bool{}
	for b := range s.Bindings.Values() {
		if b.Pending != nil && b.Pending.Policy != nil {
			waiting[*b.Pending.Policy]++
			if b.Claim != nil && *b.Claim != *b.Pending.Policy {
				elsewhere[*b.Pending.Policy] = true
			}
		}
		if b.answers != nil && b.answers.unread != "" && b.Active.Policy.Spec.PropagateDeps {
			all = append(all, Finding{Code: FindingInterpreter, Level: LevelCaution, Object: b.ID, Origin: origin(b, s),
				Message: fmt.Sprintf("what %s requires stays as it was: %s", b.ID, b.answers.unread)})
		}
		if b.attached() {
			all = append(all, s.ownersDisagree(b)...)
		}
	}
	for p := range snapshot.Policies.Values() {
		if n := waiting[p.Ref]; n > 0 {
			or := ", or to be activated"
			if elsewhere[p.Ref] {
				or = "" // its activation does not reach what others claim
			}
			all = append(all, Finding{Code: FindingNotActivated, Level: LevelCaution, Policy: p.Ref, Origin: p.Origin,
				Message: fmt.Sprintf("%s waits for the next change of %s%s", p.Ref, count(n, "template"), or)})
		}
		all = append(all, snapshot.unknownClusters(p)...)
		all = append(all, snapshot.withoutEffect(p)...)
	}
	for o := range snapshot.Overrides.Values() {
		all = append(all, snapshot.unknownTargets(o)...)
	}
	for in := range snapshot.Interpreters.Values() {
		all = append(all, in.idleScripts()...)
	}
	for r := range snapshot.Rebalancers.Values() {
		all = append(all, s.unbalanced(r)...)
	}
	sortFindings(all)
	return all
}

// ownersDisagree says that the owners of a dependency want different things of
// it, and what holds (digest §8.4).
func (s *State) ownersDisagree(b *Binding) []Finding {
	overwrites, preserves := map[bool]bool{}, map[bool]bool{}
	for id := range s.index.owners(b.ID) {
		owner := s.Bindings.At(id.Key())
		overwrites[owner.Active.Policy.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite] = true
		preserves[owner.Brakes.Keeps()] = true
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
	return []Finding{{Code: FindingOwnersDisagree, Level: LevelCaution, Object: b.ID, Origin: origin(b, s),
		Message: fmt.Sprintf("%s is required by templates whose policies disagree on %s", b.ID, strings.Join(parts, " and "))}}
}

// waitsForOverrides is whether a template has no binding although a policy
// matches it.
func (s *State) waitsForOverrides(t *Template) bool {
	st := &step{prev: s, next: *s}
	p := st.best(t)
	return p != nil && s.snapshot().waitsFor(p)
}

// unknownClusters are names in a policy that no Cluster document bears.
func (s *Snapshot) unknownClusters(p *Policy) []Finding {
	n := &namedClusters{fleet: s, policy: p.Ref, by: p.Ref.String(), at: p.At}
	const placement = "spec.placement"
	n.affinity(placement+".clusterAffinity", p.Spec.Placement.ClusterAffinity)
	for i := range p.Spec.Placement.ClusterAffinities {
		term := &p.Spec.Placement.ClusterAffinities[i]
		path := fmt.Sprintf("%s.clusterAffinities[%d]", placement, i)
		n.affinity(path, &term.ClusterAffinity)
		for j := range term.OverflowAffinities {
			n.affinity(fmt.Sprintf("%s.overflowAffinities[%d]", path, j), &term.OverflowAffinities[j].ClusterAffinity)
		}
	}
	if r := p.Spec.Placement.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		for i, w := range r.WeightPreference.StaticWeightList {
			n.affinity(fmt.Sprintf("%s.replicaScheduling.weightPreference.staticWeightList[%d].targetCluster", placement, i), &w.TargetCluster)
		}
	}
	if sus := p.Spec.Suspension; sus != nil && sus.DispatchingOnClusters != nil {
		n.check("spec.suspension.dispatchingOnClusters.clusterNames", sus.DispatchingOnClusters.ClusterNames)
	}
	for _, wave := range p.Waves {
		n.check(annotationPath(fleetv1alpha1.AnnotationWaves), wave)
	}
	return n.found
}

// unknownTargets finds the rules of an override that are for clusters that the
// fleet does not have.
func (s *Snapshot) unknownTargets(o *Override) []Finding {
	n := &namedClusters{fleet: s, by: o.Ref.String(), at: func(path string) Origin {
		c := check{origin: o.Origin, lines: o.Lines}
		return Origin{o.Origin.File, c.line(path)}
	}}
	n.affinity("spec.targetCluster", o.Spec.TargetCluster)
	for i := range o.Spec.OverrideRules {
		n.affinity(fmt.Sprintf("spec.overrideRules[%d].targetCluster", i), o.Spec.OverrideRules[i].TargetCluster)
	}
	return n.found
}

// namedClusters finds names in a document that no cluster of the fleet has.
type namedClusters struct {
	fleet  *Snapshot
	policy PolicyRef // zero for what is none
	by     string
	at     func(path string) Origin
	found  []Finding
}

func (n *namedClusters) affinity(path string, a *policyv1alpha1.ClusterAffinity) {
	if a != nil {
		n.check(path+".clusterNames", a.ClusterNames)
		n.check(path+".exclude", a.ExcludeClusters)
	}
}

func (n *namedClusters) check(path string, names []string) {
	for _, name := range names {
		if _, ok := n.fleet.Clusters.Get(name); !ok {
			n.found = append(n.found, Finding{Code: FindingUnknownCluster, Level: LevelCaution, Policy: n.policy, Clusters: []string{name},
				Origin: n.at(path), Message: fmt.Sprintf("%s names cluster %q, which is not in the fleet", n.by, name)})
		}
	}
}

// sortFindings puts errors first, then cautions, then by code and place.
func sortFindings(all []Finding) {
	rank := map[Level]int{LevelError: 0, LevelCaution: 1, LevelNotice: 2}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(rank[a.Level], rank[b.Level]),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Object.Key(), b.Object.Key()),
			strings.Compare(strings.Join(a.Clusters, ","), strings.Join(b.Clusters, ",")),
		)
	})
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// Plan is what a change of git does to the members: the difference between
// two states, one cell for each object on each cluster.
type Plan struct {
	Cells    []Cell
	Findings []fleet.Finding

	// Incomplete says that the comparison itself failed, and there are no cells.
	Incomplete bool
}

// Action is what happens to an object.
type Action string

// The actions of a cell.
const (
	ActionCreate   Action = "create"
	ActionUpdate   Action = "update"
	ActionScale    Action = "scale"
	ActionDelete   Action = "delete"
	ActionPreserve Action = "preserve" // left running, without our marks
	ActionNone     Action = "none"
)

// Disposition is when it happens.
type Disposition string

// The dispositions of a cell.
const (
	Now      Disposition = "now"
	Released Disposition = "released" // because this change lifts a hold
	Held     Disposition = "held"     // a suspension stops it
	Deferred Disposition = "deferred" // a policy puts it off
	Blocked  Disposition = "blocked"  // it cannot happen
)

// Cell is one object on one cluster.
type Cell struct {
	Object      object.ID
	APIVersion  string
	Cluster     string
	Policy      fleet.PolicyRef
	Action      Action
	Disposition Disposition

	// After is what clusters are to acknowledge before a deletion, or before replicas
	// are taken away (decision 42).
	After []string

	// Replicas is nil for kinds without.
	Replicas *ReplicaChange
	Because  []Because

	// DependsOn is "observations" when what was observed of the members ranked
	// or excluded a cluster: the plan holds as long as that does (fold rule 22).
	DependsOn string

	// Runs is what the cluster has by the fold, and Wants what it would have; nil is
	// nothing.
	Runs, Wants *Content

	// Already says that the work was held before, or blocked, and that this change
	// adds nothing to what waits.
	Already bool
}

// ReplicaChange is what a cluster runs before and after, and the share it
// would run if nothing were held.
type ReplicaChange struct {
	Before, After, Asked int64
}

// Because is a reason, and where in git it is.
type Because struct {
	Code string
	fleet.Origin
}

// Compare plans the step from base to head. guard holds that step, nil when none
// does. If the comparison fails, the plan says so and nothing else.
func Compare(base, head *State, guard *Guard) (plan *Plan) {
	defer recovered(func() {
		plan = &Plan{Incomplete: true, Findings: []fleet.Finding{{Code: fleet.FindingRenderError, Severity: fleet.SeverityError, Message: defect.Message}}}
	})

	p := newPlanner(base, head)
	for d := range ordered.Diff(base.Bindings, head.Bindings) {
		p.binding(d.Before, d.After)
	}

	p.unchangedHolds()
	p.returned()
	p.deferred()
	p.neededNamespaces()

	slices.SortFunc(p.cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Object.Key(), b.Object.Key()), cmp.Compare(a.Cluster, b.Cluster))
	})

	p.fleet(guard)
	sortFindings(p.findings)
	return &Plan{Cells: p.cells, Findings: p.findings}
}

// planner makes the cells and findings of a plan.
type planner struct {
	base, head *State
	why        *why
	cells      []Cell
	findings   []fleet.Finding
	actions    map[[2]*Content]Action
	departures map[departure]int // the number of their finding
}

func newPlanner(base, head *State) *planner {
	return &planner{base: base, head: head, why: &why{base: base, head: head}, actions: map[[2]*Content]Action{}, departures: map[departure]int{}}
}

// unchangedHolds lists what was held before and still is, though nothing about
// it changes here: a reviewer sees how much is held.
func (p *planner) unchangedHolds() {
	for key, b := range p.head.Bindings.All() {
		if b.waits() && p.base.Bindings.At(key) == b {
			p.binding(b, b)
		}
	}
}

// waits reports whether something is kept from a cluster.
func (b *Binding) waits() bool {
	return slices.ContainsFunc(b.Works, func(w Work) bool { return w.Held || w.Blocked != "" })
}

// bindingFindings are about a binding as a whole.
func (p *planner) bindingFindings(before, after *Binding) {
	if before != nil && before.Claim != nil && after.Claim == nil {
		held := slices.ContainsFunc(after.Works, func(w Work) bool { return w.Held })
		if held {
			p.find(after, "", fleet.Finding{Code: fleet.FindingPolicyHoldStays, Severity: fleet.SeverityNotice, Origin: origin(after, p.head),
				Message: fmt.Sprintf("%s matches no policy any more: its placement and its hold stay as they were", after.ID)})
		}
	}

	if _, workload := after.replicas(); !workload || !after.Active.Policy.Placement.Divided() {
		return
	}

	var wants, runs int64
	for _, w := range after.Works {
		wants += w.Want.Replicas
		if w.Released != nil {
			runs += w.Released.Replicas
		}
	}

	switch {
	case runs < wants:
		p.find(after, "", fleet.Finding{Code: fleet.FindingReplicaShortfall, Severity: fleet.SeverityNotice, Origin: p.why.policy(after).At("spec.suspension"),
			Message: fmt.Sprintf("%s wants %d replicas and runs %d while it is held", after.ID, wants, runs)})
	case runs > wants:
		p.find(after, "", fleet.Finding{Code: fleet.FindingReplicaExcess, Severity: fleet.SeverityNotice, Origin: p.why.policy(after).At("spec.suspension"),
			Message: fmt.Sprintf("%s wants %d replicas and runs %d while it is held", after.ID, wants, runs)})
	}
}

// fleet adds the findings about the change as a whole.
func (p *planner) fleet(guard *Guard) {
	if guard != nil {
		p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingFleetWideDelete, Severity: fleet.SeverityError, Trailer: guard.Trailer(),
			Message: "held: " + guard.summary() + "; to allow it, add to a commit message: " + guard.Trailer()})
	}

	p.renamed()
	for d := range ordered.Diff(p.base.snapshot().Clusters, p.head.snapshot().Clusters) {
		switch {
		case !d.Has:
			p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingClusterLeft, Severity: fleet.SeverityCaution, Clusters: []string{d.Key}, Origin: d.Before.Origin,
				Message: fmt.Sprintf("cluster %s leaves the fleet: nothing is sent to it any more, its objects and our marks stay", d.Key)})
		case !d.Had:
			p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingNewCluster, Severity: fleet.SeverityNotice, Clusters: []string{d.Key}, Origin: d.After.Origin,
				Message: fmt.Sprintf("cluster %s joins the fleet and receives %s", d.Key, count(p.creates(d.Key), "object"))})
		}
	}

	p.limitRaised()
	p.rules()

	known := map[string]bool{}
	for _, f := range p.base.Findings() {
		known[f.Code+"\x00"+f.Message] = true
	}

	for _, f := range p.head.Findings() {
		// An error is repeated until it is fixed.
		if f.Severity == fleet.SeverityError || !known[f.Code+"\x00"+f.Message] {
			p.findings = append(p.findings, f)
		}
	}
}

// renamed tells of another name of the fleet (decision 33).
func (p *planner) renamed() {
	before, after := p.base.Name(), p.head.Name()
	if p.base.Accepted == "" || before == after {
		return
	}

	p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingRenamed, Severity: fleet.SeverityNotice, Origin: p.settingsOrigin(),
		Message: fmt.Sprintf("the fleet is called %s instead of %s: nothing is sent for that, and an object gets the name with its next change", after, before)})
}

// limitRaised is the finding that commits may delete more from now on (decision
// 46). This one is still held to the limit before.
func (p *planner) limitRaised() {
	before, had := p.base.snapshot().Settings.MaxDelete(p.base.Works)
	after, has := p.head.snapshot().Settings.MaxDelete(p.base.Works)
	if p.base.Snapshot == nil || !had || has && after <= before {
		return
	}

	now := "no limit"
	if has {
		now = count(after, "work")
	}
	p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingLimitRaised, Severity: fleet.SeverityCaution, Origin: p.settingsOrigin(),
		Message: fmt.Sprintf("later commits may delete more without confirmation (spec.maxDelete): %s, up to now %s", now, count(before, "work"))})
}

// settingsOrigin is where the settings are in git, or were.
func (p *planner) settingsOrigin() fleet.Origin {
	for _, s := range []*State{p.head, p.base} {
		if settings := s.snapshot().Settings; settings != nil {
			return settings.Origin
		}
	}
	return fleet.Origin{}
}

// creates counts the objects that a cluster receives.
func (p *planner) creates(cluster string) (n int) {
	for _, c := range p.cells {
		if c.Cluster == cluster && c.Action == ActionCreate {
			n++
		}
	}
	return n
}

// find adds a finding about a binding, on one cluster or ("") as a whole.
func (p *planner) find(b *Binding, cluster string, f fleet.Finding) {
	f.Object, f.Policy = b.ID, b.Active.Policy.Ref
	if cluster != "" {
		f.Clusters = []string{cluster}
	}
	p.findings = append(p.findings, f)
}

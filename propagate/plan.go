// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/propagate/ordered"
)

// Plan is what a change of git does to the members: the difference between
// two states, one cell for each object on each cluster.
type Plan struct {
	Cells    []Cell
	Findings []Finding
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
	Object      ID
	APIVersion  string
	Cluster     string
	Policy      PolicyRef
	Action      Action
	Disposition Disposition
	// Replicas is nil for kinds without.
	Replicas *ReplicaChange
	Because  []Because
	// DependsOn is "observations" when what was observed of the members ranked
	// or excluded a cluster: the plan holds as long as that does (fold rule 22).
	DependsOn string
	// Change names the group of cells with an equal change, "c1" and so on.
	Change string

	before, after Digest
}

// ReplicaChange is what a cluster runs before and after, and the share it
// would run if nothing were held.
type ReplicaChange struct {
	Before, After, Asked int64
}

// Because is a reason, and where in git it stands.
type Because struct {
	Code string
	Origin
}

// Compare plans the way from base to head. guard is what the guard says of
// that step, nil when it says nothing.
func Compare(base, head *State, guard *Guard) *Plan {
	p := &planner{base: base, head: head}
	for d := range ordered.Diff(base.Bindings, head.Bindings) {
		p.binding(d.Before, d.After)
	}
	p.standingHolds()
	p.returned()
	p.deferred()
	slices.SortFunc(p.cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Object.Key(), b.Object.Key()), cmp.Compare(a.Cluster, b.Cluster))
	})
	p.group()
	p.fleet(guard)
	sortFindings(p.findings)
	return &Plan{p.cells, p.findings}
}

type planner struct {
	base, head *State
	cells      []Cell
	findings   []Finding
	actions    map[[2]*Content]Action

	leftOf *Binding // the one that left was asked about last
	gone   []Because
}

// left points at the clusters of a binding that are not in the fleet any more.
// Each of its cells asks, so the answer is kept.
func (p *planner) left(b *Binding) []Because {
	switch b {
	case nil:
		return nil
	case p.leftOf:
		return p.gone
	}
	p.leftOf, p.gone = b, nil
	for _, target := range b.Targets {
		if _, stays := p.head.snapshot().Clusters.Get(target.Name); !stays {
			p.gone = append(p.gone, Because{"cluster-left", p.base.snapshot().Clusters.At(target.Name).Origin})
		}
	}
	return p.gone
}

// standingHolds lists what was held before and still is, though nothing about
// it changes here: a reviewer sees every hold.
func (p *planner) standingHolds() {
	for key, b := range p.head.Bindings.All() {
		if p.base.Bindings.At(key) == b {
			p.binding(b, b)
		}
	}
}

// deferred lists what waits for its template to change: what would happen if
// the policies that would have it were activated now.
func (p *planner) deferred() {
	for b := range p.head.Bindings.Values() {
		p.waiting(b)
	}
}

// Waiting is what waits for the template of a binding to change: what would
// happen, by cluster, if the policy that claims it were activated now.
func (s *State) Waiting(b *Binding) []Cell {
	p := &planner{base: s, head: s}
	p.waiting(b)
	return p.cells
}

// waiting lists what waits for one template to change.
func (p *planner) waiting(b *Binding) {
	t := p.head.snapshot().Templates.At(b.Key())
	if b.Pending == nil || b.Pending.Policy == nil || t == nil {
		return
	}
	policy, ok := p.head.snapshot().Policies.Get(b.Pending.Policy.Key())
	if !ok || p.head.snapshot().waitsFor(policy) {
		return
	}
	st := &step{commit: Commit{Hash: p.head.Commit}, prev: p.head, next: *p.head}
	on, _, _ := st.attachments(b.ID)
	would := st.decide(b, t, verdict{policy: policy}, true, on)
	for _, cluster := range clustersOf(b, would) {
		p.defers(b, would, policy, cluster)
	}
}

func (p *planner) defers(b, would *Binding, policy *Policy, cluster string) {
	c := Cell{Object: b.ID, APIVersion: would.Active.Template.APIVersion, Cluster: cluster, Policy: policy.Ref,
		Disposition: Deferred, Because: []Because{{"static-policy", policy.Origin}}}
	if policy.lazy() {
		c.Because[0].Code = "lazy-policy"
	}
	was, is := b.Work(cluster), would.Work(cluster)
	var runs, wants *Content
	if was != nil {
		runs, c.before = was.Want, was.Want.Digest
	}
	switch {
	case is != nil:
		wants, c.after = is.Want, is.Want.Digest
		c.Action = p.action(runs, wants)
	case would.Brakes.Keeps():
		c.Action = ActionPreserve
	default:
		c.Action = ActionDelete
	}
	if c.Action == ActionNone {
		return
	}
	c.Replicas = replicaChange(would, runs, runs, wants)
	p.cells = append(p.cells, c)
}

// returned plans what departs from clusters that come back into the fleet.
func (p *planner) returned() {
	for key, a := range p.base.Left.All() {
		for _, g := range a.Clusters {
			now := p.head.Departure(g.Cluster, a.ID)
			if now == nil || now == p.base.Departure(g.Cluster, a.ID) || p.head.Left.At(key).on(g.Cluster) != nil {
				continue
			}
			c := Cell{Object: a.ID, APIVersion: a.APIVersion, Cluster: g.Cluster, Action: ActionDelete, Disposition: Now, before: g.Released.Digest,
				Because: []Because{{"cluster", p.head.snapshot().Clusters.At(g.Cluster).Origin}}}
			if now.Preserve {
				c.Action = ActionPreserve
			}
			p.cells = append(p.cells, c)
		}
	}
}

func (p *planner) binding(before, after *Binding) {
	for _, cluster := range clustersOf(before, after) {
		if _, inFleet := p.head.snapshot().Clusters.Get(cluster); !inFleet {
			continue // nothing is sent to a cluster that left
		}
		var was, is *Work
		if before != nil {
			was = before.Work(cluster)
		}
		if left := p.base.Left.At(cmp.Or(after, before).Key()).on(cluster); was == nil && left != nil {
			was = &Work{Cluster: cluster, Want: left.Released, Released: left.Released}
		}
		if after != nil {
			is = after.Work(cluster)
		}
		if is == nil {
			p.departed(before, after, was)
			continue
		}
		p.stays(before, after, was, is)
	}
	if after != nil && after != before {
		p.bindingFindings(before, after)
	}
}

func clustersOf(bindings ...*Binding) []string {
	names := map[string]bool{}
	for _, b := range bindings {
		if b == nil {
			continue
		}
		for _, w := range b.Works {
			names[w.Cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// departed plans a work that is not wanted any more.
func (p *planner) departed(before, after *Binding, was *Work) {
	if was.Released == nil {
		return // it was held from the beginning: nothing is there
	}
	c := Cell{Object: before.ID, APIVersion: was.Released.APIVersion, Cluster: was.Cluster, Policy: before.Active.Policy.Ref,
		Action: ActionDelete, Disposition: Now, before: was.Released.Digest}
	gone := p.head.Departure(was.Cluster, before.ID)
	c.Because = append(c.Because, p.whyGone(before, after, was.Cluster))
	policy := p.policy(before)
	if gone != nil && gone.Preserve {
		c.Action = ActionPreserve
		c.Because = append(c.Because, Because{"preserve", policy.At("spec.preserveResourcesOnDeletion")})
	}
	c.Replicas = replicaChange(before, was.Released, nil, nil)
	c.DependsOn = after.dependsOn()
	p.cells = append(p.cells, c)

	held := was.Held && !before.evicts(was.Cluster) || after != nil && after.Brakes.Hold(was.Cluster)
	switch {
	case c.Action == ActionPreserve && after != nil:
		p.find(FindingOrphanOnMove, LevelCaution, before, was.Cluster, policy.At("spec.preserveResourcesOnDeletion"),
			"%s leaves %s, where its copy keeps running: preserveResourcesOnDeletion is on", before.ID, was.Cluster)
	case c.Action == ActionDelete && held && after != nil && !before.attached():
		p.find(FindingDropSuspended, LevelCaution, before, was.Cluster, policy.At("spec.suspension"),
			"%s is deleted on %s, which is suspended: it falls out of the placement", before.ID, was.Cluster)
	case c.Action == ActionDelete && held && !before.attached():
		p.find(FindingDeleteSuspended, LevelCaution, before, was.Cluster, policy.At("spec.suspension"),
			"%s is deleted on %s, which is suspended: suspension holds updates, not deletions", before.ID, was.Cluster)
	}
}

// dependsOn is what a cell says of its binding, which is nil when it goes.
func (b *Binding) dependsOn() string {
	if b == nil || !b.Observed && len(b.Evictions) == 0 {
		return ""
	}
	return "observations"
}

func (p *planner) whyGone(before, after *Binding, cluster string) Because {
	switch {
	case before.attached():
		return p.owner(p.base, before)
	case after == nil || p.head.snapshot().Templates.At(before.Key()) == nil:
		return Because{"template-removed", origin(before, p.base)}
	case before.Active.Policy == after.Active.Policy && before.Active.Template.Digest != after.Active.Template.Digest:
		return Because{"template", origin(after, p.head)}
	}
	if after.Evicts(cluster) {
		return p.whyEvicted(after, cluster)
	}
	return Because{"placement", p.policy(after).At("spec.placement")}
}

// stays plans a work that is wanted.
func (p *planner) stays(before, after *Binding, was, is *Work) {
	var runs *Content
	if was != nil {
		runs = was.Released
	}
	c := Cell{Object: after.ID, APIVersion: is.Want.APIVersion, Cluster: is.Cluster, Policy: after.Active.Policy.Ref,
		Action: p.action(runs, is.Want), Disposition: Now, after: is.Want.Digest}
	if runs != nil {
		c.before = runs.Digest
	}
	switch {
	case is.Blocked != "":
		c.Action, c.Disposition = ActionUpdate, Blocked
		if runs == nil {
			c.Action = ActionCreate
		}
		c.Because = append(c.Because, p.whyBlocked(is))
		p.find(FindingOverrideFailed, LevelError, after, is.Cluster, Origin{}, "%s on %s: %s", after.ID, is.Cluster, is.Blocked)
	case is.Held && after.attached():
		c.Disposition = Held // with its owners
		if before == after { // what changes says so below
			c.Because = append(c.Because, p.owner(p.head, after))
		}
	case is.Held && after.evicts(is.Cluster):
		c.Disposition = Held
		c.Because = append(c.Because, p.whyEvicted(after, is.Cluster))
	case is.Held:
		c.Disposition = Held
		c.Because = append(c.Because, Because{"suspension", p.policy(after).At("spec.suspension")})
	case c.Action == ActionNone:
		return
	case was != nil && was.Held && before.evicts(is.Cluster):
		c.Because = append(c.Because, p.whyEvicted(before, is.Cluster))
	case was != nil && was.Held && after.attached():
		c.Disposition = Released // with an owner
	case was != nil && was.Held:
		c.Disposition = Released
		c.Because = append(c.Because, Because{"resumed", p.policy(after).At("spec.suspension")})
	}
	if before != after {
		c.Because = append(c.Because, p.whyChanged(before, after, was, is)...)
	}
	c.Replicas = replicaChange(after, runs, is.Released, is.Want)
	c.DependsOn = after.dependsOn()
	p.cells = append(p.cells, c)
}

// action is the way from one content to the other. Works share contents, so it
// is found once for many clusters.
func (p *planner) action(runs, want *Content) Action {
	if runs == nil || runs.Digest == want.Digest {
		return action(runs, want)
	}
	way := [2]*Content{runs, want}
	known, ok := p.actions[way]
	if !ok {
		known = action(runs, want)
		if p.actions == nil {
			p.actions = map[[2]*Content]Action{}
		}
		p.actions[way] = known
	}
	return known
}

func action(runs, want *Content) Action {
	switch {
	case runs == nil:
		return ActionCreate
	case runs.Digest == want.Digest:
		return ActionNone
	case runs.Template == nil || want.Template == nil:
		return ActionUpdate
	}
	if sameRules(runs.Rules, want.Rules) && sameButShare(runs, want) {
		return ActionScale
	}
	return ActionUpdate
}

// sameButShare is whether two contents would be equal with one share.
func sameButShare(a, b *Content) bool {
	x, err := withoutShare(a)
	if err != nil {
		return false
	}
	y, err := withoutShare(b)
	return err == nil && digestJSON(x) == digestJSON(y)
}

// withoutShare is a content with the same share, whatever it has: also where
// it wants no replicas and so is no workload.
func withoutShare(c *Content) (map[string]any, error) {
	object, err := shared(c.Template, share{replicas: 1, completions: -1}, c.reviser)
	if field := replicaField(c.Template.GroupKind()); err == nil && field != "" && c.reviser == nil {
		setSpec(object, field, 1)
	}
	return object, err
}

// whyEvicted points at the cluster that an eviction takes the binding from.
func (p *planner) whyEvicted(b *Binding, cluster string) Because {
	for _, e := range b.Evictions {
		if c := p.head.snapshot().Clusters.At(e.Cluster); c != nil && (e.Cluster == cluster || e.blocks()) {
			return Because{"eviction", c.Origin}
		}
	}
	return Because{Code: "eviction"}
}

// whyChanged points at the documents that this change edits.
func (p *planner) whyChanged(before, after *Binding, was, is *Work) []Because {
	var why []Because
	if before == nil || before.Active.Template.Digest != after.Active.Template.Digest {
		why = append(why, Because{"template", origin(after, p.head)})
	}
	switch {
	case after.attached():
		why = append(why, p.owner(p.head, after))
	case before == nil || before.Active.Policy != after.Active.Policy:
		why = append(why, Because{"policy", p.policy(after).Origin})
	case p.joined(is.Cluster):
		why = append(why, Because{"cluster", p.head.snapshot().Clusters.At(is.Cluster).Origin})
	case was == nil && p.base.Snapshot != p.head.Snapshot:
		why = append(why, Because{"placement", p.policy(after).At("spec.placement")})
	}
	if was != nil && is.Blocked == "" {
		why = append(why, whyOverridden(was.Want.Rules, is.Want.Rules)...)
	}
	if script := interpreted(before, after, was, is); script != nil {
		why = append(why, Because{"interpreter", script.origin})
	}
	why = append(why, p.left(before)...)
	if before != nil && !after.evicts(is.Cluster) {
		for _, e := range after.Evictions {
			if c := p.head.snapshot().Clusters.At(e.Cluster); !before.Evicts(e.Cluster) && c != nil {
				why = append(why, Because{"eviction", c.Origin})
			}
		}
	}
	if len(why) == 0 && (after.Observed || p.base.Snapshot == p.head.Snapshot) {
		// Nothing but what was observed of the clusters is different.
		why = append(why, Because{Code: "observations"})
	}
	return why
}

// interpreted is the script that came or changed for a work that was there.
func interpreted(before, after *Binding, was, is *Work) *script {
	switch s := is.Want.reviser; {
	case was == nil || is.Blocked != "":
		return nil
	case s != nil && s.id() != was.Want.reviser.id():
		return s
	case after.answers != nil && (before.answers == nil || before.answers.by != after.answers.by):
		return after.answers.script
	}
	return nil
}

// whyBlocked points at the rule that fails.
func (p *planner) whyBlocked(is *Work) Because {
	why := Because{Code: "override"}
	if r, _ := p.head.failing(is); r != nil {
		why.Origin = r.Origin
	}
	return why
}

// whyOverridden points at the rules that are new, and at those that are gone.
func whyOverridden(before, after []*Rule) (why []Because) {
	missing := func(from, rules []*Rule) {
		for _, r := range rules {
			if !slices.ContainsFunc(from, func(o *Rule) bool { return o.id() == r.id() }) {
				why = append(why, Because{"override", r.Origin})
			}
		}
	}
	missing(before, after)
	if len(why) == 0 {
		missing(after, before)
	}
	return why
}

// owner points at the template that takes an attached one along.
func (p *planner) owner(s *State, b *Binding) Because {
	for id := range s.index.owners(b.ID) {
		return Because{"dependency", origin(s.Bindings.At(id.Key()), s)}
	}
	return Because{Code: "dependency"}
}

// origin is where a binding's template stands in a state, or stood when it was
// active.
func origin(b *Binding, s *State) Origin {
	if t := s.snapshot().Templates.At(b.Key()); t != nil {
		return t.Origin
	}
	return b.Active.Template.Origin
}

// joined is whether the cluster is not in the base's fleet.
func (p *planner) joined(cluster string) bool {
	_, was := p.base.snapshot().Clusters.Get(cluster)
	return !was
}

// policy is the binding's policy as it stands in git, for its lines; or the
// one that was last active when it is gone.
func (p *planner) policy(b *Binding) *Policy {
	for _, ref := range []*PolicyRef{b.Claim, &b.Active.Policy.Ref} {
		if ref == nil {
			continue
		}
		for _, s := range []*State{p.head, p.base} {
			if policy, ok := s.snapshot().Policies.Get(ref.Key()); ok {
				return policy
			}
		}
	}
	return b.Active.Policy
}

// replicaChange is nil for what has no replicas, and had none. What a script
// no longer speaks for is not known to have 0.
func replicaChange(b *Binding, before, after, asked *Content) *ReplicaChange {
	r := &ReplicaChange{}
	for _, f := range []struct {
		to      *int64
		content *Content
	}{{&r.Before, before}, {&r.After, after}, {&r.Asked, asked}} {
		if f.content != nil {
			*f.to = f.content.Replicas
		}
	}
	_, workload := b.replicas()
	if !workload && (*r == ReplicaChange{} || replicaField(b.GroupKind()) == "") {
		return nil
	}
	return r
}

// bindingFindings are about a binding as a whole.
func (p *planner) bindingFindings(before, after *Binding) {
	if before != nil && before.Claim != nil && after.Claim == nil {
		held := slices.ContainsFunc(after.Works, func(w Work) bool { return w.Held })
		if held {
			p.find(FindingPolicyHoldStays, LevelNotice, after, "", origin(after, p.head),
				"%s matches no policy any more: its placement and its hold stay as they were", after.ID)
		}
	}
	if _, workload := after.replicas(); !workload || !after.Active.Policy.placement.Divided() {
		return
	}
	var asked, runs int64
	for _, w := range after.Works {
		asked += w.Want.Replicas
		if w.Released != nil {
			runs += w.Released.Replicas
		}
	}
	switch {
	case runs < asked:
		p.find(FindingReplicaShortfall, LevelNotice, after, "", p.policy(after).At("spec.suspension"),
			"%s asks for %d replicas and runs %d while it is held", after.ID, asked, runs)
	case runs > asked:
		p.find(FindingReplicaExcess, LevelNotice, after, "", p.policy(after).At("spec.suspension"),
			"%s asks for %d replicas and runs %d while it is held", after.ID, asked, runs)
	}
}

// group numbers the distinct changes: equal ones on many clusters share one.
func (p *planner) group() {
	type change struct {
		object        ID
		action        Action
		disposition   Disposition
		before, after Digest
	}
	ids := map[change]string{}
	for i := range p.cells {
		c := &p.cells[i]
		if c.Action == ActionNone {
			continue
		}
		key := change{c.Object, c.Action, c.Disposition, c.before, c.after}
		if ids[key] == "" {
			ids[key] = fmt.Sprintf("c%d", len(ids)+1)
		}
		c.Change = ids[key]
	}
}

// fleet adds the findings about the change as a whole.
func (p *planner) fleet(guard *Guard) {
	if guard != nil {
		p.findings = append(p.findings, Finding{Code: FindingFleetWideDelete, Level: LevelError, Trailer: guard.Trailer(),
			Message: "held: " + strings.Join(guard.Reasons, "; ") + "; to allow it, add to a commit message: " + guard.Trailer()})
	}
	for d := range ordered.Diff(p.base.snapshot().Clusters, p.head.snapshot().Clusters) {
		switch {
		case !d.Has:
			p.findings = append(p.findings, Finding{Code: FindingClusterLeft, Level: LevelCaution, Clusters: []string{d.Key}, Origin: d.Before.Origin,
				Message: fmt.Sprintf("cluster %s leaves the fleet: nothing is sent to it any more, its objects and our marks stay", d.Key)})
		case !d.Had:
			p.findings = append(p.findings, Finding{Code: FindingNewCluster, Level: LevelNotice, Clusters: []string{d.Key}, Origin: d.After.Origin,
				Message: fmt.Sprintf("cluster %s joins the fleet and receives %s", d.Key, count(p.creates(d.Key), "object"))})
		}
	}
	known := map[string]bool{}
	for _, f := range p.base.Findings() {
		known[f.Code+"\x00"+f.Message] = true
	}
	for _, f := range p.head.Findings() {
		// What is broken is told as long as it is.
		if f.Level == LevelError || !known[f.Code+"\x00"+f.Message] {
			p.findings = append(p.findings, f)
		}
	}
}

// count reads "1 object" or "2 objects".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (p *planner) creates(cluster string) (n int) {
	for _, c := range p.cells {
		if c.Cluster == cluster && c.Action == ActionCreate {
			n++
		}
	}
	return n
}

// find adds a finding about a binding, on one cluster or ("") as a whole.
func (p *planner) find(code string, level Level, b *Binding, cluster string, origin Origin, format string, args ...any) {
	f := Finding{Code: code, Level: level, Object: b.ID, Policy: b.Active.Policy.Ref, Origin: origin, Message: fmt.Sprintf(format, args...)}
	if cluster != "" {
		f.Clusters = []string{cluster}
	}
	p.findings = append(p.findings, f)
}

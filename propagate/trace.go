// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// TraceStep is one step of the trace from a template to a cluster: what was
// decided, and where in git that is.
type TraceStep struct {
	Phase TracePhase
	Text  string

	// Document is what is at Origin; the zero ID where nothing is.
	Document object.ID
	fleet.Origin

	// Commit is the one whose tree Origin is in, "" for the accepted one: what
	// waits leaves an older document in effect.
	Commit string

	// Note is what is written down about a hold, nil where nothing is.
	Note *fleetv1alpha1.Hold
}

// TracePhase is what a step of a trace decides.
type TracePhase string

// The phases of a trace, in their order.
const (
	PhaseTemplate  TracePhase = "template"
	PhasePolicy    TracePhase = "policy"
	PhasePending   TracePhase = "pending" // git says something else, which waits
	PhasePlacement TracePhase = "placement"
	PhaseShare     TracePhase = "share"
	PhaseOverride  TracePhase = "override"
	PhaseOwner     TracePhase = "owner" // it goes along with another template
	PhaseHold      TracePhase = "hold"
	PhaseEviction  TracePhase = "eviction"
	PhaseBlocked   TracePhase = "blocked"
	PhaseRemoved   TracePhase = "removed" // what was there is not wanted any more
)

// Trace leads from a template to what is decided about it as a whole: who
// claims it, and what of that is not in effect.
func (s *State) Trace(id object.ID) []TraceStep {
	b, t := s.Bindings.At(id.Key()), s.snapshot().Templates.At(id.Key())
	first := TraceStep{Phase: PhaseTemplate, Document: id}
	switch {
	case t == nil && b == nil:
		return nil
	case t == nil:
		first.Origin, first.Commit = b.Active.Template.Origin, b.Active.TemplateCommit
		first.Text = "it was removed from git; what held owners run still references it"
	case b != nil && b.Active.Template.Digest != t.Digest:
		first.Origin = t.Origin
		first.Text = fmt.Sprintf("in effect is its content as of %s", short(b.Active.TemplateCommit))
	default:
		first.Origin = t.Origin
	}

	tr := tracer{s, b}
	trace := append([]TraceStep{first}, tr.claimSteps(t)...)
	if b != nil && b.Pending != nil {
		trace = append(trace, tr.pendingStep())
	}
	return trace
}

// TraceTo goes on from Trace to one cluster of the fleet.
func (s *State) TraceTo(id object.ID, cluster string) []TraceStep {
	return s.Explain(id).TraceTo(cluster)
}

// Explanation is why an object is on clusters or not. What is the same for all of them is
// found out once. It is used by one goroutine.
type Explanation struct {
	state   *State
	id      object.ID
	b       *Binding   // nil where it has none
	reasons *explainer // nil until it is needed
}

// Explain returns the explanation of an object.
func (s *State) Explain(id object.ID) *Explanation {
	return &Explanation{state: s, id: id, b: s.Bindings.At(id.Key())}
}

// Reason is why the object's binding, which it must have, goes to one cluster, or does not.
func (x *Explanation) Reason(cluster string) Reason {
	if x.reasons == nil {
		x.reasons = newExplainer(x.state, x.b)
	}
	return x.reasons.reason(cluster)
}

// TraceTo goes on from State.Trace to one cluster of the fleet.
func (x *Explanation) TraceTo(cluster string) []TraceStep {
	s, b, id := x.state, x.b, x.id
	tr := tracer{s, b}
	trace := tr.removedSteps(id, cluster)
	if b == nil {
		return trace
	}

	if !b.attached() {
		trace = append(trace, x.Reason(cluster).step())
	}

	w := b.Work(cluster)
	if w != nil && b.targets(cluster) {
		trace = append(trace, tr.shareSteps(w)...)
	}
	if w != nil && w.Blocked == "" {
		trace = append(trace, tr.overrideSteps(w)...)
	}
	trace = append(trace, tr.ownerSteps(cluster)...)
	if w != nil {
		trace = append(trace, tr.holdSteps(w)...)
	}
	return trace
}

// tracer makes the steps of one trace.
type tracer struct {
	state *State
	b     *Binding // nil where the template has none
}

// claimSteps are who has a template, and by what.
func (tr tracer) claimSteps(t *fleet.Template) []TraceStep {
	b := tr.b
	if t == nil {
		return nil
	}
	if t.ClaimedByOthers() {
		return []TraceStep{{Phase: PhasePolicy, Document: t.ID, Origin: t.Origin,
			Text: fmt.Sprintf("none: its label %s leaves it to %s", fleet.LabelClaimedBy, t.Labels[fleet.LabelClaimedBy])}}
	}

	var p *fleet.Policy
	if b != nil && b.Claim != nil {
		p = tr.state.snapshot().Policies.At(b.Claim.Key())
	}

	switch {
	case p != nil:
		match, at := p.MatchedBy(t)
		return []TraceStep{{Phase: PhasePolicy, Document: p.ID(), Origin: at, Text: p.Ref.String() + " claims it " + fleet.MatchText(match) + tr.rivals(p, match, t)}}
	case b != nil && !b.attached():
		return []TraceStep{{Phase: PhasePolicy, Document: b.Active.Policy.ID(), Origin: b.Active.Policy.Origin, Commit: b.Active.PolicyCommit,
			Text: fmt.Sprintf("none claims it; it stays as %s placed it", b.Active.Policy.Ref)}}
	}

	if p := tr.state.index.best(t); p != nil && tr.state.snapshot().WaitsFor(p) {
		return []TraceStep{{Phase: PhasePolicy, Document: p.ID(), Origin: p.AtAny("spec.dependentOverrides"),
			Text: fmt.Sprintf("%s would claim it, and waits for the overrides %s", p.Ref, strings.Join(tr.missingOverrides(p), ", "))}}
	}
	return []TraceStep{{Phase: PhasePolicy, Text: "none matches it"}}
}

// missingOverrides are the overrides that a policy depends on and git has not.
func (tr tracer) missingOverrides(p *fleet.Policy) []string {
	var missing []string
	for _, name := range p.Spec.DependentOverrides {
		if _, ok := tr.state.snapshot().Overrides.Get(fleet.OverrideRef{Namespace: p.Ref.Namespace, Name: name}.Key()); !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// pendingStep is what waits, and why.
func (tr tracer) pendingStep() TraceStep {
	b, step := tr.b, TraceStep{Phase: PhasePending}

	switch {
	case b.attached():
		step.Text = fmt.Sprintf("%s claims it and waits for its next change, since %s", b.Claim, short(b.Pending.Since))
	case b.Active.Policy.Ref == (fleet.PolicyRef{}):
		step.Text = fmt.Sprintf("its changes wait since %s", short(b.Pending.Since))
	default:
		step.Text = fmt.Sprintf("in effect is %s as of %s; what git says now waits since %s", b.Active.Policy.Ref, short(b.Active.PolicyCommit), short(b.Pending.Since))
	}

	switch b.Pending.Reason {
	case workv1alpha2.ReasonLazyPolicyPending:
		step.Text += ": the policy is lazy"
	case workv1alpha2.ReasonStaticPolicyPending:
		step.Text += ": the gate StaticPolicy is on"
		if b.Claim == nil || *b.Claim != *b.Pending.Policy {
			step.Text += fmt.Sprintf(", and %s would claim it then", b.Pending.Policy)
		}
	case workv1alpha2.ReasonNoMatchingPolicy:
		step.Text += ": no policy matches the template"
	case workv1alpha2.ReasonDependentOverridesMissing:
		step.Text += ": the policy depends on overrides that do not exist"
	}

	if b.Pending.Policy != nil {
		if p := tr.state.snapshot().Policies.At(b.Pending.Policy.Key()); p != nil {
			step.Document, step.Origin = p.ID(), p.AtAny("spec.activationPreference")
		}
	}
	return step
}

// removedSteps are what became of a copy that is not wanted there any more.
func (tr tracer) removedSteps(id object.ID, cluster string) []TraceStep {
	removal, how := tr.state.Removal(cluster, id), "what was there is deleted since %s"
	if removal == nil {
		removal, how = tr.state.Detached.At(id.Key()).on(cluster), "the cluster left the fleet in %s; what is there stays as it is"
	} else if removal.Preserve {
		how = "what was there is left running since %s, without our marks"
	}
	if removal == nil {
		return nil
	}
	return []TraceStep{{Phase: PhaseRemoved, Text: fmt.Sprintf(how, short(removal.Commit))}}
}

// shareSteps are how many of the replicas a target gets, and by what.
func (tr tracer) shareSteps(w *Work) []TraceStep {
	b := tr.b
	wanted, workload := b.replicas()
	if !workload {
		return nil
	}

	p, commit := inEffect(tr.state, b)
	step := TraceStep{Phase: PhaseShare, Document: p.ID(), Origin: p.AtAny("spec.placement.replicaScheduling", "spec.placement"), Commit: commit}

	share := int64(0)
	for _, t := range b.Targets {
		if t.Name == w.Cluster {
			share = t.Count
		}
	}

	switch weights := tr.weights(); {
	case !p.Placement.Divided():
		step.Text = count(int(share), "replica") + ", as on every cluster"
	case weights == "":
		step.Text = fmt.Sprintf("%d of %d, divided by the room that clusters have", share, wanted)
	default:
		step.Text = fmt.Sprintf("%d of %d, divided by weights %s", share, wanted, weights)
	}

	if w.Want.Completions >= 0 {
		step.Text += fmt.Sprintf("; %d completions", w.Want.Completions)
	}
	return []TraceStep{step}
}

// weights are the static weights of the targets, "" where room decides.
func (tr tracer) weights() string {
	b := tr.b
	var clusters []*schedule.Cluster
	for _, c := range tr.state.index.clusters {
		if b.targets(c.Name) {
			clusters = append(clusters, c)
		}
	}

	p, _ := inEffect(tr.state, b)
	var parts []string
	for _, share := range p.Placement.Weights(clusters) {
		parts = append(parts, fmt.Sprintf("%s:%d", share.Name, share.Count))
	}
	return strings.Join(parts, " ")
}

// overrideSteps are the rules that make a work's content.
func (tr tracer) overrideSteps(w *Work) []TraceStep {
	var steps []TraceStep
	for _, r := range w.Want.Rules {
		steps = append(steps, TraceStep{Phase: PhaseOverride, Text: r.Override.String() + " edits it", Document: r.Override.ID(), Origin: tr.ruleOrigin(r)})
	}
	return steps
}

// ruleOrigin is where a rule is now: a content keeps equal rules of
// earlier commits.
func (tr tracer) ruleOrigin(r *fleet.Rule) fleet.Origin {
	if o := tr.state.snapshot().Overrides.At(r.Override.Key()); o != nil {
		for _, now := range o.Rules {
			if now.Key() == r.Key() {
				return now.Origin
			}
		}
	}
	return r.Origin
}

// ownerSteps are the templates that require this one on a cluster.
func (tr tracer) ownerSteps(cluster string) []TraceStep {
	b := tr.b
	var steps []TraceStep
	for _, o := range tr.ownersOn(b.ID, cluster) {
		who, text := o.ID.String(), "%s requires it here"
		if w := o.Work(cluster); w.Held || w.Blocked != "" {
			who += ", held here,"
		}

		if !slices.Contains(o.Requires, b.ID) {
			text = "what %s runs still references it"
		}
		steps = append(steps, TraceStep{Phase: PhaseOwner, Document: o.ID, Text: fmt.Sprintf(text, who), Origin: origin(o, tr.state)})
	}
	return steps
}

// ownersOn are the bindings that need a template on a cluster, by name.
func (tr tracer) ownersOn(id object.ID, cluster string) []*Binding {
	var owners []*Binding
	for ownerID := range tr.state.index.owners(id) {
		o := tr.state.Bindings.At(ownerID.Key())
		w := o.Work(cluster)
		if w == nil || o.answers != nil && !o.targets(cluster) {
			continue // it is there for others itself, and that is not followed
		}
		if slices.Contains(o.Requires, id) || slices.Contains(w.lingering(), id) {
			owners = append(owners, o)
		}
	}

	slices.SortFunc(owners, func(a, b *Binding) int { return cmp.Compare(a.Key(), b.Key()) })
	return owners
}

// holdSteps are what keeps a work's content from its cluster.
func (tr tracer) holdSteps(w *Work) []TraceStep {
	b := tr.b
	var steps []TraceStep
	if b.inForce().Hold(w.Cluster) && w.Held {
		steps = append(steps, tr.holdStep(w.Cluster))
	}

	for _, e := range b.Evictions {
		switch {
		case e.Cluster == w.Cluster:
			steps = append(steps, tr.evictionStep(&e, "its copy stays as it is until others have taken over"))
		case e.blocks():
			steps = append(steps, tr.evictionStep(&e, fmt.Sprintf("nothing is sent before the copy on %s is removed", e.Cluster)))
		}
	}

	if w.Held && len(steps) == 0 && b.attached() {
		steps = append(steps, TraceStep{Phase: PhaseHold, Text: "everything that requires it here is held here"})
	}
	if w.Blocked != "" {
		steps = append(steps, tr.blockedStep(w))
	}
	return steps
}

// blockedStep names the rule that fails.
func (tr tracer) blockedStep(w *Work) TraceStep {
	step := TraceStep{Phase: PhaseBlocked, Text: w.Blocked}
	if r, why := failingRule(tr.state.snapshot(), w); r != nil {
		step.Text, step.Document, step.Origin = fmt.Sprintf("%s fails: %s", r.Override, why), r.Override.ID(), r.Origin
	}
	return step
}

// failingRule is the rule that blocks a work, which the message begins with, and
// why; nil when it is a script.
func failingRule(s *fleet.Snapshot, w *Work) (rule *fleet.Rule, why string) {
	for o := range s.Overrides.Values() {
		for _, r := range o.Rules {
			if rest, ok := strings.CutPrefix(w.Blocked, r.Where()+": "); ok {
				rule, why = r, rest
			}
		}
	}
	return rule, why
}

// evictionStep points at the cluster that a binding is evicted from.
func (tr tracer) evictionStep(e *Eviction, text string) TraceStep {
	step := TraceStep{Phase: PhaseEviction, Text: fmt.Sprintf("%s: %s", e.Reason, text)}
	if c := tr.state.snapshot().Clusters.At(e.Cluster); c != nil {
		step.Document, step.Origin = c.ID(), c.Origin
	}
	return step
}

// holdStep points at the suspension that holds a cluster.
func (tr tracer) holdStep(cluster string) TraceStep {
	b := tr.b
	if t := tr.state.snapshot().Templates.At(b.Key()); t != nil && t.Immediate.Hold(cluster) {
		step := TraceStep{Phase: PhaseHold, Document: t.ID, Text: t.Suspends(cluster), Origin: t.Origin}
		if note, ok := t.Note(cluster); ok {
			step.Note = &note
		}
		return step
	}

	for _, ref := range []*fleet.PolicyRef{b.Claim, &b.Active.Policy.Ref} {
		if ref == nil {
			continue
		}
		if p := tr.state.snapshot().Policies.At(ref.Key()); p != nil && fleet.ImmediateOf(p).Hold(cluster) {

			step := TraceStep{Phase: PhaseHold, Document: p.ID()}
			step.Text, step.Origin = p.Suspends(cluster)
			if note, ok := p.Note(cluster); ok {
				step.Note = &note
			}
			return step
		}
	}

	return TraceStep{Phase: PhaseHold, Text: "the suspension of a policy that had it before stays, until a policy that claims it is in effect"}
}

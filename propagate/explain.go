// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Link is one link of the chain that leads from a template to a cluster: what
// was decided, and where in git that stands.
type Link struct {
	Step LinkStep
	Text string
	// Document is what stands at Origin; the zero ID where nothing does.
	Document ID
	Origin
	// Commit is the one whose tree Origin is in, "" for the accepted one: what
	// waits leaves an older document in effect.
	Commit string
	// Note is what is written down about a hold, nil where nothing is.
	Note *fleetv1alpha1.Hold
}

// LinkStep is what a link decides.
type LinkStep string

// The steps of a chain, in their order.
const (
	LinkTemplate  LinkStep = "template"
	LinkPolicy    LinkStep = "policy"
	LinkPending   LinkStep = "pending" // git says something else, which waits
	LinkPlacement LinkStep = "placement"
	LinkShare     LinkStep = "share"
	LinkOverride  LinkStep = "override"
	LinkOwner     LinkStep = "owner" // it goes along with another template
	LinkHold      LinkStep = "hold"
	LinkEviction  LinkStep = "eviction"
	LinkBlocked   LinkStep = "blocked"
	LinkDeparted  LinkStep = "departed" // what was there is not wanted any more
)

// Chain leads from a template to what is decided about it as a whole: who
// claims it, and what of that is not in effect.
func (s *State) Chain(id ID) []Link {
	b, t := s.Bindings.At(id.Key()), s.snapshot().Templates.At(id.Key())
	var chain []Link
	switch {
	case t != nil && (b == nil || b.Active.Template.Digest == t.Digest):
		chain = append(chain, Link{Step: LinkTemplate, Document: id, Origin: t.Origin})
	case t != nil:
		chain = append(chain, Link{Step: LinkTemplate, Document: id, Origin: t.Origin,
			Text: fmt.Sprintf("in effect is its content as of %s", short(b.Active.TemplateCommit))})
	case b != nil:
		chain = append(chain, Link{Step: LinkTemplate, Document: id, Origin: b.Active.Template.Origin, Commit: b.Active.TemplateCommit,
			Text: "it is gone from git; what held owners run still references it"})
	default:
		return nil
	}
	chain = append(chain, s.claimLink(b, t)...)
	if b != nil && b.Pending != nil {
		chain = append(chain, s.pendingLink(b))
	}
	return chain
}

// claimLink says who has a template, and by what.
func (s *State) claimLink(b *Binding, t *Template) []Link {
	if t == nil {
		return nil
	}
	if t.claimedByOthers() {
		return []Link{{Step: LinkPolicy, Document: t.ID, Origin: t.Origin,
			Text: fmt.Sprintf("none: its label %s leaves it to %s", LabelClaimedBy, t.Labels[LabelClaimedBy])}}
	}
	var p *Policy
	if b != nil && b.Claim != nil {
		p = s.snapshot().Policies.At(b.Claim.Key())
	}
	switch {
	case p != nil:
		match, at := p.matchedBy(t)
		return []Link{{Step: LinkPolicy, Document: p.id(), Origin: at, Text: p.Ref.String() + " claims it " + by(match) + s.rivals(p, match, t)}}
	case b != nil && !b.attached():
		return []Link{{Step: LinkPolicy, Document: b.Active.Policy.id(), Origin: b.Active.Policy.Origin, Commit: b.Active.PolicyCommit,
			Text: fmt.Sprintf("none has it; it stays as %s placed it", b.Active.Policy.Ref)}}
	}
	if p := s.best(t); p != nil && s.snapshot().waitsFor(p) {
		return []Link{{Step: LinkPolicy, Document: p.id(), Origin: p.near("spec.dependentOverrides"),
			Text: fmt.Sprintf("%s would claim it, and waits for the overrides %s", p.Ref, strings.Join(s.missingOverrides(p), ", "))}}
	}
	return []Link{{Step: LinkPolicy, Text: "none matches it"}}
}

// best is the policy that would claim a template that nobody has.
func (s *State) best(t *Template) *Policy {
	st := &step{commit: Commit{Hash: s.Commit}, prev: s, next: *s}
	return st.best(t)
}

func (s *State) missingOverrides(p *Policy) []string {
	var missing []string
	for _, name := range p.Spec.DependentOverrides {
		if _, ok := s.snapshot().Overrides.Get(OverrideRef{p.Ref.Namespace, name}.Key()); !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

func (s *State) pendingLink(b *Binding) Link {
	l := Link{Step: LinkPending}
	switch {
	case b.attached():
		l.Text = fmt.Sprintf("%s claims it and waits for its next change, since %s", b.Claim, short(b.Pending.Since))
	case b.Active.Policy.Ref == (PolicyRef{}):
		l.Text = fmt.Sprintf("its changes wait since %s", short(b.Pending.Since))
	default:
		l.Text = fmt.Sprintf("in effect is %s as of %s; what git says now waits since %s", b.Active.Policy.Ref, short(b.Active.PolicyCommit), short(b.Pending.Since))
	}
	switch b.Pending.Reason {
	case workv1alpha2.ReasonLazyPolicyPending:
		l.Text += ": the policy is lazy"
	case workv1alpha2.ReasonStaticPolicyPending:
		l.Text += ": the gate StaticPolicy is on"
		if b.Claim == nil || *b.Claim != *b.Pending.Policy {
			l.Text += fmt.Sprintf(", and %s would have it then", b.Pending.Policy)
		}
	case workv1alpha2.ReasonNoMatchingPolicy:
		l.Text += ": no policy matches the template"
	case workv1alpha2.ReasonDependentOverridesMissing:
		l.Text += ": the policy depends on overrides that are not there"
	}
	if b.Pending.Policy != nil {
		if p := s.snapshot().Policies.At(b.Pending.Policy.Key()); p != nil {
			l.Document, l.Origin = p.id(), p.near("spec.activationPreference")
		}
	}
	return l
}

// ChainTo leads on from Chain to one cluster of the fleet.
func (s *State) ChainTo(id ID, cluster string) []Link {
	b := s.Bindings.At(id.Key())
	chain := s.departedLink(id, cluster)
	if b == nil {
		return chain
	}
	placed := s.Standing(b, cluster)
	if !b.attached() {
		chain = append(chain, placed.link())
	}
	w := b.Work(cluster)
	if b.targets(cluster) && w != nil {
		chain = append(chain, s.shareLink(b, w)...)
	}
	if w != nil && w.Blocked == "" {
		chain = append(chain, s.overrideLinks(w)...)
	}
	chain = append(chain, s.ownerLinks(b, cluster)...)
	if w == nil {
		return chain
	}
	return append(chain, s.brakeLinks(b, w)...)
}

// departedLink says what became of a copy that is not wanted there any more.
func (s *State) departedLink(id ID, cluster string) []Link {
	gone, how := s.Departure(cluster, id), "what was there is deleted since %s"
	if gone == nil {
		gone, how = s.Left.At(id.Key()).on(cluster), "the cluster left the fleet in %s; what is there stays as it is"
	} else if gone.Preserve {
		how = "what was there is left running since %s, without our marks"
	}
	if gone == nil {
		return nil
	}
	return []Link{{Step: LinkDeparted, Text: fmt.Sprintf(how, short(gone.Commit))}}
}

// Standing is how one cluster of the fleet stands to a binding.
type Standing struct {
	Cluster string
	Placed  bool // it is a target, or owners take the template there
	// Cause is why it is none, "" where it is. Besides those of package
	// schedule there are the ones below.
	Cause    schedule.Cause
	Text     string
	Document ID
	Origin
	Commit string // as in Link
}

// Causes that are none of a placement's.
const (
	CauseUnclaimed schedule.Cause = "unclaimed" // no policy applies: it gains no cluster
	CauseScheduler schedule.Cause = "scheduler" // it is left to another one
	CauseSettled   schedule.Cause = "settled"   // it would be chosen, were the template placed anew
	CauseOwners    schedule.Cause = "owners"    // nothing that requires it goes there
)

func (p Standing) link() Link {
	return Link{Step: LinkPlacement, Text: p.Text, Document: p.Document, Origin: p.Origin, Commit: p.Commit}
}

// Standings say of every cluster of the fleet, by name, why a binding goes
// there or does not.
func (s *State) Standings(b *Binding) []Standing {
	e := s.explainer(b)
	all := make([]Standing, 0, s.snapshot().Clusters.Len())
	for name := range s.snapshot().Clusters.All() {
		all = append(all, e.standing(name))
	}
	return all
}

// Standing is that of one cluster.
func (s *State) Standing(b *Binding, cluster string) Standing {
	return s.explainer(b).standing(cluster)
}

// explainer answers for the clusters of one binding.
type explainer struct {
	*State
	b        *Binding
	policy   *Policy // in effect
	commit   string  // that it stands in
	verdicts map[string]schedule.Verdict
}

func (s *State) explainer(b *Binding) *explainer {
	e := &explainer{State: s, b: b}
	e.policy, e.commit = s.inEffect(b)
	if b.attached() {
		return e
	}
	st := &step{commit: Commit{Hash: s.Commit}, prev: s, next: *s}
	e.verdicts = map[string]schedule.Verdict{}
	for _, v := range b.Active.Policy.placement.Explain(st.request(b), s.index.clusters) {
		e.verdicts[v.Cluster] = v
	}
	return e
}

// inEffect is the policy whose delayed fields are active, and the commit it
// stands in when that is not the accepted one.
func (s *State) inEffect(b *Binding) (p *Policy, commit string) {
	if p := s.snapshot().Policies.At(b.Active.Policy.Ref.Key()); p != nil && p.Delayed == b.Active.Policy.Delayed {
		return p, ""
	}
	return b.Active.Policy, b.Active.PolicyCommit
}

func (e *explainer) standing(cluster string) Standing {
	p := Standing{Cluster: cluster}
	switch c := e.cluster(cluster); {
	case c == nil:
		p.Text = "it is not in the fleet"
	case e.b.targets(cluster):
		e.placed(&p, c)
	case e.b.Work(cluster) != nil && !e.b.Evicts(cluster):
		p.Placed, p.Text = true, "what requires it goes there"
	case e.b.attached():
		p.Cause, p.Text = CauseOwners, "nothing that requires it goes there"
	default:
		e.unplaced(&p)
	}
	return p
}

func (e *explainer) cluster(name string) *schedule.Cluster {
	for _, c := range e.index.clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (e *explainer) at(p *Standing, fields ...string) {
	p.Document, p.Origin, p.Commit = e.policy.id(), e.policy.near(fields...), e.commit
}

func (e *explainer) placed(p *Standing, c *schedule.Cluster) {
	p.Placed = true
	p.Text = cmp.Or(e.policy.placement.Matches(c, e.b.AffinityName), "it names no clusters: every one matches")
	e.at(p, append(e.affinity(), "spec.placement")...)
	if e.b.Scheduled.Reason != "" && e.b.Scheduled.Reason != workv1alpha2.ReasonSuccess {
		p.Text = "it stays: " + e.b.Scheduled.Message
	}
}

// affinity are the paths of the affinity in use.
func (e *explainer) affinity() []string {
	for i, a := range e.policy.Spec.Placement.ClusterAffinities {
		if a.AffinityName == e.b.AffinityName {
			return []string{fmt.Sprintf("spec.placement.clusterAffinities[%d]", i)}
		}
	}
	return []string{"spec.placement.clusterAffinity", "spec.placement.clusterAffinities"}
}

func (e *explainer) unplaced(p *Standing) {
	b, v := e.b, e.verdicts[p.Cluster]
	e.at(p, "spec.placement")
	switch {
	case b.Evicts(p.Cluster):
		p.Cause, p.Text = schedule.CauseEviction, "the workload is being moved away from it"
		e.atCluster(p)
	case b.Claim == nil:
		p.Cause, p.Text = CauseUnclaimed, "no policy claims the template, so it gains no cluster"
	case b.Active.Policy.Spec.SchedulerName != defaultScheduler:
		p.Cause, p.Text = CauseScheduler, fmt.Sprintf("the placement is left to scheduler %q, which is not this one", b.Active.Policy.Spec.SchedulerName)
		e.at(p, "spec.schedulerName")
	case b.answers != nil && b.answers.unasked != "":
		p.Cause, p.Text = schedule.CauseFailed, b.answers.unasked
	case v.Chosen:
		p.Cause, p.Text = CauseSettled, "it fits; what is placed stays where it is until its replicas or its placement change"
	default:
		p.Cause, p.Text = v.Cause, v.Detail
		e.blame(p)
	}
}

// blame points at the document that speaks against a cluster.
func (e *explainer) blame(p *Standing) {
	switch p.Cause {
	case schedule.CauseAPI, schedule.CauseTaint, schedule.CauseProvider, schedule.CauseRegion, schedule.CauseZone, schedule.CauseEviction:
		e.atCluster(p)
	case schedule.CauseAffinity:
		e.at(p, append(e.affinity(), "spec.placement")...)
	case schedule.CauseSpread:
		e.at(p, "spec.placement.spreadConstraints", "spec.placement")
	case schedule.CauseReplicas:
		e.at(p, "spec.placement.replicaScheduling", "spec.placement")
	}
}

func (e *explainer) atCluster(p *Standing) {
	c := e.snapshot().Clusters.At(p.Cluster)
	p.Document, p.Origin, p.Commit = c.id(), c.Origin, ""
}

// shareLink says how many of the replicas a target gets, and by what.
func (s *State) shareLink(b *Binding, w *Work) []Link {
	wanted, workload := b.replicas()
	if !workload {
		return nil
	}
	p, commit := s.inEffect(b)
	l := Link{Step: LinkShare, Document: p.id(), Origin: p.near("spec.placement.replicaScheduling", "spec.placement"), Commit: commit}
	share := int64(0)
	for _, t := range b.Targets {
		if t.Name == w.Cluster {
			share = t.Count
		}
	}
	switch weights := s.weights(b); {
	case !p.placement.Divided():
		l.Text = count(int(share), "replica") + ", as on every cluster"
	case weights == "":
		l.Text = fmt.Sprintf("%d of %d, divided by the room that clusters have", share, wanted)
	default:
		l.Text = fmt.Sprintf("%d of %d, divided by weights %s", share, wanted, weights)
	}
	if w.Want.Completions >= 0 {
		l.Text += fmt.Sprintf("; %d completions", w.Want.Completions)
	}
	return []Link{l}
}

// weights are the static weights of the targets, "" where room decides.
func (s *State) weights(b *Binding) string {
	var clusters []*schedule.Cluster
	for _, c := range s.index.clusters {
		if b.targets(c.Name) {
			clusters = append(clusters, c)
		}
	}
	p, _ := s.inEffect(b)
	var parts []string
	for _, share := range p.placement.Weights(clusters) {
		parts = append(parts, fmt.Sprintf("%s:%d", share.Name, share.Count))
	}
	return strings.Join(parts, " ")
}

// overrideLinks are the rules that make a work's content.
func (s *State) overrideLinks(w *Work) []Link {
	var links []Link
	for _, r := range w.Want.Rules {
		links = append(links, Link{Step: LinkOverride, Text: r.Override.String() + " edits it", Document: r.Override.id(), Origin: s.ruleOrigin(r)})
	}
	return links
}

// ruleOrigin is where a rule stands now: a content keeps equal rules of
// earlier commits.
func (s *State) ruleOrigin(r *Rule) Origin {
	if o := s.snapshot().Overrides.At(r.Override.Key()); o != nil {
		for _, now := range o.rules {
			if now.id() == r.id() {
				return now.Origin
			}
		}
	}
	return r.Origin
}

// ownerLinks are the templates that take this one along to a cluster.
func (s *State) ownerLinks(b *Binding, cluster string) []Link {
	var links []Link
	for _, o := range s.ownersOn(b.ID, cluster) {
		who, text := o.ID.String(), "%s requires it here"
		if w := o.Work(cluster); w.Held || w.Blocked != "" {
			who += ", held here,"
		}
		if !slices.Contains(o.Requires, b.ID) {
			text = "what %s runs still references it"
		}
		links = append(links, Link{Step: LinkOwner, Document: o.ID, Text: fmt.Sprintf(text, who), Origin: origin(o, s)})
	}
	return links
}

// ownersOn are the bindings that need a template on a cluster, by name.
func (s *State) ownersOn(id ID, cluster string) []*Binding {
	var owners []*Binding
	for ownerID := range s.index.owners(id) {
		o := s.Bindings.At(ownerID.Key())
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

// brakeLinks say what keeps a work's content from its cluster.
func (s *State) brakeLinks(b *Binding, w *Work) []Link {
	var links []Link
	if b.Brakes.Hold(w.Cluster) && w.Held {
		links = append(links, s.holdLink(b, w.Cluster))
	}
	for _, e := range b.Evictions {
		switch {
		case e.Cluster == w.Cluster:
			links = append(links, s.evictionLink(&e, "its copy stays as it is until others have taken over"))
		case e.blocks():
			links = append(links, s.evictionLink(&e, fmt.Sprintf("nothing is sent before the copy on %s is gone", e.Cluster)))
		}
	}
	if w.Held && len(links) == 0 && b.attached() {
		links = append(links, Link{Step: LinkHold, Text: "everything that requires it here is held here"})
	}
	if w.Blocked != "" {
		links = append(links, s.blockedLink(w))
	}
	return links
}

// blockedLink names the rule that fails.
func (s *State) blockedLink(w *Work) Link {
	l := Link{Step: LinkBlocked, Text: w.Blocked}
	if r, why := s.failing(w); r != nil {
		l.Text, l.Document, l.Origin = fmt.Sprintf("%s fails: %s", r.Override, why), r.Override.id(), r.Origin
	}
	return l
}

// failing is the rule that blocks a work, which the message begins with, and
// why; nil when it is a script.
func (s *State) failing(w *Work) (rule *Rule, why string) {
	for o := range s.snapshot().Overrides.Values() {
		for _, r := range o.rules {
			if rest, ok := strings.CutPrefix(w.Blocked, r.where()+": "); ok {
				rule, why = r, rest
			}
		}
	}
	return rule, why
}

func (s *State) evictionLink(e *Eviction, text string) Link {
	l := Link{Step: LinkEviction, Text: fmt.Sprintf("%s: %s", e.Reason, text)}
	if c := s.snapshot().Clusters.At(e.Cluster); c != nil {
		l.Document, l.Origin = c.id(), c.Origin
	}
	return l
}

// holdLink points at the suspension that holds a cluster.
func (s *State) holdLink(b *Binding, cluster string) Link {
	for _, ref := range []*PolicyRef{b.Claim, &b.Active.Policy.Ref} {
		if ref == nil {
			continue
		}
		if p := s.snapshot().Policies.At(ref.Key()); p != nil && brakesOf(p).Hold(cluster) {
			l := Link{Step: LinkHold, Document: p.id()}
			l.Text, l.Origin = p.suspends(cluster)
			if note, ok := p.Note(cluster); ok {
				l.Note = &note
			}
			return l
		}
	}
	return Link{Step: LinkHold, Text: "the suspension of a policy that had it before stays, until a policy that claims it is in effect"}
}

// suspends says how the policy holds a cluster, and where.
func (p *Policy) suspends(cluster string) (string, Origin) {
	s := p.Spec.Suspension
	if s.Dispatching != nil && *s.Dispatching {
		return "suspension.dispatching holds every cluster", p.near("spec.suspension.dispatching", "spec.suspension.suspendDispatching", "spec.suspension")
	}
	i := slices.Index(s.DispatchingOnClusters.ClusterNames, cluster)
	const list, old = "spec.suspension.dispatchingOnClusters", "spec.suspension.suspendDispatchingOnClusters"
	item := fmt.Sprintf(".clusterNames[%d]", i)
	return "suspension.dispatchingOnClusters has " + cluster, p.near(list+item, old+item, list, old, "spec.suspension")
}

// near is the first of the fields whose line is known, or the policy itself.
func (p *Policy) near(fields ...string) Origin {
	for _, field := range fields {
		if line := p.Lines[field]; line != 0 {
			return Origin{p.Origin.File, line}
		}
	}
	return p.Origin
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// Reason is why a binding goes to one cluster of the fleet, or does not.
type Reason struct {
	Cluster string
	Placed  bool // it is a target, or owners take the template there

	// Cause is why it is none, "" where it is. Besides those of package
	// schedule there are the ones below.
	Cause    schedule.Cause
	Text     string
	Document object.ID
	fleet.Origin
	Commit string // as in TraceStep
}

// Causes that are none of a placement's.
const (
	CauseUnclaimed schedule.Cause = "unclaimed" // no policy applies: it gains no cluster
	CauseScheduler schedule.Cause = "scheduler" // it is left to another one
	CauseSettled   schedule.Cause = "settled"   // it would be chosen, were the template placed anew
	CauseOwners    schedule.Cause = "owners"    // nothing that requires it goes there
)

func (p Reason) step() TraceStep {
	return TraceStep{Phase: PhasePlacement, Text: p.Text, Document: p.Document, Origin: p.Origin, Commit: p.Commit}
}

// Reasons are why a binding goes to each cluster of the fleet, or does not, by
// name.
func (s *State) Reasons(b *Binding) []Reason {
	e := newExplainer(s, b)
	all := make([]Reason, 0, s.snapshot().Clusters.Len())
	for name := range s.snapshot().Clusters.All() {
		all = append(all, e.reason(name))
	}
	return all
}

// Reason is that of one cluster.
func (s *State) Reason(b *Binding, cluster string) Reason {
	return newExplainer(s, b).reason(cluster)
}

// explainer makes the reasons of one binding.
type explainer struct {
	*State
	b        *Binding
	policy   *fleet.Policy // in effect
	commit   string        // whose tree has the policy
	verdicts map[string]schedule.Verdict
}

func newExplainer(s *State, b *Binding) *explainer {
	e := &explainer{State: s, b: b}
	e.policy, e.commit = inEffect(s, b)
	if b.attached() {
		return e
	}

	e.verdicts = map[string]schedule.Verdict{}
	for _, v := range b.Active.Policy.Placement.Explain(b.request(s), s.index.clusters) {
		e.verdicts[v.Cluster] = v
	}
	return e
}

// inEffect is the policy whose delayed fields are active, and the commit it
// is in when that is not the accepted one.
func inEffect(s *State, b *Binding) (p *fleet.Policy, commit string) {
	if p := s.snapshot().Policies.At(b.Active.Policy.Ref.Key()); p != nil && p.Delayed == b.Active.Policy.Delayed {
		return p, ""
	}
	return b.Active.Policy, b.Active.PolicyCommit
}

// OlderInEffect reports whether an older policy or template than git's is in effect for an
// object, so that a trace names lines of the commit that it is of.
func (s *State) OlderInEffect(id object.ID) bool {
	b := s.Bindings.At(id.Key())
	switch {
	case b == nil:
		return false
	case s.snapshot().Templates.At(id.Key()) == nil:
		return true
	case b.attached():
		return false
	}
	_, commit := inEffect(s, b)
	return commit != "" || b.Claim == nil
}

func (e *explainer) reason(cluster string) Reason {
	p := Reason{Cluster: cluster}
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

// at points at the first of the fields that the policy has.
func (e *explainer) at(p *Reason, fields ...string) {
	p.Document, p.Origin, p.Commit = e.policy.ID(), e.policy.AtAny(fields...), e.commit
}

// placed is the reason of a target.
func (e *explainer) placed(p *Reason, c *schedule.Cluster) {
	p.Placed = true
	p.Text = cmp.Or(e.policy.Placement.Matches(c, e.b.AffinityName), "it names no clusters: every one matches")
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

// unplaced is the reason of a cluster that is no target.
func (e *explainer) unplaced(p *Reason) {
	b, v := e.b, e.verdicts[p.Cluster]
	e.at(p, "spec.placement")

	switch {
	case b.Evicts(p.Cluster):
		p.Cause, p.Text = schedule.CauseEviction, "the workload is being moved away from it"
		e.atCluster(p)
	case b.Claim == nil:
		p.Cause, p.Text = CauseUnclaimed, "no policy claims the template, so it gains no cluster"
	case b.Active.Policy.Spec.SchedulerName != fleet.DefaultScheduler:
		p.Cause, p.Text = CauseScheduler, fmt.Sprintf("the placement is left to scheduler %q, which is not this one", b.Active.Policy.Spec.SchedulerName)
		e.at(p, "spec.schedulerName")
	case b.answers != nil && b.answers.noReplicas != "":
		p.Cause, p.Text = schedule.CauseFailed, b.answers.noReplicas
	case v.Chosen:
		p.Cause, p.Text = CauseSettled, "it fits; what is placed stays where it is until its replicas or its placement change"
	default:
		p.Cause, p.Text = v.Cause, v.Detail
		e.blame(p)
	}
}

// blame points at the document that excludes a cluster.
func (e *explainer) blame(p *Reason) {
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

// atCluster points at the cluster's own document.
func (e *explainer) atCluster(p *Reason) {
	c := e.snapshot().Clusters.At(p.Cluster)
	p.Document, p.Origin, p.Commit = c.ID(), c.Origin, ""
}

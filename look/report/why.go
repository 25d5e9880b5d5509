// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/schedule"
)

// Why explains why a template is on its clusters, held, or not there; its JSON is a
// contract. Within a major of FormatVersion fields are only added.
type Why struct {
	APIVersion    string        `json:"apiVersion"`
	Kind          string        `json:"kind"`
	FormatVersion string        `json:"formatVersion"`
	Head          Commit        `json:"head"`
	Object        Object        `json:"object"`
	Trace         []WhyStep     `json:"chain"`
	Clusters      []WhyCluster  `json:"clusters"`
	NearMisses    []WhyNearMiss `json:"closest,omitempty"`
	Waiting       []WhyWaiting  `json:"waiting,omitempty"`
	Next          []WhyNext     `json:"next,omitempty"`

	now time.Time // that the text counts ages from
}

// WhyStep is one step of a trace. File and line are those of the head, or of the
// commit At if an older document is in effect.
type WhyStep struct {
	Step    propagate.TracePhase `json:"step"`
	Text    string               `json:"text,omitempty"`
	File    string               `json:"file,omitempty"`
	Line    int                  `json:"line,omitempty"`
	At      *CommitInfo          `json:"at,omitempty"`
	Changed *CommitInfo          `json:"changed,omitempty"`
	Since   *CommitInfo          `json:"since,omitempty"`
	Note    *fleetv1alpha1.Hold  `json:"note,omitempty"`
}

// WhyCluster is what one cluster has, and why.
type WhyCluster struct {
	Cluster string `json:"cluster"`
	// State is current, held, evicting, blocked, or absent.
	State string `json:"state"`
	// Cause is why it is absent.
	Cause schedule.Cause `json:"cause,omitempty"`
	// Runs is the commit that last changed what was released there.
	Runs *CommitInfo `json:"runs,omitempty"`
	// Failure is why a run could not bring it there, as its record tells.
	Failure  string       `json:"failure,omitempty"`
	Replicas *Replicas    `json:"replicas,omitempty"`
	Behind   []CommitInfo `json:"behind"`
	Trace    []WhyStep    `json:"chain"`
	Next     []WhyNext    `json:"next,omitempty"`
}

// WhyWaiting is what would change on a cluster if the deferred changes took effect
// now.
type WhyWaiting struct {
	Cluster  string           `json:"cluster"`
	Action   propagate.Action `json:"action"`
	Replicas *Replicas        `json:"replicas,omitempty"`
}

// WhyNearMiss is a policy that nearly selects the template.
type WhyNearMiss struct {
	Policy string   `json:"policy"`
	Misses []string `json:"misses"`
	File   string   `json:"file"`
	Line   int      `json:"line,omitempty"`
}

// WhyNext is a next step for the user.
type WhyNext struct {
	To      string `json:"to"`
	Command string `json:"command,omitempty"`
}

// The states of a cluster.
const (
	whyCurrent  = "current"
	whyHeld     = "held"
	whyEvicting = "evicting"
	whyBlocked  = "blocked"
	whyAbsent   = "absent"
)

// explained is the input of a Why.
type explained struct {
	*history.Timeline
	state *propagate.State
	id    object.ID
	b     *propagate.Binding // nil for a template that is placed nowhere
	*propagate.Explanation
}

// NewWhy explains an object on the clusters in only, or on all if only is empty.
func NewWhy(t *history.Timeline, s *propagate.State, id object.ID, only []string, now time.Time) *Why {
	e := &explained{t, s, id, s.Bindings.At(id.Key()), s.Explain(id)}
	r := &Why{APIVersion: APIVersion, Kind: "Why", FormatVersion: "1.0", Head: Commit{s.Commit},
		Object: Object{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}, Trace: []WhyStep{}, Clusters: []WhyCluster{}, now: now}
	template := s.Snapshot.Templates.At(id.Key())
	switch {
	case template != nil:
		r.Object.APIVersion = template.APIVersion
	case e.b != nil:
		r.Object.APIVersion = e.b.Active.Template.APIVersion
	}

	for _, l := range s.Trace(id) {
		r.Trace = append(r.Trace, e.link(l, ""))
	}

	if template != nil && (e.b == nil || e.b.Claim == nil) {
		for _, n := range s.NearMisses(template) {
			r.NearMisses = append(r.NearMisses, WhyNearMiss{n.Policy.Ref.String(), n.Misses, n.File, n.Line})
		}
	}
	if e.b != nil && e.b.Pending != nil {
		r.waits(e)
	}
	names := only
	if len(only) == 0 {
		for name := range s.Snapshot.Clusters.All() {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if c := e.cluster(name); e.b != nil || len(only) > 0 || len(c.Trace) > 0 {
			r.Clusters = append(r.Clusters, c)
		}
	}

	return r
}

// Failed adds what a run has recorded of the object's clusters.
func (r *Why) Failed(id object.ID, failures status.Failures) {
	for i := range r.Clusters {
		c := &r.Clusters[i]
		c.Failure = failures[propagate.Place{Cluster: c.Cluster, ID: id}]
	}
}

// waits adds what would change if the policy were activated.
func (r *Why) waits(e *explained) {
	for _, c := range e.state.Waiting(e.b) {
		w := WhyWaiting{Cluster: c.Cluster, Action: c.Action}
		if n := c.Replicas; n != nil {
			w.Replicas = &Replicas{Before: n.Before, After: n.Asked, Asked: n.Asked}
		}
		r.Waiting = append(r.Waiting, w)
	}

	if e.b.Claim != nil {
		r.Next = append(r.Next, WhyNext{"apply it without a change of the template", "fairlead activate " + policyArguments(*e.b.Claim)})
	}
}

func (e *explained) link(l propagate.TraceStep, cluster string) WhyStep {
	w := WhyStep{Step: l.Phase, Text: l.Text, File: l.File, Line: l.Line, Note: l.Note}
	switch {
	case l.Commit != "":
		w.At = NewCommitInfo(e.Commit(l.Commit))
	case l.Document != (object.ID{}):
		w.Changed = NewCommitInfo(e.Commit(e.Edited[l.Document]))
	}

	if o := e.Objects[e.id]; o != nil && (l.Phase == propagate.PhaseHold || l.Phase == propagate.PhaseEviction) {
		w.Since = NewCommitInfo(e.Commit(o.Held[cluster]))
	}

	return w
}

func (e *explained) cluster(name string) WhyCluster {
	c := WhyCluster{Cluster: name, State: whyAbsent, Behind: []CommitInfo{}, Trace: []WhyStep{}}
	trace := e.TraceTo(name)
	for _, l := range trace {
		c.Trace = append(c.Trace, e.link(l, name))
	}

	if e.b == nil {
		return c
	}

	c.Cause = e.Reason(name).Cause
	w := e.b.Work(name)
	if w == nil {
		return c
	}

	c.State, c.Cause = whyCurrent, ""
	switch {
	case w.Blocked != "":
		c.State = whyBlocked
	case e.b.Evicts(name):
		c.State = whyEvicting
	case w.Held:
		c.State = whyHeld
	}

	if w.Released != nil {
		c.Runs = NewCommitInfo(e.Commit(w.Released.Revision))
	}
	if w.Want.Replicas > 0 || w.Released != nil && w.Released.Replicas > 0 {
		c.Replicas = &Replicas{Asked: w.Want.Replicas}
		if w.Released != nil {
			c.Replicas.Before, c.Replicas.After = w.Released.Replicas, w.Released.Replicas
		}
	}
	c.Behind = commitInfos(e.Timeline, e.Objects[e.id].Waiting[name])
	c.Next = e.next(c, trace)
	return c
}

// next returns the next steps for one cluster.
func (e *explained) next(c WhyCluster, trace []propagate.TraceStep) []WhyNext {
	var all []WhyNext
	for _, l := range trace {
		switch {
		case l.Phase == propagate.PhaseHold && isPolicy(l.Document):
			ref := fleet.PolicyRef{Namespace: l.Document.Namespace, Name: l.Document.Name}
			all = append(all, WhyNext{To: "release it", Command: "fairlead resume " + policyArguments(ref) + " -c " + c.Cluster})
		case l.Phase == propagate.PhaseOwner && c.State == whyHeld:
			all = append(all, WhyNext{To: "see what holds its owner", Command: "fairlead why " + object.Argument(l.Document) + " -c " + c.Cluster})
		case l.Phase == propagate.PhaseBlocked:
			all = append(all, WhyNext{To: "unblock it, fix " + l.Origin.String()})
		}
	}

	return all
}

func isPolicy(id object.ID) bool {
	kinds := []string{policyv1alpha1.KindPropagationPolicy, policyv1alpha1.KindClusterPropagationPolicy}
	return id.Group == policyv1alpha1.GroupVersion.Group && slices.Contains(kinds, id.Kind)
}

// policyArguments returns the arguments that name a policy to an edit command.
func policyArguments(ref fleet.PolicyRef) string {
	if ref.Namespace == "" {
		return ref.Name
	}
	return fmt.Sprintf("%s -n %s", ref.Name, ref.Namespace)
}

// Present returns an error if an object is no longer in the fleet.
func Present(t *history.Timeline, s *propagate.State, id object.ID, now time.Time) error {
	if s.Snapshot.Templates.At(id.Key()) != nil || s.Bindings.At(id.Key()) != nil {
		return nil
	}
	return fmt.Errorf("%s is no longer in the fleet since %s; 'fairlead history %s' shows what happened to it", id, NewCommitInfo(t.Commit(t.Edited[id])).told(now), object.Argument(id))
}

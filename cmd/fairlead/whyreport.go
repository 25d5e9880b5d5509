// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// whyReport is an explanation as it is printed; its JSON is a contract. Within
// a major of FormatVersion fields are only added.
type whyReport struct {
	APIVersion    string       `json:"apiVersion"`
	Kind          string       `json:"kind"`
	FormatVersion string       `json:"formatVersion"`
	Head          planCommit   `json:"head"`
	Object        planObject   `json:"object"`
	Chain         []whyLink    `json:"chain"`
	Clusters      []whyCluster `json:"clusters"`
	Closest       []whyNear    `json:"closest,omitempty"`
	Waiting       []whyWaiting `json:"waiting,omitempty"`
	Next          []whyNext    `json:"next,omitempty"`
}

// whyLink is one link of a chain. File and line are those of the head, or of
// the commit At where an older document is in effect.
type whyLink struct {
	Step    propagate.LinkStep  `json:"step"`
	Text    string              `json:"text,omitempty"`
	File    string              `json:"file,omitempty"`
	Line    int                 `json:"line,omitempty"`
	At      *reportCommit       `json:"at,omitempty"`
	Changed *reportCommit       `json:"changed,omitempty"`
	Since   *reportCommit       `json:"since,omitempty"`
	Note    *fleetv1alpha1.Hold `json:"note,omitempty"`
}

// whyCluster is what one cluster has, and why.
type whyCluster struct {
	Cluster string `json:"cluster"`
	// State is current, held, evicting, blocked, or absent.
	State string `json:"state"`
	// Cause is why it is absent.
	Cause schedule.Cause `json:"cause,omitempty"`
	// Runs is the commit that last changed what was released there.
	Runs     *reportCommit  `json:"runs,omitempty"`
	Replicas *planReplicas  `json:"replicas,omitempty"`
	Behind   []reportCommit `json:"behind"`
	Chain    []whyLink      `json:"chain"`
	Next     []whyNext      `json:"next,omitempty"`
}

// whyWaiting is what would land on a cluster if what waits took effect now.
type whyWaiting struct {
	Cluster  string           `json:"cluster"`
	Action   propagate.Action `json:"action"`
	Replicas *planReplicas    `json:"replicas,omitempty"`
}

// whyNear is a policy that misses the template.
type whyNear struct {
	Policy string   `json:"policy"`
	Misses []string `json:"misses"`
	File   string   `json:"file"`
	Line   int      `json:"line,omitempty"`
}

// whyNext is what can be done about it.
type whyNext struct {
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

// explained is what a report is made of.
type explained struct {
	*trail
	state *propagate.State
	id    propagate.ID
	b     *propagate.Binding // nil for what goes nowhere
}

func newWhyReport(t *trail, s *propagate.State, id propagate.ID, head string, only []string) *whyReport {
	e := &explained{t, s, id, s.Bindings.At(id.Key())}
	r := &whyReport{APIVersion: "fairlead.dev/v1", Kind: "Why", FormatVersion: "1.0", Head: planCommit{head},
		Object: planObject{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}, Chain: []whyLink{}, Clusters: []whyCluster{}}
	template := s.Snapshot.Templates.At(id.Key())
	switch {
	case template != nil:
		r.Object.APIVersion = template.APIVersion
	case e.b != nil:
		r.Object.APIVersion = e.b.Active.Template.APIVersion
	}
	for _, l := range s.Chain(id) {
		r.Chain = append(r.Chain, e.link(l, ""))
	}
	if template != nil && (e.b == nil || e.b.Claim == nil) {
		for _, n := range s.Closest(template) {
			r.Closest = append(r.Closest, whyNear{n.Policy.Ref.String(), n.Misses, n.File, n.Line})
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
		if c := e.cluster(name); e.b != nil || len(only) > 0 || len(c.Chain) > 0 {
			r.Clusters = append(r.Clusters, c)
		}
	}
	return r
}

// waits tells what would land if the policy were activated.
func (r *whyReport) waits(e *explained) {
	for _, c := range e.state.Waiting(e.b) {
		w := whyWaiting{Cluster: c.Cluster, Action: c.Action}
		if n := c.Replicas; n != nil {
			w.Replicas = &planReplicas{Before: n.Before, After: n.Asked, Asked: n.Asked}
		}
		r.Waiting = append(r.Waiting, w)
	}
	if e.b.Claim != nil {
		r.Next = append(r.Next, whyNext{"land it without a change of the template", "fairlead activate " + policyArguments(*e.b.Claim)})
	}
}

func (e *explained) link(l propagate.Link, cluster string) whyLink {
	w := whyLink{Step: l.Step, Text: l.Text, File: l.File, Line: l.Line, Note: l.Note}
	switch {
	case l.Commit != "":
		w.At = e.commit(l.Commit)
	case l.Document != (propagate.ID{}):
		w.Changed = e.commit(e.edited[l.Document])
	}
	if o := e.objects[e.id]; o != nil && (l.Step == propagate.LinkHold || l.Step == propagate.LinkEviction) {
		w.Since = e.commit(o.held[cluster])
	}
	return w
}

func (e *explained) cluster(name string) whyCluster {
	c := whyCluster{Cluster: name, State: whyAbsent, Behind: []reportCommit{}, Chain: []whyLink{}}
	for _, l := range e.state.ChainTo(e.id, name) {
		c.Chain = append(c.Chain, e.link(l, name))
	}
	if e.b == nil {
		return c
	}
	c.Cause = e.state.Standing(e.b, name).Cause
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
		c.Runs = e.commit(w.Released.Revision)
	}
	if w.Want.Replicas > 0 || w.Released != nil && w.Released.Replicas > 0 {
		c.Replicas = &planReplicas{Asked: w.Want.Replicas}
		if w.Released != nil {
			c.Replicas.Before, c.Replicas.After = w.Released.Replicas, w.Released.Replicas
		}
	}
	c.Behind = e.list(e.objects[e.id].waiting[name])
	c.Next = e.next(c, name)
	return c
}

// next is what can be done about one cluster.
func (e *explained) next(c whyCluster, cluster string) []whyNext {
	var all []whyNext
	for _, l := range e.state.ChainTo(e.id, cluster) {
		switch {
		case l.Step == propagate.LinkHold && isPolicy(l.Document):
			ref := propagate.PolicyRef{Namespace: l.Document.Namespace, Name: l.Document.Name}
			all = append(all, whyNext{To: "release it", Command: "fairlead resume " + policyArguments(ref) + " -c " + cluster})
		case l.Step == propagate.LinkOwner && c.State == whyHeld:
			all = append(all, whyNext{To: "see what holds its owner", Command: "fairlead why " + argument(l.Document) + " -c " + cluster})
		case l.Step == propagate.LinkBlocked:
			all = append(all, whyNext{To: "unblock it, mend " + l.Origin.String()})
		}
	}
	return all
}

func isPolicy(id propagate.ID) bool {
	kinds := []string{policyv1alpha1.KindPropagationPolicy, policyv1alpha1.KindClusterPropagationPolicy}
	return id.Group == policyv1alpha1.GroupVersion.Group && slices.Contains(kinds, id.Kind)
}

// policyArguments name a policy on the command line of what edits it.
func policyArguments(ref propagate.PolicyRef) string {
	if ref.Namespace == "" {
		return ref.Name
	}
	return fmt.Sprintf("%s -n %s", ref.Name, ref.Namespace)
}

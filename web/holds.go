// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
)

// holdsPage is every suspension: who, why, since and until when, what waits, and how it is
// lifted.
func (s *Server) holdsPage(q *request) error {
	b := &holdsBody{links: q.links, Holds: q.holds(s.views.of(q), nil)}
	for _, h := range b.Holds {
		b.Works, b.Waiting = b.Works+h.Works, b.Waiting+h.Waiting
		if h.Expired {
			b.Expired++
		}
	}
	q.answer(200, "holds", "Holds", b)
	return nil
}

type holdsBody struct {
	links
	Holds                   []*hold
	Works, Waiting, Expired int
}

// hold is a suspension of some clusters with one note.
type hold struct {
	Holder, Address string
	Clusters        []string
	Everywhere      bool
	Note            fleetv1alpha1.Hold
	By              string
	Noted           bool
	Expired         bool
	Since           *commitText
	Works, Waiting  int
	Backlog         []*commitText
	Command         string
	Edit            string // where the file is edited on the forge
	File, FileAt    string

	policy  *fleet.PolicyRef // nil if an annotation of a template holds
	since   int
	backlog map[int]bool
}

// holds are the suspensions of a state, those that hold most back first. only is the
// policy whose they are, or nil for all.
func (q *request) holds(o *overview, only *fleet.PolicyRef) []*hold {
	policies := map[string]fleet.PolicyRef{}
	whole := map[string]int{} // how many clusters each policy names
	for p := range q.state.Snapshot.Policies.Values() {
		if held := report.Held(p); len(held) > 0 {
			policies[p.Ref.String()], whole[p.Ref.String()] = p.Ref, len(held)
		}
	}

	type like struct {
		holder string
		note   fleetv1alpha1.Hold
	}
	groups := map[like]*hold{}
	var all []*hold
	for _, h := range o.allHolds() {
		ref, isPolicy := policies[h.Holder]
		if only != nil && (!isPolicy || ref != *only) {
			continue
		}
		g := groups[like{h.Holder, h.Note}]
		if g == nil {
			g = q.newHold(&h)
			if isPolicy {
				g.policy = &ref
				g.Address = q.Policy(ref)
			}
			groups[like{h.Holder, h.Note}] = g
			all = append(all, g)
		}
		g.Everywhere = g.Everywhere || h.Cluster == fleetv1alpha1.AllClusters
		g.Clusters = append(g.Clusters, h.Cluster)
		g.Works, g.Waiting = g.Works+h.Works, g.Waiting+h.Waiting
	}

	by := map[fleet.PolicyRef][]*hold{}
	for _, g := range all {
		if g.policy != nil {
			by[*g.policy] = append(by[*g.policy], g)
		}
	}
	for _, r := range o.rows.All() {
		if r.Binding != nil && r.Claim != nil {
			for _, g := range by[*r.Claim] {
				g.count(q, o, r)
			}
		}
	}
	for _, g := range all {
		g.finish(q, whole[g.Holder])
	}
	slices.SortStableFunc(all, func(a, b *hold) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Works, a.Works), strings.Compare(a.Holder, b.Holder))
	})
	return all
}

func (q *request) newHold(h *report.Hold) *hold {
	at := fleet.Origin{File: h.File, Line: h.Line}
	g := &hold{Holder: h.Holder, Note: h.Note, By: report.NameOf(h.Note.By), Noted: h.Note != (fleetv1alpha1.Hold{}), since: -1, backlog: map[int]bool{},
		File: at.String(), FileAt: q.server.options.Fleet.Forge.File(q.state.Accepted, at)}
	g.Expired = h.Note.Until != "" && h.Note.Until < report.Today(q.server.options.Now())
	if !q.isPast() {
		g.Edit = q.server.options.Fleet.Forge.Edit(q.line.branch, h.File)
	}
	return g
}

// count adds since when a template is held, and the commits that wait.
func (g *hold) count(q *request, o *overview, r *row) {
	t := o.held.At(r.id.Key())
	if t == nil {
		return
	}
	for _, w := range r.Works {
		if !w.Held || !g.Everywhere && !slices.Contains(g.Clusters, w.Cluster) {
			continue
		}
		if _, place, ok := q.line.log.Commit(t.Held[w.Cluster]); ok && (g.since < 0 || place < g.since) {
			g.since = place
		}
		for _, hash := range t.Waiting[w.Cluster] {
			if _, place, ok := q.line.log.Commit(hash); ok {
				g.backlog[place] = true
			}
		}
	}
}

// finish says what was counted, and how the hold is lifted.
func (g *hold) finish(q *request, whole int) {
	commits := q.line.log.Commits()
	if g.since >= 0 {
		g.Since = q.server.commitText(q.links, commits[g.since])
	}
	for _, place := range slices.Sorted(maps.Keys(g.backlog)) {
		g.Backlog = append(g.Backlog, q.server.commitText(q.links, commits[place]))
	}
	if g.policy == nil {
		return
	}

	g.Command = "fairlead resume " + g.policy.Name
	if g.policy.Namespace != "" {
		g.Command += " -n " + g.policy.Namespace
	}
	if g.Everywhere || len(g.Clusters) == whole {
		g.Command += " --all"
		return
	}
	g.Command += " -c " + strings.Join(g.words(q), ",")
}

// words are how a command names the clusters of a hold: whole waves of the policy by
// their numbers.
func (g *hold) words(q *request) (words []string) {
	left := map[string]bool{}
	for _, name := range g.Clusters {
		left[name] = true
	}
	for i, clusters := range q.state.Snapshot.WavesOf(q.state.Snapshot.Policies.At(g.policy.Key())) {
		if len(clusters) < 2 || slices.ContainsFunc(clusters, func(name string) bool { return !left[name] }) {
			continue
		}
		words = append(words, fmt.Sprintf("wave=%d", i+1))
		for _, name := range clusters {
			delete(left, name)
		}
	}
	return append(slices.Sorted(maps.Keys(left)), words...)
}

// allHolds are the holds of the state, found once.
func (o *overview) allHolds() []report.Hold {
	o.holdsOnce.Do(func() { o.holds = report.NewHolds(o.state) })
	return o.holds
}

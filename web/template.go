// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/web/draw"
)

// templatePage is one template: what it is on each cluster, why, and its history.
func (s *Server) templatePage(q *request) error {
	id, err := q.object(q.PathValue("kind"), q.PathValue("namespace"), q.PathValue("name"))
	if err != nil {
		return err
	}
	page, err := q.number("page", 1, 100_000)
	if err != nil {
		return err
	}
	now := s.options.Now()
	t := q.line.log.Timeline(q.commit.Hash, id)
	b := &templateBody{links: q.links, Object: id, Title: titleOf(id)}
	if report.Present(t, q.state, id, now) != nil {
		b.Gone = "It is not in the fleet at this commit."
		if c := report.NewCommitInfo(t.Commits[t.Edited[id]]); c != nil && len(t.Objects[id].Entries) > 0 {
			b.Gone = "It is no longer in the fleet since " + source.Short(c.Commit) + ", " + c.Subject + "."
		}
	} else {
		b.explain(q, s.views.of(q), report.NewWhy(t, q.state, id, nil, now))
		if err := b.paged(q, page); err != nil {
			return err
		}
	}
	b.tell(s, report.NewHistory(t, id, q.commit.Hash, nil))
	q.answer(200, "template", b.Title, b)
	return nil
}

// titleOf reads "Deployment shop/web".
func titleOf(id object.ID) string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// object finds the object that a path names, of those that the fleet has or had.
func (q *request) object(kind, namespace, name string) (object.ID, error) {
	if namespace == "-" {
		namespace = ""
	}
	r := object.Reference{Namespace: namespace, Name: name}
	r.Kind, r.Group, _ = strings.Cut(strings.ToLower(kind), ".")
	found := q.find(r, func(id object.ID) bool { return id.Namespace == namespace })
	switch len(found) {
	case 0:
		return object.ID{}, unknown("%s is not a template of the fleet, and never was", r)
	case 1:
		return found[0], nil
	}
	for _, id := range found {
		if kindOf(id) == strings.ToLower(kind) {
			return id, nil
		}
	}
	_, err := r.One(found)
	return object.ID{}, unknown("%v", err)
}

// find returns the objects that a reference means: those of the state, or else former ones.
func (q *request) find(r object.Reference, wanted func(object.ID) bool) (found []object.ID) {
	kinds := q.state.Snapshot.KindNames()
	matches := func(id object.ID) bool { return id.Name == r.Name && wanted(id) && r.Matches(id, kinds) }
	for t := range q.state.Snapshot.Templates.Values() {
		if matches(t.ID) {
			found = append(found, t.ID)
		}
	}
	for b := range q.state.Bindings.Values() {
		if matches(b.ID) && !slices.Contains(found, b.ID) {
			found = append(found, b.ID)
		}
	}
	if len(found) == 0 {
		found = q.line.log.Objects(matches)
	}
	return found
}

// templateBody is a template as its page shows it.
type templateBody struct {
	links
	Object   object.ID
	Title    string
	Gone     string // why there is nothing to explain
	Chain    []step
	Counters []counter
	Clusters []whyCluster
	Absent   []absentClusters
	Would    []string
	Next     []report.WhyNext
	Near     []report.WhyNearMiss
	Steps    []historyStep
	Seen     bool
	Pages    []pageLink
	Replicas bool
	// Wide and Narrow are the picture of the replicas, for two widths of a screen.
	Wide, Narrow template.HTML
	More         int // changes that are older than those shown
}

// step is one step of a trace.
type step struct {
	Phase, Text, Where, Address, Note string
	Changed                           *commitText
	Hold                              bool
}

// whyCluster is what one cluster has, and why.
type whyCluster struct {
	Name, Address, ID, Wave string
	cell
	Runs           *commitText
	Asked, Running string
	asked, running int64 // -1 for kinds without replicas
	wave           int
	Backlog        []*commitText
	Reason, Where  string
	WhereAddress   string
	Failure        string
	Chain          []step
	Others         []clusterLink // that share the row
	Next           []report.WhyNext
}

// clusterLink is a cluster in a list.
type clusterLink struct{ Name, ID, Address string }

// absentClusters have nothing of a template for the same reason.
type absentClusters struct {
	Why, Where, Address string
	Names               []string
}

func (b *templateBody) explain(q *request, o *overview, w *report.Why) {
	b.Seen = o.members != nil
	b.Chain, b.Next, b.Near = q.steps(w.Trace), w.Next, w.NearMisses
	for _, waits := range w.Waiting {
		text := fmt.Sprintf("%s on %s", waits.Action, waits.Cluster)
		if n := waits.Replicas; n != nil && n.Before != n.After {
			text += fmt.Sprintf(", replicas %d → %d", n.Before, n.After)
		}
		b.Would = append(b.Would, text)
	}

	r := o.rows.At(b.Object.Key())
	cells := map[string]cell{}
	if r != nil {
		o.cells(r, func(cluster string, c cell) { cells[cluster] = c })
	}
	for _, c := range w.Clusters {
		if at, there := cells[c.Cluster]; there {
			b.Clusters = append(b.Clusters, q.whyCluster(o, c, at))
			continue
		}
		b.absent(q, c)
	}
	slices.SortStableFunc(b.Clusters, func(x, y whyCluster) int { return cmp.Or(cmp.Compare(x.mark, y.mark), cmp.Compare(x.wave, y.wave)) })

	b.draw()
	b.group()
	if r == nil {
		return
	}
	for _, word := range append(filters, "current") {
		n := r.tally.of(word)
		if word == "current" {
			n = r.tally.marks[markCurrent]
		}
		if n > 0 {
			b.Counters = append(b.Counters, counter{Word: word, Class: word, Glyph: glyphOf(word), N: n})
		}
	}
}

// draw draws the replicas, if the kind has some.
func (b *templateBody) draw() {
	picture := draw.Replicas{Name: b.Title, Live: b.Seen}
	for _, c := range b.Clusters {
		if c.asked < 0 {
			continue
		}
		share := draw.Share{Cluster: c.Name, Href: "#" + url.PathEscape(c.ID), Asked: c.asked, Running: c.running}
		if c.held {
			share.Held = max(c.asked-c.running, 0)
		}
		picture.Shares = append(picture.Shares, share)
	}
	b.Replicas = len(picture.Shares) > 0
	if slices.ContainsFunc(picture.Shares, func(s draw.Share) bool {
		return s.Asked != s.Running || s.Asked != picture.Shares[0].Asked
	}) { // else the table says it all
		b.Wide, b.Narrow = template.HTML(picture.SVG(wideWidth)), template.HTML(picture.SVG(narrowWidth)) //nolint:gosec // drawn here, and escaped there
	}
}

// mostAlone is how many clusters have a row each, whatever they have in common.
const mostAlone = 12

// group has clusters share a row that stand beside each other, have the same, and have it
// for the same reason.
func (b *templateBody) group() {
	if len(b.Clusters) <= mostAlone {
		return
	}
	var grouped []whyCluster
	for _, c := range b.Clusters {
		if n := len(grouped) - 1; n >= 0 && grouped[n].isLike(&c) {
			grouped[n].Others = append(grouped[n].Others, clusterLink{c.Name, c.ID, c.Address})
			continue
		}
		grouped = append(grouped, c)
	}
	b.Clusters = grouped
}

// isLike reports whether two clusters have the same for the same reason.
func (c *whyCluster) isLike(other *whyCluster) bool {
	sameHash := func(a, b *commitText) bool { return a == b || a != nil && b != nil && a.Hash == b.Hash }
	without := func(c *whyCluster) string { return strings.ReplaceAll(c.Reason, c.Name, "") }
	return c.mark == other.mark && c.wave == other.wave && c.asked == other.asked && c.running == other.running && c.Failure == other.Failure &&
		sameHash(c.Runs, other.Runs) && slices.EqualFunc(c.Backlog, other.Backlog, sameHash) && without(c) == without(other) && c.Where == other.Where
}

func glyphOf(word string) string {
	for _, s := range signs {
		if s.Word == word {
			return s.Glyph
		}
	}
	return ""
}

func (q *request) whyCluster(o *overview, c report.WhyCluster, at cell) whyCluster {
	last := c.Decisive()
	n := o.number[c.Cluster]
	out := whyCluster{asked: -1, wave: o.clusters[n].wave, Name: c.Cluster, Address: q.Cluster(c.Cluster), ID: "on-" + c.Cluster, Wave: o.waves[o.clusters[n].wave].Name, cell: at,
		Reason: last.Sentence(q.server.options.Now()), Where: last.Where(), WhereAddress: q.fileOf(last), Failure: c.Failure, Chain: q.steps(c.Trace), Next: c.Next}
	if at.mark != markHeld && at.mark != markCurrent {
		out.Reason = cmp.Or(at.why, out.Reason)
	}
	if c.Runs != nil {
		out.Runs = q.infoText(c.Runs)
	}
	if c.Replicas != nil {
		out.asked, out.running = c.Replicas.Asked, c.Replicas.After
		if at.available >= 0 {
			out.running = at.available
		}
		out.Asked, out.Running = fmt.Sprint(out.asked), fmt.Sprint(out.running)
	}
	for i := range c.Behind {
		out.Backlog = append(out.Backlog, q.infoText(&c.Behind[i]))
	}
	return out
}

// absent adds a cluster that has nothing of the template.
func (b *templateBody) absent(q *request, c report.WhyCluster) {
	last := c.Decisive()
	a := absentClusters{Why: cmp.Or(last.Text, "it is not sent there"), Where: last.Where(), Address: q.fileOf(last), Names: []string{c.Cluster}}
	for i := range b.Absent {
		if b.Absent[i].Why == a.Why && b.Absent[i].Where == a.Where {
			b.Absent[i].Names = append(b.Absent[i].Names, c.Cluster)
			return
		}
	}
	b.Absent = append(b.Absent, a)
}

// steps are the steps of a trace as pages show them.
func (q *request) steps(trace []report.WhyStep) (all []step) {
	now := q.server.options.Now()
	for _, l := range trace {
		s := step{Phase: string(l.Step), Text: l.Sentence(now), Where: l.Where(), Address: q.fileOf(l), Hold: l.Step == propagate.PhaseHold}
		if l.Changed != nil {
			s.Changed = q.infoText(l.Changed)
		}
		switch {
		case l.Note != nil:
			s.Note = report.NoteText(l.Note, report.Today(now))
		case s.Hold && l.File != "":
			s.Note = "no reason noted"
		}
		all = append(all, s)
	}
	return all
}

// fileOf is the address of a step's line on the forge; "" without one.
func (q *request) fileOf(l report.WhyStep) string {
	if l.File == "" {
		return ""
	}
	commit := q.state.Accepted
	if l.At != nil {
		commit = l.At.Commit
	}
	return q.server.options.Fleet.Forge.File(commit, fleet.Origin{File: l.File, Line: l.Line})
}

// infoText is a commit of a report as pages name it.
func (q *request) infoText(c *report.CommitInfo) *commitText {
	return &commitText{Hash: c.Commit, Subject: c.Subject, Author: report.NameOf(c.Author), Age: age(q.server.options.Now().Sub(c.Date)),
		Date: c.Date.UTC().Format(minute), Address: q.Then(source.Short(c.Commit)), Forge: q.server.options.Fleet.Forge.Commit(c.Commit)}
}

const minute = "2006-01-02 15:04"

// clustersPerPage is how many clusters the page of a template explains.
const clustersPerPage = 100

func (b *templateBody) paged(q *request, page int) error {
	pages := (len(b.Clusters) + clustersPerPage - 1) / clustersPerPage
	if page < 1 || page > max(pages, 1) {
		return unknown("page=%d: there are %d", page, pages)
	}
	for n := range pages {
		if pages > 1 {
			b.Pages = append(b.Pages, pageLink{n + 1, q.again("page", fmt.Sprint(n+1)), n+1 == page})
		}
	}
	b.Clusters = b.Clusters[(page-1)*clustersPerPage : min(page*clustersPerPage, len(b.Clusters))]
	return nil
}

// historyStep is a commit of an object's history.
type historyStep struct {
	*commitText
	Changes []historyChange
}

type historyChange struct {
	What, Word, Because string
	Clusters            []string
}

// maxSteps is how many steps of a history are shown.
const maxSteps = 100

func (b *templateBody) tell(s *Server, r *report.History) {
	if b.More = len(r.Steps) - maxSteps; b.More > 0 {
		r.Steps = r.Steps[:maxSteps]
	}
	for i := range r.Steps {
		from := &r.Steps[i]
		st := historyStep{commitText: (&request{server: s, links: b.links}).infoText(&from.CommitInfo)}
		for _, c := range from.Changes {
			st.Changes = append(st.Changes, historyChange{c.Words(), string(c.What), strings.Join(report.Reasons(c.Because), ", "), c.ClusterTexts()})
		}
		b.Steps = append(b.Steps, st)
	}
}

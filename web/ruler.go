// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/web/draw"
)

// rulerCommits is how many commits a ruler is given at most.
const rulerCommits = 120

// The widths that pictures are drawn for, in pixels. The style sheet shows one of them.
const (
	wideWidth   = 1216
	narrowWidth = 358
)

// rulerPage is the history of the branch, and where each cluster stands on it.
func (s *Server) rulerPage(q *request) error {
	o := s.views.of(q)
	b := &rulerBody{links: q.links}
	ruler := draw.Ruler{Branch: q.line.branch}
	commits := q.line.log.Commits()[:q.place+1]
	first := max(0, len(commits)-rulerCommits)
	if ruler.Older = first; first > 0 {
		ruler.OlderHref = links{Prefix: q.Prefix, At: source.Short(commits[first].Hash)}.Page("/ruler")
	}
	backlogs := q.backlogs(o)
	held := map[int]int{}
	for _, b := range backlogs {
		for place := range b.commits {
			held[place]++
		}
	}
	for place, c := range commits[first:] {
		place += first
		t := s.commitText(q.links, c)
		ruler.Commits = append(ruler.Commits, draw.Commit{Short: source.Short(c.Hash), Subject: c.Subject, Detail: t.Author + ", " + t.Date + " UTC",
			Href: links{Prefix: q.Prefix, At: source.Short(c.Hash)}.Page("/"), Verdict: verdicts[c.Verdict], Held: held[place], Here: q.isPast() && place == q.place})
	}
	for i, w := range o.waves {
		for _, name := range w.Clusters {
			lane := q.lane(backlogs[name], o.clusters[o.number[name]], first)
			lane.Wave, lane.WaveHref = w.Name, q.Page("/", "wave", fmt.Sprint(i+1))
			ruler.Lanes = append(ruler.Lanes, lane)
			if backlogs[name] != nil {
				b.add(q.rulerClusters(name, backlogs[name], lane))
			}
		}
	}
	slices.SortStableFunc(b.Clusters, func(x, y rulerClusters) int { return cmp.Compare(len(y.Waits), len(x.Waits)) })
	b.Wide, b.Narrow = template.HTML(ruler.SVG(wideWidth)), template.HTML(ruler.SVG(narrowWidth)) //nolint:gosec // drawn here, and escaped there
	b.Current = len(o.clusters) - len(backlogs)
	q.answer(200, "ruler", "Commits", b)
	return nil
}

type rulerBody struct {
	links
	Wide, Narrow template.HTML
	Clusters     []rulerClusters
	Current      int
}

// rulerClusters are clusters for which the same commits wait.
type rulerClusters struct {
	Names  []string
	Note   string
	Stands *commitText
	Waits  []*commitText
}

// add adds a cluster, to those for which the same waits if there are any.
func (b *rulerBody) add(c rulerClusters) {
	same := func(x, y *commitText) bool { return x.Hash == y.Hash }
	for i := range b.Clusters {
		if g := &b.Clusters[i]; g.Note == c.Note && slices.EqualFunc(g.Waits, c.Waits, same) {
			g.Names = append(g.Names, c.Names...)
			return
		}
	}
	b.Clusters = append(b.Clusters, c)
}

var verdicts = map[history.Verdict]draw.Verdict{history.Accepted: draw.Accepted, history.Refused: draw.Refused, history.Awaiting: draw.Awaiting}

// backlog is what waits for a cluster.
type backlog struct {
	commits map[int]bool // their places
	since   int          // the place of the commit since which something is held
	note    fleetv1alpha1.Hold
}

// backlogs are what waits, by cluster.
func (q *request) backlogs(o *overview) map[string]*backlog {
	all := map[string]*backlog{}
	for key, t := range o.held.All() {
		r := o.rows.At(key)
		for i := range r.Works {
			w := &r.Works[i]
			if !w.Held || len(t.Waiting[w.Cluster]) == 0 {
				continue
			}
			b := all[w.Cluster]
			if b == nil {
				b = &backlog{commits: map[int]bool{}, since: -1}
				all[w.Cluster] = b
			}
			for _, hash := range t.Waiting[w.Cluster] {
				if _, place, ok := q.line.log.Commit(hash); ok {
					b.commits[place] = true
				}
			}
			if _, place, ok := q.line.log.Commit(t.Held[w.Cluster]); ok && (b.since < 0 || place < b.since) {
				b.since = place
				if p := q.state.Snapshot.Policies.At(r.policy.Key()); p != nil {
					b.note, _ = p.Note(w.Cluster)
				}
			}
		}
	}
	return all
}

// lane is a cluster on the ruler.
func (q *request) lane(b *backlog, c *clusterTally, first int) draw.Lane {
	l := draw.Lane{Name: c.Name, Href: q.Cluster(c.Name), At: q.place - first, State: draw.Current}
	switch {
	case c.all() == 0:
		l.State = draw.Absent
	case c.marks[markFailed] > 0:
		l.State = draw.Failed
	case c.marks[markUnknown] > 0:
		l.State = draw.Unknown
	case b != nil || c.held > 0:
		l.State = draw.Held
	case c.marks[markBehind] > 0:
		l.State = draw.Outdated
	case c.marks[markRolling] > 0:
		l.State = draw.InProgress
	case c.deferred > 0:
		l.State = draw.Deferred
	}
	if b == nil || len(b.commits) == 0 {
		return l
	}

	l.Backlog = len(b.commits)
	l.At = slices.Min(slices.Collect(maps.Keys(b.commits))) - 1 - first
	l.BacklogHref = q.Page("/holds")
	l.Note = q.noteOf(b)
	return l
}

// noteOf reads "9d, mara, CHG-1188".
func (q *request) noteOf(b *backlog) string {
	var parts []string
	if b.since >= 0 {
		parts = append(parts, age(q.server.options.Now().Sub(q.line.log.Commits()[b.since].Authored)))
	}
	for _, text := range []string{report.NameOf(b.note.By), b.note.Ticket} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

func (q *request) rulerClusters(name string, b *backlog, lane draw.Lane) rulerClusters {
	c := rulerClusters{Names: []string{name}, Note: lane.Note}
	commits := q.line.log.Commits()
	places := slices.Sorted(maps.Keys(b.commits))
	if len(places) > 0 && places[0] > 0 {
		c.Stands = q.server.commitText(q.links, commits[places[0]-1])
	}
	for _, place := range places {
		c.Waits = append(c.Waits, q.server.commitText(q.links, commits[place]))
	}
	return c
}

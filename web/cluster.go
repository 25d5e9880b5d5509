// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
)

// clustersPage is a list of the clusters.
func (s *Server) clustersPage(q *request) error {
	o := s.views.of(q)
	b := &clustersBody{links: q.links}
	for _, w := range o.waves {
		for _, name := range w.Clusters {
			b.Clusters = append(b.Clusters, q.clusterLine(o, w.Name, o.clusters[o.number[name]]))
		}
	}
	slices.SortStableFunc(b.Clusters, func(x, y clusterLine) int { return cmp.Compare(x.Mark, y.Mark) })
	q.answer(200, "clusters", "Clusters", b)
	return nil
}

type clustersBody struct {
	links
	Clusters []clusterLine
}

// clusterLine is one cluster in a list.
type clusterLine struct {
	Name, Address, Wave, Region, Provider, Mode, Text, Silent string
	Mark                                                      mark
	Cordoned                                                  bool
	Works                                                     int32
}

func (q *request) clusterLine(o *overview, wave string, c *clusterTally) clusterLine {
	l := clusterLine{Name: c.Name, Address: q.Cluster(c.Name), Wave: wave, Region: c.Spec.Region, Provider: c.Spec.Provider, Mode: string(c.Spec.SyncMode),
		Text: (&group{tally: c.tally}).text(), Mark: c.worst(), Works: c.all(), Cordoned: cordoned(c.Cluster.Cluster)}
	if l.Works == 0 {
		l.Text = "nothing is sent there"
	}
	if o.members != nil {
		l.Silent = o.members.Silent[c.Name]
	}
	return l
}

func cordoned(c *clusterv1alpha1.Cluster) bool {
	for _, taint := range c.Spec.Taints {
		if taint.Key == clusterv1alpha1.TaintUnschedulable {
			return true
		}
	}
	return false
}

// clusterPage is one cluster: where it stands, what is not current there, and what arrived
// last.
func (s *Server) clusterPage(q *request) error {
	name := q.PathValue("name")
	o := s.views.of(q)
	n, known := o.number[name]
	if !known {
		return unknown("the fleet has no cluster %q at this commit", name)
	}
	all, err := q.one("show", "all")
	if err != nil {
		return err
	}
	page, err := q.number("page", 1, 1_000_000)
	if err != nil {
		return err
	}

	c := o.clusters[n]
	b := &clusterBody{links: q.links, clusterLine: q.clusterLine(o, o.waves[c.wave].Name, c), All: all != "", AllAddress: q.again("show", "all"), Some: q.again("show", ""), File: c.Origin.String(), FileAt: s.options.Fleet.Forge.File(q.state.Accepted, c.Origin)}
	for _, taint := range c.Spec.Taints {
		b.Taints = append(b.Taints, strings.TrimSuffix(taint.Key+"="+taint.Value, "=")+":"+string(taint.Effect))
	}
	b.counters(&c.tally)
	b.list(q, o)
	if err := b.paged(q, page); err != nil {
		return err
	}
	b.Arrivals = q.arrivals(name, 20)
	q.answer(200, "cluster", "Cluster "+name, b)
	return nil
}

type clusterBody struct {
	links
	clusterLine
	All, HasCurrent  bool
	AllAddress, Some string
	Taints           []string
	Counters         []counter
	Behind           int         // commits that are held back at most
	Oldest           *commitText // of them
	Rows             []clusterRow
	Current          int
	Pages            []pageLink
	Arrivals         []arrival
	File, FileAt     string
}

// clusterRow is one template on the cluster.
type clusterRow struct {
	Namespace, Name, Kind, Address string
	Policy, PolicyAddress          string
	cell
	Runs, Since *commitText
	key         string
}

func (b *clusterBody) counters(t *tally) {
	for _, word := range append(slices.Clone(filters), "current") {
		n := t.of(word)
		if word == "current" {
			n = t.marks[markCurrent]
		}
		if n > 0 {
			b.Counters = append(b.Counters, counter{Word: word, Class: word, Glyph: glyphOf(word), N: n})
		}
	}
}

// list has the templates of the cluster, but those that are current unless all are asked
// for.
func (b *clusterBody) list(q *request, o *overview) {
	oldest := -1
	for _, g := range o.groups {
		for _, r := range g.rows {
			c, w, there := o.at(r, b.Name)
			if !there {
				continue
			}
			if t := o.held.At(r.id.Key()); w != nil && w.Held && t != nil {
				b.Behind = max(b.Behind, len(t.Waiting[b.Name]))
				for _, hash := range t.Waiting[b.Name] {
					if _, place, ok := q.line.log.Commit(hash); ok && (oldest < 0 || place < oldest) {
						oldest = place
					}
				}
			}
			if c.mark == markCurrent {
				b.Current++
				if !b.All {
					continue
				}
			}
			b.Rows = append(b.Rows, b.row(q, o, r, w, c))
		}
	}
	if oldest >= 0 {
		b.Oldest = q.server.commitText(q.links, q.line.log.Commits()[oldest])
	}
	slices.SortStableFunc(b.Rows, func(x, y clusterRow) int { return cmp.Or(cmp.Compare(x.mark, y.mark), strings.Compare(x.key, y.key)) })
}

func (b *clusterBody) row(q *request, o *overview, r *row, w *propagate.Work, c cell) clusterRow {
	out := clusterRow{Namespace: r.id.Namespace, Name: r.id.Name, Kind: shortKind(r.id), Address: b.Template(r.id, b.Name), cell: c, key: r.id.Key()}
	if r.policy.Name != "" {
		out.Policy, out.PolicyAddress = r.policy.Name, b.Policy(r.policy)
	}
	if w != nil && w.Released != nil {
		out.Runs = q.hashText(w.Released.Revision)
	}
	if t := o.held.At(r.id.Key()); t != nil {
		out.Since = q.hashText(t.Held[b.Name])
	}
	return out
}

// at returns what a row has on one cluster.
func (o *overview) at(r *row, cluster string) (found cell, w *propagate.Work, there bool) {
	if r.Binding == nil {
		return cell{}, nil, false
	}
	w = r.Work(cluster)
	if w == nil && r.Pending == nil {
		return cell{}, nil, false
	}
	if w != nil && r.Pending == nil {
		return o.cell(r, w, false), w, true
	}
	o.cells(r, func(name string, c cell) {
		if name == cluster {
			found, there = c, true
		}
	})
	return found, w, there
}

// rowsPerPage is how many templates the page of a cluster lists.
const rowsPerPage = 100

func (b *clusterBody) paged(q *request, page int) error {
	pages := max((len(b.Rows)+rowsPerPage-1)/rowsPerPage, 1)
	if page < 1 || page > pages {
		return unknown("page=%d: there are %d", page, pages)
	}
	for n := range pages {
		if pages > 1 {
			b.Pages = append(b.Pages, pageLink{n + 1, q.again("page", fmt.Sprint(n+1)), n+1 == page})
		}
	}
	b.Rows = b.Rows[(page-1)*rowsPerPage : min(page*rowsPerPage, len(b.Rows))]
	return nil
}

// arrival is what one commit brought to a cluster, or took from it.
type arrival struct {
	*commitText
	Changes []arrivedChange
	More    int
}

type arrivedChange struct{ What, Name, Address string }

// mostAlike is how many changes of one commit are told.
const mostAlike = 8

// arrivals are the last commits that changed what a cluster may run.
func (q *request) arrivals(cluster string, most int) (found []arrival) {
	commits := q.line.log.Commits()
	for place := q.place; place >= 0 && len(found) < most; place-- {
		c := commits[place]
		if c.Quiet() {
			continue
		}
		a := arrival{commitText: q.server.commitText(q.links, c)}
		for _, change := range q.line.log.Alike(c.Hash) {
			if !change.Type.Sends() && !change.Type.Removes() || !change.On(cluster) {
				continue
			}
			if len(a.Changes) == mostAlike {
				a.More++
				continue
			}
			a.Changes = append(a.Changes, arrivedChange{string(change.Type), titleOf(change.Object), q.Template(change.Object, cluster)})
		}
		if a.Changes != nil {
			found = append(found, a)
		}
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"slices"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// recount makes an overview of another, or of none: the rows that may have changed are
// counted again, and what belongs to the other is copied before it is changed.
type recount struct {
	*overview
	before  *overview
	changed map[object.ID]bool
	groups  map[string]*group // that are this overview's own: the others are shared
	added   map[string][]*row // to each of them
	tallies map[int]bool      // the clusters whose counts are its own
}

func newRecount(o *overview) *recount {
	return &recount{overview: o, before: &overview{}, changed: map[object.ID]bool{}, groups: map[string]*group{}, added: map[string][]*row{}, tallies: map[int]bool{}}
}

// after is the overview of another commit of the line. Its cost follows what is another
// between the two, and what waits for a template to change. It is nil if so much is another
// that everything is to be counted.
func (o *overview) after(state *propagate.State, from, head string, log *history.Log, members *Members) *overview {
	touched, known := log.Between(from, head)
	if !known || !state.Snapshot.Clusters.Same(o.state.Snapshot.Clusters) {
		return nil
	}

	next := &overview{
		state: state, members: members, held: o.held, pending: maps.Clone(o.pending), groups: slices.Clone(o.groups), byName: o.byName,
		rows: o.rows, total: o.total, clusters: slices.Clone(o.clusters), number: o.number, waves: o.waves, claims: o.claims,
	}
	if !next.hasSameWaves(o) {
		return nil
	}
	c := newRecount(next)
	c.before = o
	for _, id := range touched {
		c.changed[id] = true
	}
	for id := range o.pending {
		c.changed[id] = true // what waits depends on more than the template
	}
	for d := range ordered.Diff(o.state.Bindings, state.Bindings) {
		c.change(d.Before, d.After)
	}
	for d := range ordered.Diff(o.state.Snapshot.Templates, state.Snapshot.Templates) {
		if d.Had {
			c.changed[d.Before.ID] = true
		} else {
			c.changed[d.After.ID] = true
		}
	}
	if len(c.changed) > o.rows.Len()/2 {
		return nil
	}
	c.run(head, log)
	return next
}

func (c *recount) change(before, after *propagate.Binding) {
	if before == nil {
		before = after
	}
	c.changed[before.ID] = true
}

// hasSameWaves reports whether the clusters stand together as they did.
func (o *overview) hasSameWaves(was *overview) bool {
	now, before := o.state.Snapshot, was.state.Snapshot
	if now.Settings == before.Settings && now.Policies.Same(before.Policies) {
		return true
	}
	return slices.Equal(o.waveNames(), was.waveNames()) && slices.EqualFunc(o.commonWaves(), was.commonWaves(), slices.Equal)
}

// run counts the rows that have changed.
func (c *recount) run(head string, log *history.Log) {
	var held []object.ID
	rows := make([]*row, 0, len(c.changed))
	for id := range c.changed {
		c.remove(id)
		delete(c.pending, id)
		c.held = c.held.Without(id.Key())
		r := c.newRow(id)
		if r == nil {
			continue
		}
		rows = append(rows, r)
		if r.isHeld() {
			held = append(held, id)
		}
		if r.Binding != nil && r.Pending != nil {
			c.pending[id] = true
		}
	}
	for id, t := range log.Backlogs(head, held) {
		c.held = c.held.With(id.Key(), t)
	}
	for _, r := range rows {
		c.add(r)
	}
	c.counted = len(rows)
	c.put()
}

// remove takes away what the row of an object has counted.
func (c *recount) remove(id object.ID) {
	r := c.before.rows.At(id.Key())
	if r == nil {
		return
	}

	g := c.group(id.Namespace)
	c.before.cells(r, func(cluster string, cell cell) {
		var one tally
		one.add(cell)
		c.each(g, cluster, func(t *tally) { t.leave(&one) })
	})
	g.tally.leave(&r.tally)
	c.total.leave(&r.tally)
	c.claim(r, -1)
	c.rows = c.rows.Without(id.Key())
	at, _ := slices.BinarySearchFunc(g.rows, r, worseRow)
	g.rows = slices.Delete(g.rows, at, at+1)
}

// add counts the cells of a row.
func (c *recount) add(r *row) {
	g := c.group(r.id.Namespace)
	c.cells(r, func(cluster string, cell cell) {
		r.tally.add(cell)
		c.each(g, cluster, func(t *tally) { t.add(cell) })
	})
	g.tally.join(&r.tally)
	c.total.join(&r.tally)
	c.claim(r, +1)
	c.rows = c.rows.With(r.id.Key(), r)
	c.added[g.Name] = append(c.added[g.Name], r)
}

// each does something with the counts of a cluster: its own, and those of a group for its
// wave and for itself.
func (c *recount) each(g *group, cluster string, do func(*tally)) {
	i, known := c.number[cluster]
	if !known {
		return
	}
	if !c.tallies[i] {
		c.tallies[i] = true
		own := *c.clusters[i]
		c.clusters[i] = &own
	}
	do(&c.clusters[i].tally)
	do(&g.waves[c.clusters[i].wave])
	if g.clusters != nil {
		do(&g.clusters[i])
	}
}

// claim notes that a policy has so many templates more.
func (c *recount) claim(r *row, n int) {
	if r.Binding == nil || r.Claim == nil {
		return
	}
	key := r.Claim.Key()
	c.claims = c.claims.With(key, c.claims.At(key)+n)
}

// group is the group of a namespace, to be changed.
func (c *recount) group(namespace string) *group {
	if g := c.groups[namespace]; g != nil {
		return g
	}
	g := &group{Name: namespace, waves: make([]tally, len(c.waves))}
	if was := c.before.byName.At(namespace); was != nil {
		g.rows, g.tally, g.waves, g.clusters = slices.Clone(was.rows), was.tally, slices.Clone(was.waves), slices.Clone(was.clusters)
	} else if len(c.clusters) <= mostColumns {
		g.clusters = make([]tally, len(c.clusters))
	}
	c.groups[namespace] = g
	return g
}

// put puts the groups that have changed, and what is in them, into their order. One that has
// nothing left goes.
func (c *recount) put() {
	var changed []*group
	for name, g := range c.groups {
		if was := c.before.byName.At(name); was != nil {
			at, _ := slices.BinarySearchFunc(c.overview.groups, was, worseGroup)
			c.overview.groups = slices.Delete(c.overview.groups, at, at+1)
			c.byName = c.byName.Without(name)
		}
		g.rows = inserted(g.rows, c.added[name], worseRow)
		if len(g.rows) > 0 {
			changed = append(changed, g)
			c.byName = c.byName.With(name, g)
		}
	}
	c.overview.groups = inserted(c.overview.groups, changed, worseGroup)
}

// inserted returns what is sorted with some more. It may write to sorted.
func inserted[V any](sorted, more []V, compare func(a, b V) int) []V {
	if len(more) > len(sorted)/10 {
		sorted = append(sorted, more...)
		slices.SortFunc(sorted, compare)
		return sorted
	}
	for _, v := range more {
		at, _ := slices.BinarySearchFunc(sorted, v, compare)
		sorted = slices.Insert(sorted, at, v)
	}
	return sorted
}

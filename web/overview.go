// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// overview is a state counted once: how many cells of each row, of each namespace under
// each column, and of each cluster are in which state. Cells themselves are made when
// they are shown. It does not change: the one of another commit shares what is equal.
type overview struct {
	state    *propagate.State
	members  *Members
	held     ordered.Map[*history.ObjectTimeline] // of objects that are held somewhere, by their key
	pending  map[object.ID]bool                   // rows for which something waits that their policy says
	groups   []*group                             // the worst first
	byName   ordered.Map[*group]
	rows     ordered.Map[*row] // by the key of their id
	total    tally
	clusters []*clusterTally // by name
	number   map[string]int
	waves    []wave
	claims   ordered.Map[int] // how many templates each policy has, by its key
	counted  int              // how many rows were counted to make it

	holdsOnce sync.Once
	holds     []report.Hold
}

// wave is some clusters that stand together: a wave of the releases, or else a region.
type wave struct {
	Name     string
	Clusters []string
	Number   int // of the wave, from 1; 0 for none
}

type clusterTally struct {
	*fleet.Cluster
	tally
	wave int
}

// group is the templates of one namespace.
type group struct {
	Name     string // "" for what is in none
	rows     []*row // the worst first
	tally    tally
	waves    []tally
	clusters []tally // nil where there are more than have a column each

	digestOnce sync.Once
	digested   string
}

// row is one template.
type row struct {
	*propagate.Binding
	id      object.ID
	policy  fleet.PolicyRef // zero if none
	follows bool            // it goes along with what requires it
	tally   tally
}

// newOverview counts a state. log has what waits for the clusters that are held.
func newOverview(state *propagate.State, head string, log *history.Log, members *Members) *overview {
	o := &overview{state: state, members: members, pending: map[object.ID]bool{}, number: map[string]int{}}
	o.findWaves()
	c := newRecount(o)
	for t := range state.Snapshot.Templates.Values() {
		c.changed[t.ID] = true
	}
	for b := range state.Bindings.Values() {
		c.changed[b.ID] = true
	}
	c.run(head, log)
	return o
}

// newRow is the row of an object; nil if it has neither a template nor a binding.
func (o *overview) newRow(id object.ID) *row {
	b := o.state.Bindings.At(id.Key())
	if b == nil {
		if o.state.Snapshot.Templates.At(id.Key()) == nil {
			return nil
		}
		return &row{id: id}
	}

	r := &row{Binding: b, id: id}
	switch {
	case b.Claim != nil:
		r.policy = *b.Claim
	case b.Active != nil && b.Active.Policy.Ref.Name != "":
		r.policy = b.Active.Policy.Ref
	default:
		r.follows = true
	}
	return r
}

// isHeld reports whether a work of a row is held.
func (r *row) isHeld() bool {
	return r.Binding != nil && slices.ContainsFunc(r.Works, func(w propagate.Work) bool { return w.Held })
}

// cells yields the cells of a row, but those of clusters to which nothing is sent.
func (o *overview) cells(r *row, yield func(cluster string, c cell)) {
	if r.Binding == nil {
		return
	}
	deferred := map[string]bool{}
	if r.Pending != nil {
		for _, waits := range o.state.Waiting(r.Binding) {
			deferred[waits.Cluster] = true
		}
	}
	for i := range r.Works {
		w := &r.Works[i]
		yield(w.Cluster, o.cell(r, w, deferred[w.Cluster]))
		delete(deferred, w.Cluster)
	}
	for cluster := range deferred {
		yield(cluster, on(nil, false, true, 0, o.members.of(r.id, cluster)))
	}
}

func (o *overview) cell(r *row, w *propagate.Work, deferred bool) cell {
	waits := 0
	if w.Held {
		if t := o.held.At(r.id.Key()); t != nil {
			waits = len(t.Waiting[w.Cluster])
		}
	}
	return on(w, len(r.Evictions) > 0 && r.Evicts(w.Cluster), deferred, waits, o.members.of(r.id, w.Cluster))
}

// worseRow has the worse row first, and of two that are alike the one whose name is first.
func worseRow(a, b *row) int {
	return cmp.Or(cmp.Compare(a.tally.worst(), b.tally.worst()), strings.Compare(a.id.Key(), b.id.Key()))
}

// worseGroup is worseRow of groups.
func worseGroup(a, b *group) int {
	return cmp.Or(cmp.Compare(a.tally.worst(), b.tally.worst()), strings.Compare(a.Name, b.Name))
}

// well reports whether there is nothing to look at in a group.
func (g *group) well() bool { return g.tally.worst() >= markCurrent }

// findWaves puts the clusters into waves: those of the fleet, or of the one order that its
// policies agree on, or else regions.
func (o *overview) findWaves() {
	for c := range o.state.Snapshot.Clusters.Values() {
		o.number[c.Name] = len(o.clusters)
		o.clusters = append(o.clusters, &clusterTally{Cluster: c})
	}

	left := map[string]bool{}
	for name := range o.number {
		left[name] = true
	}
	names := o.waveNames()
	for i, clusters := range o.commonWaves() {
		w := wave{Name: fmt.Sprintf("wave %d", i+1), Number: i + 1}
		if i < len(names) {
			w.Name = names[i]
		}
		for _, name := range clusters {
			if left[name] {
				w.Clusters = append(w.Clusters, name)
				delete(left, name)
			}
		}
		o.addWave(w)
	}

	rest := map[string][]string{}
	var regions []string
	for _, c := range o.clusters {
		if !left[c.Name] {
			continue
		}
		region := c.Spec.Region
		if rest[region] == nil {
			regions = append(regions, region)
		}
		rest[region] = append(rest[region], c.Name)
	}
	slices.SortFunc(regions, func(a, b string) int {
		return cmp.Or(cmp.Compare(boolInt(a == ""), boolInt(b == "")), strings.Compare(a, b))
	})
	for _, region := range regions {
		name := region
		if name == "" && len(o.waves) > 0 {
			name = "no wave"
		}
		o.addWave(wave{Name: name, Clusters: rest[region]})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (o *overview) addWave(w wave) {
	if len(w.Clusters) == 0 {
		return
	}
	for _, name := range w.Clusters {
		o.clusters[o.number[name]].wave = len(o.waves)
	}
	o.waves = append(o.waves, w)
}

// waveNames are those of fairlead.yaml, if its waves are the fleet's.
func (o *overview) waveNames() (names []string) {
	if s := o.state.Snapshot.Settings; s != nil {
		for _, w := range s.Spec.Waves {
			names = append(names, w.Name)
		}
	}
	return names
}

// commonWaves are the fleet's own waves, or else those that most policies have.
func (o *overview) commonWaves() [][]string {
	if waves := o.state.Snapshot.Settings.Waves(); len(waves) > 0 {
		return waves
	}
	type order struct {
		waves [][]string
		n     int
	}
	var orders []*order
	for p := range o.state.Snapshot.Policies.Values() {
		if len(p.Waves) == 0 {
			continue
		}
		i := slices.IndexFunc(orders, func(o *order) bool { return slices.EqualFunc(o.waves, p.Waves, slices.Equal) })
		if i < 0 {
			i, orders = len(orders), append(orders, &order{waves: p.Waves})
		}
		orders[i].n++
	}
	if len(orders) == 0 {
		return nil
	}
	return slices.MaxFunc(orders, func(a, b *order) int { return a.n - b.n }).waves
}

// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"

	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// Works counts works of one cluster: each is one object there.
type Works struct {
	Total int
	// Held are suspended and differ from what git wants; Deferred are changes that wait
	// until their template changes; Blocked cannot be made, for a reason that git has.
	Held, Deferred, Blocked int
}

// plus adds n times another count.
func (w Works) plus(n int, other Works) Works {
	return Works{w.Total + n*other.Total, w.Held + n*other.Held, w.Deferred + n*other.Deferred, w.Blocked + n*other.Blocked}
}

// counter counts the works of a state by cluster. Its cost follows what changed since
// the state before.
type counter struct {
	state   propagate.State
	works   map[string]Works
	waiting map[string]map[string]int // what a binding with something pending adds as Deferred, by its key and cluster
}

// countWorks returns the counts of the state as it is now.
func (l *Loop) countWorks() map[string]Works {
	if l.counts == nil {
		l.counts = &counter{works: map[string]Works{}, waiting: map[string]map[string]int{}}
	}
	l.counts.follow(l.state)
	return maps.Clone(l.counts.works)
}

// follow counts another state.
func (c *counter) follow(next propagate.State) {
	if next.Snapshot == nil {
		return
	}

	changed := map[string]bool{}
	for d := range ordered.Diff(c.state.Bindings, next.Bindings) {
		changed[d.Key] = true
		c.add(-1, d.Before)
		c.add(1, d.After)
	}

	// What waits depends on the policies and the clusters, too.
	if c.state.Snapshot != next.Snapshot {
		for key := range c.waiting {
			changed[key] = true
		}
	}
	for key := range changed {
		c.defers(&next, key)
	}

	c.state = next
	maps.DeleteFunc(c.works, func(_ string, w Works) bool { return w == Works{} })
}

// add counts the works of a binding n times.
func (c *counter) add(n int, b *propagate.Binding) {
	if b == nil {
		return
	}
	for i := range b.Works {
		w := &b.Works[i]
		one := Works{Total: 1}
		switch {
		case w.Blocked != "":
			one.Blocked = 1
		case w.Held && (w.Released == nil || w.Released.Digest != w.Want.Digest):
			one.Held = 1
		}
		c.works[w.Cluster] = c.works[w.Cluster].plus(n, one)
	}
}

// defers counts what waits for the template of a binding to change.
func (c *counter) defers(state *propagate.State, key string) {
	for cluster, n := range c.waiting[key] {
		c.works[cluster] = c.works[cluster].plus(-n, Works{Deferred: 1})
	}
	delete(c.waiting, key)
	b := state.Bindings.At(key)
	if b == nil || b.Pending == nil {
		return
	}

	on := map[string]int{}
	for _, cell := range state.Waiting(b) {
		on[cell.Cluster]++
		c.works[cell.Cluster] = c.works[cell.Cluster].plus(1, Works{Deferred: 1})
	}
	c.waiting[key] = on
}

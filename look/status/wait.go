// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Wait inspects the clusters of a fleet until all have arrived: until they have what
// the history up to a commit released to them, or are healthy as well.
type Wait struct {
	*Fleet
	// Position waits for what was released up to Head, or something newer on
	// Branch; otherwise everything must be healthy, too.
	Position bool
	Branch   string
	// Only reports whether an object is waited for; nil is every one.
	Only func(object.ID) bool

	// Missing has the cells that have not arrived, by cluster. They are empty, not nil,
	// for a cluster that gave no answer.
	Missing map[string][]*Cell

	arrived map[string]bool
	later   *later
}

// Arrival is a cluster that has arrived since the last Look.
type Arrival struct {
	Cluster string
	Objects int // that it has
}

// Look inspects the clusters once, and returns those that have arrived since.
func (w *Wait) Look(ctx context.Context) ([]Arrival, error) {
	if err := w.Inspect(ctx); err != nil {
		return nil, err
	}
	later, err := w.beyond()
	if err != nil {
		return nil, err
	}

	w.Missing = map[string][]*Cell{}
	objects := map[string]int{}
	for _, c := range w.All() {
		if c.State == "" || w.Only != nil && !w.Only(c.Object) {
			continue
		}
		objects[c.Cluster]++
		if !w.met(c) && !later.has(c) {
			w.Missing[c.Cluster] = append(w.Missing[c.Cluster], c)
		}
	}

	was := w.arrived
	w.arrived = map[string]bool{}
	var news []Arrival
	for _, c := range w.Clusters {
		if w.Silent[c.Name] != nil && w.Missing[c.Name] == nil {
			w.Missing[c.Name] = []*Cell{}
		}
		w.arrived[c.Name] = w.Missing[c.Name] == nil
		if w.arrived[c.Name] && !was[c.Name] {
			news = append(news, Arrival{c.Name, objects[c.Name]})
		}
	}

	return news, nil
}

// met reports whether a cell meets the condition.
func (w *Wait) met(c *Cell) bool {
	arrived := c.Arrived || c.Held && c.State != Unknown // nothing more is sent (decision 38)
	if !arrived || w.Position || c.Observed == nil || !c.Observed.Ours {
		return arrived
	}
	return c.Observed.Health == propagate.Healthy && c.Observed.Progress == interpret.Current
}

// later is the branch after the position: a cluster that runs content of a later
// commit has passed the position.
type later struct {
	tip   string
	place map[string]int // of the commits of the branch
	at    int            // the position
	state propagate.State
}

// beyond returns the branch after the position; nil if there is nothing.
func (w *Wait) beyond() (*later, error) {
	if !w.Position {
		return nil, nil
	}
	tip, err := w.Resolve(w.Branch)
	if err != nil || tip == w.Head {
		return nil, err
	}
	if w.later != nil && w.later.tip == tip {
		return w.later, nil
	}

	line, err := w.Commits("", tip)
	if err != nil {
		return nil, err
	}

	l := &later{tip: tip, place: map[string]int{}}
	for i, c := range line {
		l.place[c.Hash] = i
	}

	at, on := l.place[w.Head]
	if !on {
		return nil, nil // of another branch
	}

	l.at = at
	if l.state, err = w.At(tip); err != nil {
		return nil, err
	}

	w.later = l
	return l, nil
}

// has reports whether a cell that has not arrived is past the position: the cluster
// runs a later commit's content, or a later commit no longer wants it there.
func (l *later) has(c *Cell) bool {
	if l == nil || c.State == Unknown {
		return false
	}
	if i, known := l.place[c.Runs]; known && i > l.at {
		return true
	}
	if c.Observed != nil && c.Observed.Ours {
		return false
	}

	b := l.state.Bindings.At(c.Object.Key())
	return b == nil || b.Work(c.Cluster) == nil || b.Work(c.Cluster).Released == nil
}

// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Lag counts for cells that are behind how many commits changed what is wanted
// there since the one that they run. line are the commits of the fold up to
// head, oldest first, and at folds up to one of them.
func (h *History) Lag(line []*source.Commit, cells []*Cell, at func(hash string) (propagate.State, error)) error {
	place := make(map[string]int, len(line))
	for i, c := range line {
		place[c.Hash] = i
	}
	l := &lag{behind: map[propagate.ID][]*Cell{}, place: place}
	first := len(line)
	for _, c := range cells {
		if c.Position != Behind {
			continue
		}
		i, known := place[c.Runs]
		if !known {
			c.Behind = -1
			continue
		}
		l.behind[c.Object] = append(l.behind[c.Object], c)
		first = min(first, i)
	}
	if len(l.behind) == 0 {
		return nil
	}
	before, err := at(line[first].Hash)
	if err != nil {
		return err
	}
	_, err = h.Fold(before, line[first+1:], func(c *source.Commit, after propagate.State) error {
		l.step(c.Hash, &before, &after)
		before = after
		return nil
	})
	for _, cells := range l.behind {
		for _, c := range cells {
			if c.Behind == 0 {
				c.Behind = -1 // its digest is another engine's, or nobody's
			}
		}
	}
	return err
}

// lag is a walk along the commits since the oldest that is run.
type lag struct {
	behind map[propagate.ID][]*Cell
	place  map[string]int
}

func (l *lag) step(commit string, before, after *propagate.State) {
	for id, cells := range l.behind {
		was, is := before.Bindings.At(id.Key()), after.Bindings.At(id.Key())
		if was == is {
			continue
		}
		for _, c := range cells {
			if l.place[c.Runs] >= l.place[commit] || wantedOn(was, c.Cluster) == wantedOn(is, c.Cluster) {
				continue
			}
			if c.Behind == 0 {
				c.First = commit
			}
			c.Behind++
		}
	}
}

// wantedOn is the content that a binding has for a cluster, zero for none.
func wantedOn(b *propagate.Binding, cluster string) propagate.Digest {
	if b == nil {
		return propagate.Digest{}
	}
	if w := b.Work(cluster); w != nil {
		return w.Want.Digest
	}
	return propagate.Digest{}
}

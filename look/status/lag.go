// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Lag counts, for outdated cells, how many commits changed what is wanted there since
// the one that they run. line has the commits of the fold up to head, oldest first,
// and at folds up to one of them.
func Lag(h *history.History, line []*source.Commit, cells []*Cell, at func(hash string) (propagate.State, error)) error {
	place := make(map[string]int, len(line))
	for i, c := range line {
		place[c.Hash] = i
	}

	l := &lag{behind: map[object.ID][]*Cell{}, place: place}
	first := len(line)
	for _, c := range cells {
		if c.State != Outdated {
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

// lag is a walk of the commits since the oldest one that a cell runs.
type lag struct {
	behind map[object.ID][]*Cell
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

// wantedOn returns the digest of what a binding wants on a cluster; zero for nothing.
func wantedOn(b *propagate.Binding, cluster string) object.Digest {
	if b == nil {
		return object.Digest{}
	}
	if w := b.Work(cluster); w != nil {
		return w.Want.Digest
	}
	return object.Digest{}
}

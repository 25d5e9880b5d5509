// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Backlog is what waits for clusters that are held: the commits between what they run
// and what git has.
type Backlog struct {
	commits map[string]*source.Commit
	order   map[string]int
	objects map[object.ID]*ObjectTimeline
}

// Backlog walks the history up to the commit of a state, from the oldest of the commits
// that clusters run of some objects. It is nil where the history does not have one of
// them. A commit of "" is before the beginning.
func (l *States) Backlog(at *propagate.State, runs map[object.ID][]string) (*Backlog, error) {
	from, known, err := l.oldest(at.Commit, runs)
	if err != nil || !known {
		return nil, err
	}

	b := &Backlog{commits: map[string]*source.Commit{}, order: map[string]int{}, objects: map[object.ID]*ObjectTimeline{}}
	for id := range runs {
		b.objects[id] = newObjectTimeline()
	}

	var before propagate.State
	if from != "" {
		if before, err = l.At(from); err != nil {
			return nil, err
		}
	}
	commits, err := l.Commits(from, at.Commit)
	if err != nil {
		return nil, err
	}
	_, err = l.History.Fold(before, commits, func(c *source.Commit, after propagate.State) error {
		b.step(c, &before, &after)
		before = after
		return nil
	})
	return b, err
}

// oldest returns the oldest of the commits that clusters run, on the first-parent line
// of head, and whether all of them are there.
func (l *States) oldest(head string, runs map[object.ID][]string) (string, bool, error) {
	missing := map[string]bool{}
	for _, revisions := range runs {
		for _, revision := range revisions {
			missing[revision] = true
		}
	}
	if missing[""] {
		return "", true, nil
	}

	oldest, err := l.Repo.Nearest(head, func(hash string) bool {
		delete(missing, hash)
		return len(missing) == 0
	})
	return oldest, oldest != "", err
}

func (b *Backlog) step(c *source.Commit, before, after *propagate.State) {
	b.commits[c.Hash], b.order[c.Hash] = c, len(b.order)
	for _, id := range slices.SortedFunc(maps.Keys(b.objects), byKey) {
		if happened := propagate.ChangesOf(id, before, after); len(happened) > 0 {
			b.objects[id].add(c, happened)
		}
	}
}

// Of returns the commits that wait for a cluster, oldest first, and the commit since
// which it is held; nil where that is not known.
func (b *Backlog) Of(id object.ID, cluster string) (waiting []*source.Commit, held *source.Commit) {
	o := b.objects[id]
	if o == nil {
		return nil, nil
	}
	for _, hash := range o.Waiting[cluster] {
		waiting = append(waiting, b.commits[hash])
	}
	return waiting, b.commits[o.Held[cluster]]
}

// Missed returns the commits whose content was sent to a cluster after that of one which
// it still runs, oldest first.
func (b *Backlog) Missed(id object.ID, cluster, runs string) (sent []*source.Commit) {
	o, from := b.objects[id], -1
	if o == nil {
		return nil
	}
	if place, walked := b.order[runs]; walked {
		from = place
	}
	for _, e := range o.Entries {
		if b.order[e.Commit.Hash] <= from {
			continue
		}
		for _, h := range e.Happened {
			switch {
			case h.Cluster != cluster || !h.Type.Sends():
			case h.Type == propagate.ChangeReleased:
				for _, hash := range e.Released[cluster] {
					sent = append(sent, b.commits[hash])
				}
			default:
				sent = append(sent, e.Commit)
			}
		}
	}
	return sent
}

// Order returns the place of a commit in the walk.
func (b *Backlog) Order(commit string) int { return b.order[commit] }

// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrNotAncestor is wrapped by History if since is not on the first-parent line
// of head: the branch was rewritten, or head is another branch.
var ErrNotAncestor = errors.New("not on the first-parent line")

// ErrNoMergeBase is wrapped by MergeBase if two commits share no history.
var ErrNoMergeBase = errors.New("no common ancestor")

// ShallowError means that a clone does not have enough history. A boundary is
// not a root: what is before it is unknown, not absent.
type ShallowError struct {
	Boundary string
}

// Error says how to get the missing commits.
func (e *ShallowError) Error() string {
	return fmt.Sprintf("the clone is shallow and ends at %s; run git fetch --unshallow", e.Boundary[:8])
}

// History is the first-parent line from since, exclusive, to head, oldest
// first. With since "" it starts at the root.
func (r *Repo) History(since, head string) ([]*Commit, error) {
	at, err := r.Resolve(head)
	if err != nil {
		return nil, err
	}

	stop := plumbing.ZeroHash
	if since != "" {
		resolved, err := r.Resolve(since)
		if err != nil {
			return nil, err
		}
		stop = plumbing.NewHash(resolved)
	}

	var history []*Commit // a line can be a million commits long: only these are kept
	authors := map[string]string{}
	for h := plumbing.NewHash(at); h != stop; {
		c, err := r.commit(h)
		if err != nil {
			return nil, err
		}

		filled := r.fill(c)
		if known, ok := authors[filled.Author]; ok {
			filled.Author = known
		} else {
			authors[filled.Author] = filled.Author
		}

		if len(history) > 0 {
			filled.Hash = history[len(history)-1].Parent
		}

		history = append(history, filled)
		if len(c.parents) == 0 {
			if since != "" {
				return nil, fmt.Errorf("commit %s: %w of %s", short(stop), ErrNotAncestor, head)
			}
			break
		}

		if r.isShallow(h) && c.parents[0] != stop {
			return nil, &ShallowError{h.String()}
		}

		h = c.parents[0]
	}

	slices.Reverse(history)
	return history, nil
}

// Range returns every commit that is in head but not in base, newest first.
func (r *Repo) Range(base, head string) ([]*Commit, error) {
	b, err := r.Resolve(base)
	if err != nil {
		return nil, err
	}

	h, err := r.Resolve(head)
	if err != nil {
		return nil, err
	}

	found, err := r.reachable([]plumbing.Hash{plumbing.NewHash(h)}, []plumbing.Hash{plumbing.NewHash(b)})
	if err != nil {
		return nil, fmt.Errorf("%s..%s: %w", base, head, err)
	}

	var all []*Commit
	for _, c := range found {
		all = append(all, r.fill(c))
	}
	return all, nil
}

// reachable returns the commits that are reachable from include but not from
// exclude, newest first.
func (r *Repo) reachable(include, exclude []plumbing.Hash) ([]*commit, error) {
	w := newWalk(r)
	if err := errors.Join(w.paint(left, include...), w.paint(right, exclude...)); err != nil {
		return nil, err
	}

	var found []*commit
	oldest := time.Unix(1<<40, 0)
	for w.undecided(left, right, oldest) {
		c := w.pop()
		if w.colours[c.hash]&right == 0 {
			found = append(found, c)
			if c.when.Before(oldest) {
				oldest = c.when
			}
			if len(c.parents) > 0 && r.isShallow(c.hash) {
				return nil, &ShallowError{c.hash.String()}
			}
		}

		if err := w.follow(c); err != nil {
			return nil, err
		}
	}

	// Drop what was found before it turned out to be excluded.
	return slices.DeleteFunc(found, func(c *commit) bool { return w.colours[c.hash]&right != 0 }), nil
}

// MergeBase is the newest common ancestor of two commits.
func (r *Repo) MergeBase(a, b string) (string, error) {
	ha, err := r.Resolve(a)
	if err != nil {
		return "", err
	}

	hb, err := r.Resolve(b)
	if err != nil {
		return "", err
	}

	w := newWalk(r)
	if err := errors.Join(w.paint(left, plumbing.NewHash(ha)), w.paint(right, plumbing.NewHash(hb))); err != nil {
		return "", err
	}

	var found []*commit
	var boundary *ShallowError
	oldest := time.Unix(1<<40, 0)
	for w.undecided(left|right, stale, oldest) {
		c := w.pop()
		if colour := w.colours[c.hash]; colour&(left|right) == left|right && colour&stale == 0 {
			found = append(found, c)
			if c.when.Before(oldest) {
				oldest = c.when
			}

			// Ancestors of a common ancestor are common, but not the newest.
			if err := w.paintParents(c, left|right|stale); err != nil {
				return "", err
			}

			continue
		}

		if len(c.parents) > 0 && r.isShallow(c.hash) {
			boundary = &ShallowError{c.hash.String()}
		}
		if err := w.follow(c); err != nil {
			return "", err
		}
	}

	for _, c := range found {
		if w.colours[c.hash]&stale == 0 {
			return c.hash.String(), nil
		}
	}

	if boundary != nil {
		return "", fmt.Errorf("merge base of %s and %s: %w", a, b, boundary)
	}

	return "", fmt.Errorf("merge base of %s and %s: %w", a, b, ErrNoMergeBase)
}

// walk visits commits newest first and passes their colours on to their
// parents.
type walk struct {
	repo    *Repo
	queue   byDate
	queued  map[plumbing.Hash]bool
	colours map[plumbing.Hash]colour
	seen    map[plumbing.Hash]*commit
}

type colour uint8

const (
	left colour = 1 << iota
	right
	stale // an ancestor of a common ancestor
)

func newWalk(r *Repo) *walk {
	return &walk{repo: r, queued: map[plumbing.Hash]bool{}, colours: map[plumbing.Hash]colour{}, seen: map[plumbing.Hash]*commit{}}
}

// paint adds a colour to commits, and queues those that did not have it, even
// if they were visited before: their ancestors lack it too.
func (w *walk) paint(c colour, hashes ...plumbing.Hash) error {
	for _, h := range hashes {
		if w.colours[h]&c == c {
			continue
		}

		w.colours[h] |= c
		if w.queued[h] {
			continue
		}

		if w.seen[h] == nil {
			read, err := w.repo.commit(h)
			if err != nil {
				return err
			}
			w.seen[h] = read
		}

		w.queued[h] = true
		heap.Push(&w.queue, w.seen[h])
	}

	return nil
}

// follow passes a commit's colours on to its parents.
func (w *walk) follow(c *commit) error { return w.paintParents(c, w.colours[c.hash]) }

func (w *walk) paintParents(c *commit, colours colour) error {
	if w.repo.isShallow(c.hash) {
		return nil
	}
	return w.paint(colours, c.parents...)
}

func (w *walk) pop() *commit {
	c := heap.Pop(&w.queue).(*commit)
	w.queued[c.hash] = false
	return c
}

// clockSkew is the tolerated difference between the clocks of two committers. A
// walk goes on this much longer than correct dates would need.
const clockSkew = 24 * time.Hour

// undecided reports whether the queue can still change the answer: it contains
// a commit with a wanted colour and without the unwanted one, or one so young
// that it may turn out to be a descendant of the answer.
func (w *walk) undecided(wanted, unwanted colour, oldest time.Time) bool {
	if len(w.queue) == 0 {
		return false
	}
	if !w.queue[0].when.Before(oldest.Add(-clockSkew)) {
		return true
	}
	return slices.ContainsFunc(w.queue, func(c *commit) bool {
		colour := w.colours[c.hash]
		return colour&wanted != 0 && colour&unwanted == 0
	})
}

// byDate is a heap, newest first. Equal dates are ordered by hash, so that the
// order does not depend on the order of the queries.
type byDate []*commit

func (q byDate) Len() int { return len(q) }
func (q byDate) Less(i, j int) bool {
	if !q[i].when.Equal(q[j].when) {
		return q[i].when.After(q[j].when)
	}
	return bytes.Compare(q[i].hash[:], q[j].hash[:]) < 0
}
func (q byDate) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byDate) Push(c any)   { *q = append(*q, c.(*commit)) }
func (q *byDate) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}

// Nearest is the first commit on the first-parent line of head, starting with
// head, that is interesting; "" if there is none.
func (r *Repo) Nearest(head string, interesting func(hash string) bool) (string, error) {
	at, err := r.Resolve(head)
	if err != nil {
		return "", err
	}

	for h := plumbing.NewHash(at); ; {
		if interesting(h.String()) {
			return h.String(), nil
		}

		c, err := r.commit(h)
		if err != nil {
			return "", err
		}

		if len(c.parents) == 0 || r.isShallow(h) {
			return "", nil
		}

		h = c.parents[0]
	}
}

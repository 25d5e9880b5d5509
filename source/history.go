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

// ErrNotAncestor is what History wraps when since is not on the first-parent
// line of head: the branch was rewritten, or head is another branch.
var ErrNotAncestor = errors.New("not on the first-parent line")

// ErrNoMergeBase is what MergeBase wraps when two commits share no history.
var ErrNoMergeBase = errors.New("no common ancestor")

// ShallowError says that the clone ends before the question does. A boundary
// is not a root: what is behind it is unknown, not absent.
type ShallowError struct {
	Boundary string
}

func (e *ShallowError) Error() string {
	return fmt.Sprintf("the clone is shallow and ends at %s; deepen it: git fetch --unshallow", e.Boundary[:8])
}

// History is the first-parent line from since, which it leaves out, to head,
// oldest first. With since "" it begins at the root.
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
	var history []*Commit // a line can be a million commits long: of each only this is kept
	seen := commits{}     // what neighbouring merges look at is much the same
	authors := map[string]string{}
	for h := plumbing.NewHash(at); h != stop; {
		c, err := r.commit(h)
		if err != nil {
			return nil, err
		}
		filled, err := r.fill(c, seen)
		if err != nil {
			return nil, err
		}
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

// TrailersIn are the trailers of every commit that is in head and not in
// base, newest first.
func (r *Repo) TrailersIn(base, head string) ([]Trailer, error) {
	b, err := r.Resolve(base)
	if err != nil {
		return nil, err
	}
	h, err := r.Resolve(head)
	if err != nil {
		return nil, err
	}
	found, err := r.reachable([]plumbing.Hash{plumbing.NewHash(h)}, []plumbing.Hash{plumbing.NewHash(b)}, commits{})
	if err != nil {
		return nil, fmt.Errorf("%s..%s: %w", base, head, err)
	}
	var all []Trailer
	for _, c := range found {
		all = append(all, trailers(c.message)...)
	}
	return all, nil
}

// reachable is every commit that can be reached from include and not from
// exclude, newest first.
func (r *Repo) reachable(include, exclude []plumbing.Hash, seen commits) ([]*commit, error) {
	w := newWalk(r, seen)
	if err := errors.Join(w.paint(left, include...), w.paint(right, exclude...)); err != nil {
		return nil, err
	}
	var found []*commit
	oldest := time.Unix(1<<40, 0)
	for w.goesOn(left, right, oldest) {
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
	// What turned out to be excluded after it had been found.
	return slices.DeleteFunc(found, func(c *commit) bool { return w.colours[c.hash]&right != 0 }), nil
}

// MergeBase is the newest commit that both have in their history.
func (r *Repo) MergeBase(a, b string) (string, error) {
	ha, err := r.Resolve(a)
	if err != nil {
		return "", err
	}
	hb, err := r.Resolve(b)
	if err != nil {
		return "", err
	}
	w := newWalk(r, commits{})
	if err := errors.Join(w.paint(left, plumbing.NewHash(ha)), w.paint(right, plumbing.NewHash(hb))); err != nil {
		return "", err
	}
	var found []*commit
	var boundary *ShallowError
	oldest := time.Unix(1<<40, 0)
	for w.goesOn(left|right, behind, oldest) {
		c := w.pop()
		if colour := w.colours[c.hash]; colour&(left|right) == left|right && colour&behind == 0 {
			found = append(found, c)
			if c.when.Before(oldest) {
				oldest = c.when
			}
			// Ancestors of a common ancestor are common, but not the newest.
			if err := w.paintParents(c, left|right|behind); err != nil {
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
		if w.colours[c.hash]&behind == 0 {
			return c.hash.String(), nil
		}
	}
	if boundary != nil {
		return "", fmt.Errorf("merge base of %s and %s: %w", a, b, boundary)
	}
	return "", fmt.Errorf("merge base of %s and %s: %w", a, b, ErrNoMergeBase)
}

// walk visits commits newest first and carries colours to their parents.
type walk struct {
	repo    *Repo
	queue   byDate
	queued  map[plumbing.Hash]bool
	colours map[plumbing.Hash]colour
	seen    commits
}

// commits are parsed commits, kept between walks.
type commits map[plumbing.Hash]*commit

// maxSeen bounds how many are kept, not how many a walk may see.
const maxSeen = 50_000

type colour uint8

const (
	left colour = 1 << iota
	right
	behind // an ancestor of a common ancestor
)

func newWalk(r *Repo, seen commits) *walk {
	if len(seen) > maxSeen {
		clear(seen)
	}
	return &walk{repo: r, queued: map[plumbing.Hash]bool{}, colours: map[plumbing.Hash]colour{}, seen: seen}
}

// paint adds a colour to commits, and queues those that did not have it: also
// when they were visited before, for then their ancestors lack it too.
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

// follow gives a commit's colours to its parents.
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

// skew is how far the clocks of two committers may be apart. A walk goes on
// this much longer than correct dates would need.
const skew = 24 * time.Hour

// goesOn is whether the queue can still change the answer: it holds a commit
// that bears one of the wanted colours and not the unwanted one, or one so
// young that it may yet be found to lead to what was answered.
func (w *walk) goesOn(wanted, unwanted colour, oldest time.Time) bool {
	if len(w.queue) == 0 {
		return false
	}
	if !w.queue[0].when.Before(oldest.Add(-skew)) {
		return true
	}
	return slices.ContainsFunc(w.queue, func(c *commit) bool {
		colour := w.colours[c.hash]
		return colour&wanted != 0 && colour&unwanted == 0
	})
}

// byDate is a heap, newest first; equal dates by hash, so that the order does
// not depend on the order of asking.
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

// Nearest is the first commit on the first-parent line of head, from head
// backwards, that one is interested in; "" when there is none.
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

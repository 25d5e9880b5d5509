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
	known := sharing{authors: map[string]string{}, trailers: map[Trailer][]Trailer{}}
	for h := plumbing.NewHash(at); h != stop; {
		c, err := r.commit(h)
		if err != nil {
			return nil, err
		}

		filled := r.fill(c)
		known.share(filled)
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

// sharing has once what many commits of a line have.
type sharing struct {
	authors  map[string]string
	trailers map[Trailer][]Trailer // of commits with one trailer
}

func (s *sharing) share(c *Commit) {
	if known, ok := s.authors[c.Author]; ok {
		c.Author = known
	} else {
		s.authors[c.Author] = c.Author
	}

	if len(c.Trailers) != 1 || len(s.trailers) > maxShared {
		return
	}
	if known, ok := s.trailers[c.Trailers[0]]; ok {
		c.Trailers = known
	} else {
		s.trailers[c.Trailers[0]] = c.Trailers
	}
}

// maxShared is how many different trailers are remembered: some have a number each.
const maxShared = 10_000

// Ahead returns the commits on the first-parent line of head that base does not
// have, newest first.
func (r *Repo) Ahead(base, head string) ([]*Commit, error) {
	b, err := r.Resolve(base)
	if err != nil {
		return nil, err
	}
	h, err := r.Resolve(head)
	if err != nil {
		return nil, err
	}

	// Once base has a commit, it has every one below it on the line: the first one
	// is searched in steps that double, and then by halves.
	line := &line{repo: r, next: plumbing.NewHash(h)}
	has := func(i int) (bool, error) {
		if !line.reaches(i) {
			return true, line.err
		}
		return r.isAncestor(line.commits[i].hash, plumbing.NewHash(b))
	}
	first, step := -1, 1
	for {
		had, err := has(first + step)
		if err != nil {
			return nil, fmt.Errorf("%s..%s: %w", base, head, err)
		}
		if had {
			break
		}
		first, step = first+step, step*2
	}

	low, high := first+1, min(first+step, len(line.commits))
	for low < high {
		middle := (low + high) / 2
		had, err := has(middle)
		if err != nil {
			return nil, fmt.Errorf("%s..%s: %w", base, head, err)
		}
		if had {
			high = middle
		} else {
			low = middle + 1
		}
	}

	var ahead []*Commit
	for _, c := range line.commits[:low] {
		ahead = append(ahead, r.fill(c))
	}
	return ahead, nil
}

// line is a first-parent line as far as it was read.
type line struct {
	repo    *Repo
	commits []*commit
	next    plumbing.Hash // zero after the root
	err     error
}

// reaches reads up to the commit with an index, and reports whether there is one.
func (l *line) reaches(index int) bool {
	for len(l.commits) <= index && l.err == nil && !l.next.IsZero() {
		c, err := l.repo.commit(l.next)
		if err != nil {
			l.err = err
			break
		}

		l.commits, l.next = append(l.commits, c), plumbing.ZeroHash
		if len(c.parents) > 0 {
			l.next = c.parents[0]
		}
		if len(c.parents) > 0 && l.repo.isShallow(c.hash) {
			l.next, l.err = plumbing.ZeroHash, &ShallowError{c.hash.String()}
		}
	}
	return index < len(l.commits)
}

// isAncestor reports whether a commit is reachable from another. Dates only decide
// in which order commits are visited.
func (r *Repo) isAncestor(ancestor, of plumbing.Hash) (bool, error) {
	w := newWalk(r)
	if err := errors.Join(w.paint(left, ancestor), w.paint(right, of)); err != nil {
		return false, err
	}

	// Below the ancestor everything is reachable from it, so no way leads back up
	// to it: what remains is of no interest once both colours are on all of it.
	for w.colours[ancestor]&right == 0 && w.open(left|right) {
		if err := w.follow(w.pop()); err != nil {
			return false, err
		}
	}
	return w.colours[ancestor]&right != 0, nil
}

// reachable returns the commits that are reachable from include but not from
// exclude, newest first. Of a history with dates that are far off it may return
// some that are: it is for what a server has to be sent, which may be too much.
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

	// What is below a common ancestor is stale. When nothing else is left to visit,
	// every other common ancestor is below one that was found, whatever the dates.
	var found []*commit
	var boundary *ShallowError
	for w.open(stale) {
		c := w.pop()
		if colour := w.colours[c.hash]; colour&(left|right) == left|right && colour&stale == 0 {
			found = append(found, c)

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

	found = slices.DeleteFunc(found, func(c *commit) bool { return w.colours[c.hash]&stale != 0 })
	for i, c := range found {
		best, err := r.isBest(i, found)
		if err != nil {
			return "", err
		}
		if best {
			return c.hash.String(), nil
		}
	}

	if boundary != nil {
		return "", fmt.Errorf("merge base of %s and %s: %w", a, b, boundary)
	}

	return "", fmt.Errorf("merge base of %s and %s: %w", a, b, ErrNoMergeBase)
}

// isBest reports whether none of the other common ancestors is above one of them.
func (r *Repo) isBest(i int, found []*commit) (bool, error) {
	for j, other := range found {
		if i == j {
			continue
		}
		above, err := r.isAncestor(found[i].hash, other.hash)
		if above || err != nil {
			return false, err
		}
	}
	return true, nil
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

// open reports whether the queue has a commit without all of these colours.
func (w *walk) open(colours colour) bool {
	return slices.ContainsFunc(w.queue, func(c *commit) bool { return w.colours[c.hash]&colours != colours })
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

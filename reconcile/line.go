// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Line is the branch as a loop has folded it. It may be used from several goroutines, and
// does not change.
type Line struct {
	repo *source.Repo
	head string
	seen int64 // the moment of the last observations that are folded
	all  bool  // they are all that the log has

	mu    sync.Mutex
	found map[string]int // positions that were asked for, or passed by; -1 is none
	next  string         // the commit from which on nobody has looked
	at    int            // its position
}

func newLine(repo *source.Repo, head string) *Line {
	return &Line{repo: repo, head: head, found: map[string]int{}, next: head, at: aheadOfAll}
}

// Head is the newest commit.
func (l *Line) Head() string { return l.head }

// Observed is the moment of the last entry of the log that is folded; 0 without one. all
// reports whether the log has no later one, as it was read when that was folded.
func (l *Line) Observed() (at int64, all bool) { return l.seen, l.all }

// aheadOfAll is the position of the head: no branch has as many commits.
const aheadOfAll = 1 << 29

// Position is larger for a later commit of the branch; false for one that is not on it. Its
// cost is the distance from the head, once for all commits.
func (l *Line) Position(commit string) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.found[commit]
	if !ok {
		at = l.find(commit)
		l.found[commit] = at
	}
	return at, at >= 0
}

func (l *Line) find(commit string) int {
	if commit == "" || commit != l.head && !l.repo.Has(commit) {
		return -1
	}
	for l.next != "" {
		hash, at := l.next, l.at
		c, err := l.repo.Commit(hash)
		if err != nil {
			return -1
		}
		l.found[hash] = at
		l.next, l.at = c.Parent, at-1
		if hash == commit {
			return at
		}
	}
	return -1
}

// Replaces reports whether the branch was rewritten so that a commit may be left behind: a
// commit on it allows that, of this commit or one that came after it (fold rule 5). Where
// the other commits are not in the repository any more, any that is not on the branch
// either counts.
func (l *Line) Replaces(commit string) bool {
	if _, on := l.Position(commit); on {
		return false
	}
	for hash := l.head; hash != ""; {
		c, err := l.repo.Commit(hash)
		if err != nil {
			return false
		}
		for _, t := range c.Trailers {
			if t.Key == propagate.TrailerAllowRewrite && l.leaves(t.Value, commit) {
				return true
			}
		}
		hash = c.Parent
	}
	return false
}

// leaves reports whether a rewrite that leaves one commit behind leaves another.
func (l *Line) leaves(left, commit string) bool {
	if left == commit {
		return true
	}
	if _, on := l.Position(left); on {
		return false
	}
	if !l.repo.Has(left) || !l.repo.Has(commit) {
		return true
	}
	_, before := newLine(l.repo, left).Position(commit)
	return before
}

// line is what is folded now.
func (l *Loop) line() *Line {
	_, at := l.state.Logged()
	all := l.log == nil || l.log.last() <= at
	if l.folded == nil || l.folded.head != l.state.Commit || l.folded.seen != at || l.folded.all != all {
		l.folded = newLine(l.repo, l.state.Commit)
		l.folded.seen, l.folded.all = at, all
	}
	return l.folded
}

// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Merge is a change on top of a commit of the base branch, as the one commit that a
// merge or a squash would make of it. Only the fleet's directory is merged.
type Merge struct {
	// Base is the commit that the change lands on: the state there is the one before.
	Base string
	// Head is the tip of the change, with all trailers that count (see trailers).
	Head *source.Commit
	// Commits are those of the change on its own first-parent line that Base does not
	// have, newest first. Without any there is nothing to merge.
	Commits []*source.Commit
	// Test is set if Head itself is the merge, as a forge makes one to test it.
	Test bool
	// Moved is the tip of the base branch if the change is not planned on it, else "".
	Moved string
	// Tree is what the merge would contain if no commit has that yet, else nil.
	Tree *source.Tree
	// Conflicts are the files that both sides changed differently. Nothing can be
	// planned then.
	Conflicts []source.Conflict

	problem error // why there is no tree; a fact about the commits
}

// Merge merges head into base, in memory. If head is a merge commit that base does not
// have, of something new into a commit of base's own line, it is the merge already:
// refs/pull/N/merge, or what a forge's job has checked out.
func (l *States) Merge(base, head string) (*Merge, error) {
	tip, err := l.Repo.Commit(head)
	if err != nil {
		return nil, err
	}

	brought, err := l.broughtBy(tip, base)
	switch {
	case err != nil:
		return nil, err
	case brought != "":
		return l.testMerge(base, tip, brought)
	}

	fork, err := l.Repo.MergeBase(base, head)
	if err != nil {
		return nil, err
	}
	m, err := l.onto(base, tip)
	if err != nil || fork == base || fork == head {
		return m, err
	}
	return m, m.merge(l, fork)
}

// Fork returns the change as it stands on its own base: on the commit at which it
// left the base branch, wherever that is now.
func (l *States) Fork(base, head string) (*Merge, error) {
	tip, err := l.Repo.Commit(head)
	if err != nil {
		return nil, err
	}
	fork, err := l.Repo.MergeBase(base, head)
	if err != nil {
		return nil, err
	}

	m, err := l.onto(fork, tip)
	if err == nil && fork != base {
		m.Moved = base
	}
	return m, err
}

// onto returns a change on top of a commit, without a tree of its own.
func (l *States) onto(base string, tip *source.Commit) (*Merge, error) {
	commits, err := l.Repo.Ahead(base, tip.Hash)
	if err != nil {
		return nil, err
	}
	return &Merge{Base: base, Head: withTrailers(tip, commits), Commits: commits}, nil
}

// broughtBy returns the tip that a merge commit brings into a commit of base's
// first-parent line, if it is new to base; else "". A branch that has merged the base
// has its own commit as the first parent, or brings in nothing that base lacks.
func (l *States) broughtBy(merge *source.Commit, base string) (string, error) {
	tips, err := l.Repo.Merges(merge.Hash)
	if err != nil || len(tips) == 0 {
		return "", err
	}

	// Below the last commit of base's line that the first parent lacks is the first one
	// that it has: itself, if it is on that line.
	lacks, err := l.Repo.Ahead(merge.Parent, base)
	if err != nil {
		return "", err
	}
	on := base
	if len(lacks) > 0 {
		on = lacks[len(lacks)-1].Parent
	}
	if on != merge.Parent {
		return "", nil
	}

	news, err := l.Repo.Ahead(base, tips[0])
	if err != nil || len(news) == 0 {
		return "", err
	}
	return tips[0], nil
}

// testMerge is the merge that somebody else has made.
func (l *States) testMerge(base string, merge *source.Commit, tip string) (*Merge, error) {
	commits, err := l.Repo.Ahead(merge.Parent, tip)
	if err != nil {
		return nil, err
	}

	m := &Merge{Base: merge.Parent, Head: withTrailers(merge, slices.Concat(commits, []*source.Commit{merge})), Commits: commits, Test: true}
	if merge.Parent != base {
		m.Moved = base
	}
	return m, nil
}

// withTrailers returns a commit with the trailers that count if the change lands as it
// is (decision 46): those of the change's commits on its own first-parent line. In a
// merge commit only its own message will count, which is not written yet. A preview
// that takes too much for confirmed shows deletions that may not come; one that takes
// too little hides some.
func withTrailers(tip *source.Commit, commits []*source.Commit) *source.Commit {
	c := *tip
	c.Trailers = nil
	for _, of := range commits {
		c.Trailers = append(c.Trailers, of.Trailers...)
	}
	return &c
}

// merge makes the tree of the merge, or finds out why there is none.
func (m *Merge) merge(l *States, fork string) error {
	from, err := l.treeAt(fork)
	if err != nil {
		return err
	}
	ours, err := l.treeAt(m.Base)
	if err != nil {
		return err
	}
	return m.land(l, from, ours)
}

// land adds to a tree what changed between another one and the head. That it cannot be
// done is a fact about the commits, unless the error says otherwise.
func (m *Merge) land(l *States, from, on *source.Tree) error {
	theirs, err := l.treeAt(m.Head.Hash)
	if err != nil {
		return err
	}

	merged, err := source.Merge(from, on, theirs)
	at := path.Clean(l.History.path)
	switch {
	case err != nil && source.IsUnavailable(err):
		return err
	case err != nil:
		m.problem = fmt.Errorf("it cannot be merged: %w", err)
	case merged.Tree != nil && merged.Tree.Empty() && at != ".":
		m.problem = fmt.Errorf("%s: %w", at, source.ErrNoPath)
	default:
		m.Tree, m.Conflicts = merged.Tree, merged.Conflicts
	}
	return nil
}

// treeAt is the fleet's directory in a commit; nil if it has none.
func (l *States) treeAt(hash string) (*source.Tree, error) {
	c, err := l.Repo.Commit(hash)
	if err != nil {
		return nil, err
	}
	tree, err := c.Tree(l.History.path)
	if errors.Is(err, source.ErrNoPath) {
		return nil, nil
	}
	return tree, err
}

// read is the merge as the input of a step.
func (m *Merge) read(h *History, on *propagate.State) (propagate.Commit, error) {
	if m.Tree == nil && m.problem == nil {
		return h.Read(m.Head, on)
	}
	return h.readTree(m.Head, on, m.Tree, m.problem)
}

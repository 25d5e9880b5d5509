// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Preview returns the state after a merge without conflicts on top of before, the
// state at its base, and the guard if the merge would await confirmation. The state
// names the head of the change as its commit, and may have what no commit has.
func (l *States) Preview(before propagate.State, m *Merge) (propagate.State, *propagate.Guard, error) {
	if len(m.Commits) == 0 {
		return before, nil, nil
	}
	in, err := m.read(l.History, &before)
	if err != nil {
		return before, nil, err
	}

	after, guard := propagate.Preview(before, in)
	return after, guard, nil
}

// ConflictError says that a commit of a change cannot land on its own.
type ConflictError struct {
	Commit    *source.Commit
	Conflicts []source.Conflict
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit %s cannot land on its own: %s is changed on both sides", source.Short(e.Commit.Hash), e.Conflicts[0].Path)
}

// PreviewEach is Preview of a change whose commits land one by one, oldest first, as
// after a rebase: to the state's tree is added what each of them changed. The error is
// a *ConflictError if that does not work for one of them.
func (l *States) PreviewEach(before propagate.State, m *Merge) (after propagate.State, held *propagate.Guard, err error) {
	tree, err := l.treeAt(m.Base)
	if err != nil {
		return before, nil, err
	}

	commits := slices.Clone(m.Commits)
	slices.Reverse(commits)
	skipped, after := skipped(commits), before
	for _, c := range commits {
		one := &Merge{Base: m.Base, Head: c}
		if tree, err = l.landed(one, tree); err != nil {
			return after, nil, err
		}
		in, err := l.History.unlessSkipped(c, &after, skipped, one.read)
		if err != nil {
			return after, nil, err
		}
		next, guard := propagate.Preview(after, in)
		if guard != nil {
			held = guard
		}
		after = next
	}

	return after, held, nil
}

// landed lands a commit on a tree, and returns the tree afterwards. Nothing of a commit
// that cannot be merged for another reason than a conflict is in it.
func (l *States) landed(m *Merge, on *source.Tree) (*source.Tree, error) {
	from, err := l.grownFrom(m.Head, m.Base)
	if err != nil {
		return nil, err
	}

	if err := m.land(l, from, on); err != nil {
		return nil, err
	}
	switch {
	case m.Conflicts != nil:
		return nil, &ConflictError{m.Head, m.Conflicts}
	case m.Tree == nil:
		return on, nil
	}
	return m.Tree, nil
}

// grownFrom returns the tree against which a commit shows its own changes: its parent's.
// A merge of what base has anyway, such as base itself, changes nothing but what it
// resolves.
func (l *States) grownFrom(c *source.Commit, base string) (*source.Tree, error) {
	if c.Parent == "" {
		return nil, nil
	}
	parent, err := l.treeAt(c.Parent)
	if err != nil {
		return nil, err
	}
	tips, err := l.Repo.Merges(c.Hash)
	if err != nil || len(tips) == 0 {
		return parent, err
	}
	if news, err := l.Repo.Ahead(base, tips[0]); err != nil || len(news) > 0 {
		return parent, err
	}

	fork, err := l.Repo.MergeBase(c.Parent, tips[0])
	if err != nil {
		return nil, err
	}
	from, err := l.treeAt(fork)
	if err != nil {
		return nil, err
	}
	merged, err := l.treeAt(tips[0])
	if err != nil {
		return nil, err
	}
	grown, err := source.Merge(from, parent, merged)
	switch {
	case err != nil && source.IsUnavailable(err):
		return nil, err
	case err != nil || grown.Tree == nil:
		return parent, nil //nolint:nilerr // what cannot be merged shows when it lands
	}
	return grown.Tree, nil
}

// SPDX-License-Identifier: Apache-2.0

package history

import (
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Preview returns the state after a merge of head on top of before, the state at
// from, and the guard if the merge would await confirmation. With each every commit
// is a step, as after a rebase.
func (l *States) Preview(before propagate.State, from, head string, each bool) (propagate.State, *propagate.Guard, error) {
	if from == head {
		return before, nil, nil
	}

	if each {
		commits, err := l.Repo.History(from, head)
		if err != nil {
			return before, nil, err
		}
		return l.previewEach(before, commits)
	}
	c, err := l.Repo.Commit(head)
	if err != nil {
		return before, nil, err
	}
	if c.Trailers, err = l.Repo.TrailersIn(from, head); err != nil {
		return before, nil, err
	}
	c.Own = 0 // what a branch says of other commits counts nowhere, or in the merge's own message

	return l.previewEach(before, []*source.Commit{c})
}

func (l *States) previewEach(state propagate.State, commits []*source.Commit) (after propagate.State, held *propagate.Guard, err error) {
	skipped := skipped(commits)
	for _, c := range commits {
		in, err := l.History.input(c, &state, skipped)
		if err != nil {
			return state, nil, err
		}
		next, guard := propagate.Preview(state, in)
		if guard != nil {
			held = guard
		}
		state = next
	}

	return state, held, nil
}

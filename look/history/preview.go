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
	if c.Trailers, err = l.trailers(from, c); err != nil {
		return before, nil, err
	}

	return l.previewEach(before, []*source.Commit{c})
}

// trailers are those that count if the change lands as it is (decision 46): of the
// commits on head's first-parent line that from does not have. In a merge commit
// only its own message will count, which is not written yet. A preview that takes
// too much for confirmed shows deletions that may not come; one that takes too
// little hides some.
func (l *States) trailers(from string, head *source.Commit) (all []source.Trailer, err error) {
	ahead, err := l.Repo.Ahead(from, head.Hash)
	if err != nil {
		return nil, err
	}
	for _, c := range ahead {
		all = append(all, c.Trailers...)
	}
	return all, nil
}

func (l *States) previewEach(state propagate.State, commits []*source.Commit) (after propagate.State, held *propagate.Guard, err error) {
	for _, c := range commits {
		in, err := l.History.Read(c, &state)
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

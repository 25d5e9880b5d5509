// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
)

// travel folds what is not the head: states at other commits, and plans. It does one after
// another, because one fold uses all of a history's memory.
type travel struct {
	server *Server
	queue  *queue

	states  *history.States                   // used by whoever has the queue's turn
	folded  *recent[string, *propagate.State] // by commit
	fetched *recent[int, time.Time]           // heads of pull requests
}

// maxStates is how many states of other commits are kept, and maxWorks how many works they
// may have together. One always is.
const (
	maxStates = 16
	maxWorks  = 100_000
)

func newTravel(s *Server, waiting int) *travel {
	return &travel{server: s, queue: newQueue(1, waiting), folded: newRecent[string, *propagate.State](maxStates), fetched: newRecent[int, time.Time](maxPlans)}
}

// do works on the history when it is its turn.
func (t *travel) do(ctx context.Context, work func(*history.States) error) error {
	return t.queue.do(ctx, func() error {
		if t.states == nil {
			states, err := t.server.options.Fleet.Open(ctx)
			if err != nil {
				return err
			}
			states.InMemory = func(commit string) (history.Folded, bool) { return t.server.line.Load().inMemory(commit) }
			t.states = states
		}
		t.states.History.Stop = ctx.Err
		if l := t.server.line.Load(); l != nil {
			t.states.History.Like(l.known)
		}
		return work(t.states)
	})
}

// at returns the state at a commit of the line.
func (t *travel) at(ctx context.Context, commit string) (*propagate.State, error) {
	if state, ok := t.folded.get(commit); ok {
		return state, nil
	}

	var state *propagate.State
	err := t.do(ctx, func(states *history.States) error {
		if known, ok := t.folded.get(commit); ok {
			state = known // whoever came before wanted the same
			return nil
		}
		folded, err := states.At(commit)
		if err != nil {
			return err
		}
		if folded.Snapshot == nil {
			folded.Snapshot = &fleet.Snapshot{}
		}
		state = &folded
		t.folded.limit(max(min(maxStates, maxWorks/max(folded.Works, 1)), 1))
		t.folded.put(commit, state)
		return nil
	})
	return state, err
}

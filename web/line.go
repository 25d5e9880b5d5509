// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// line is the followed branch at one head: the state there, and what every commit up to
// it did. It does not change; a new head has a new one.
type line struct {
	repo    *source.Repo
	head    string
	branch  string
	commit  *history.LogCommit
	state   *propagate.State
	known   *history.Known // the same, for other folds
	refusal *report.Refusal
	log     *history.Log
	stones  stones
}

// follower folds the followed branch whenever it moves. It is used by one goroutine.
type follower struct {
	fleet  Fleet
	states *history.States
	line   *line
	told   func(done, all int)
}

// step folds up to the present head. It returns the line if that has changed, else nil.
func (f *follower) step(ctx context.Context) (*line, error) {
	if f.states == nil {
		states, err := f.fleet.Open(ctx)
		if err != nil {
			return nil, err
		}
		f.states = states
	}
	f.states.History.Stop = ctx.Err

	head, err := f.head()
	if err != nil || head == "" || f.line != nil && f.line.head == head {
		return nil, err
	}
	next, err := f.fold(head)
	if err != nil {
		return nil, err
	}
	f.line = next
	return next, nil
}

// head returns the commit to fold up to.
func (f *follower) head() (string, error) {
	if f.fleet.Head != nil {
		return f.fleet.Head(), nil
	}
	return f.states.Resolve(f.fleet.Ref)
}

// fold folds up to a head, from the last line if it is still of the history.
func (f *follower) fold(head string) (*line, error) {
	commits, err := f.states.Commits("", head)
	if err != nil {
		return nil, err
	}
	if len(commits) == 0 {
		return nil, fmt.Errorf("%s has no commits", source.Short(head))
	}

	if f.fleet.Known != nil {
		f.states.History.Like(f.fleet.Known())
	}
	next := &line{repo: f.states.Repo, head: head, log: history.NewLog()}
	var before propagate.State
	folded := f.continues(commits)
	if folded > 0 {
		next.log, next.stones, before = f.line.log, f.line.stones, *f.line.state
	}

	begun := history.Begins(commits)
	unsettled := history.Unsettled(commits)
	_, err = f.states.History.Fold(before, commits[folded:], func(c *source.Commit, after propagate.State) error {
		next.log.Step(c, &before, &after)
		before = after
		folded++
		if folded > unsettled {
			next.stones = next.stones.with(folded, history.Folded{State: after, Begun: begun})
		}
		f.told(folded, len(commits))
		return nil
	})
	if err != nil {
		f.line = nil // the log has more than the state
		return nil, err
	}

	if before.Snapshot == nil {
		before.Snapshot = &fleet.Snapshot{}
	}
	next.state, next.known = &before, f.states.History.Known(before)
	next.commit, _, _ = next.log.Commit(head)
	next.branch = f.fleet.Ref
	if next.branch == "" {
		next.branch, _ = f.states.Repo.DefaultBranch() // a head without a branch has a commit all the same
	}
	next.refusal, err = report.NewRefusal(f.states, &before)
	return next, err
}

// continues counts the commits that the last line has folded already; 0 if it is not of
// this history.
func (f *follower) continues(commits []*source.Commit) int {
	if f.line == nil {
		return 0
	}
	known := f.line.log.Commits()
	if len(known) > len(commits) {
		return 0
	}
	for i, c := range known {
		if commits[i].Hash != c.Hash {
			return 0
		}
	}
	if earlier, err := f.states.History.SkipsEarlier(commits[len(known):]); earlier || err != nil {
		return 0
	}
	return len(known)
}

// inMemory returns the state at a commit if the line has it.
func (l *line) inMemory(commit string) (history.Folded, bool) {
	if l == nil {
		return history.Folded{}, false
	}
	if commit == l.head {
		return history.Folded{State: *l.state, Begun: true}, true
	}
	return l.stones.at(commit)
}

// followEvery is how often the follower looks whether the branch has moved.
const followEvery = 2 * time.Second

// Run follows the branch until ctx is done. Then it ends the streams of events.
func (s *Server) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { s.hub.Run(ctx) })
	if s.options.Fleet.Ask != nil {
		beside.Go(func() { s.ask(ctx) })
	}
	defer beside.Wait()
	f := &follower{fleet: s.options.Fleet, told: func(done, all int) { s.progress.Store(&progress{done, all}) }}
	var fetched time.Time
	failed := ""
	for {
		if fetch := s.options.Fleet.Fetch; fetch != nil && s.options.Now().Sub(fetched) >= s.options.Fleet.FetchEvery {
			fetched = s.options.Now()
			s.fetch(ctx, fetch)
		}
		next, err := f.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // an interrupt ends it
		case err != nil && err.Error() != failed:
			failed = err.Error()
			s.options.Log(fmt.Sprintf("the branch cannot be followed: %v", err))
			s.trouble.Store(&failed)
		case err == nil && failed != "":
			failed = ""
			s.trouble.Store(nil)
		}
		if next != nil {
			s.moved(next)
		}
		s.publish()

		select {
		case <-ctx.Done():
			return nil
		case <-s.nudge:
		case <-s.options.Fleet.Changed:
		case <-time.After(followEvery):
		}
	}
}

// fetch fetches, and tells when it fails and when it no longer does.
func (s *Server) fetch(ctx context.Context, fetch func(context.Context) error) {
	err := fetch(ctx)
	switch was := s.unfetched.Load(); {
	case errors.Is(err, context.Canceled):
	case err == nil:
		s.unfetched.Store(nil)
	case was == nil || *was != err.Error():
		text := err.Error()
		s.unfetched.Store(&text)
		s.options.Log(fmt.Sprintf("the repository is not fetched: %v", err))
	}
}

// progress is how far the first fold is.
type progress struct{ done, all int }

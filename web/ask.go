// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/propagate"
)

// ask asks the members what they have, every FetchEvery and when the branch has moved,
// until ctx is done.
func (s *Server) ask(ctx context.Context) {
	var asked *status.Fleet
	failed := ""
	for ctx.Err() == nil {
		if l := s.line.Load(); l != nil {
			m, err := s.askOnce(ctx, &asked, l)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if text := err.Error(); text != failed {
					failed = text
					s.unasked.Store(&text)
					s.options.Log("the clusters are not asked: " + text)
				}
			default:
				failed = ""
				s.unasked.Store(nil)
				s.seen.Store(m)
				s.look()
			}
		}
		s.rest(ctx)
	}
}

// rest waits until it is time to ask again.
func (s *Server) rest(ctx context.Context) {
	timer := time.NewTimer(s.options.Fleet.FetchEvery)
	defer timer.Stop()
	if s.line.Load() == nil {
		timer.Reset(100 * time.Millisecond) // the first fold
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.askNow:
	}
}

// look has the follower look whether anything is new.
func (s *Server) look() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// askOnce asks the members once.
func (s *Server) askOnce(ctx context.Context, asked **status.Fleet, l *line) (*Members, error) {
	f := *asked
	if f == nil {
		states, err := s.options.Fleet.Open(ctx)
		if err != nil {
			return nil, err
		}
		states.InMemory = func(commit string) (history.Folded, bool) { return s.line.Load().inMemory(commit) }
		f = status.Open(states, s.options.Fleet.Ask, s.options.Now)
		*asked = f
	}

	f.History.Stop = ctx.Err
	every := func(state *propagate.State) ([]*fleet.Cluster, error) { return status.Choose(state, nil) }
	if err := f.Fold(l.head, every); err != nil {
		return nil, err
	}
	if err := f.Inspect(ctx); err != nil {
		return nil, err
	}
	if err := f.CountBehind(); err != nil {
		return nil, err
	}

	m := &Members{Head: l.head, At: s.options.Now(), Cells: f.Cells, Silent: map[string]string{}}
	for name, err := range f.Silent {
		m.Silent[name] = status.Cause(err)
	}
	return m, nil
}

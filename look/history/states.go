// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// States folds the states of a fleet at any of its revisions.
type States struct {
	Repo    *source.Repo
	History *History
	Since   string // the commit at which the fold begins; "" is the usual one
	Cache   *Cache // nil without one
	// InMemory has states of this history that a process holds anyway; nil without any.
	InMemory func(commit string) (Folded, bool)

	last  *Folded          // that At returned
	known *propagate.State // see Know
}

// Know has At return a state that was folded elsewhere instead of folding it again.
func (l *States) Know(s propagate.State) { l.known = &s }

// Resolve returns the commit of a revision; "" is the default branch.
func (l *States) Resolve(rev string) (string, error) {
	if rev == "" {
		branch, err := l.Repo.DefaultBranch()
		if err != nil {
			return "", err
		}
		rev = branch
	}
	return l.Repo.Resolve(rev)
}

// MarkerOf returns by what the fleet of a state knows its objects on the members.
func (l *States) MarkerOf(s *propagate.State) object.Marker {
	m := s.Marker()
	m.Has = Holds(l.Repo, s.Commit)
	return m
}

// WorthKeeping is how long a fold must take for its state to be cached. Tests set it
// to 0.
var WorthKeeping = 200 * time.Millisecond

// At folds the history up to a commit, from the nearest one in the cache.
func (l *States) At(head string) (propagate.State, error) {
	if l.known != nil && l.known.Commit == head {
		return *l.known, nil
	}
	folded, err := l.at(head, false)
	return folded.State, err
}

// at is At. With past it goes on from a state of which the past is known.
func (l *States) at(head string, past bool) (Folded, error) {
	if l.last != nil && l.last.Commit == head && (l.last.past != nil || !past) {
		return *l.last, nil // a plan after another one has the same base
	}

	from := l.kept(head, past)
	if l.Cache != nil {
		defer l.Cache.keepUnits(l.History)
	}
	if from.Commit == head {
		l.last = &from
		return from, nil
	}
	began := time.Now()

	commits, err := l.Commits(from.Commit, head)
	if err == nil && !from.Begun && from.Commit != "" && l.Since == "" && Begins(commits) {
		from = Folded{} // the fold begins after the cached state
		commits, err = l.Commits("", head)
	}
	if err != nil {
		return Folded{}, err
	}

	earlier, err := l.History.SkipsEarlier(commits)
	if earlier && from.Commit != "" {
		from = Folded{} // it was folded with what is skipped now
		commits, err = l.Commits("", head)
	}
	if err != nil {
		return Folded{}, err
	}
	if from.Commit == "" {
		from.past = NewPast()
	}

	unsettled := Unsettled(commits)
	folded, kept, before := 0, began, from.State
	from.State, err = l.History.Fold(from.State, commits, func(c *source.Commit, next propagate.State) error {
		folded++
		if from.past != nil {
			from.past.Step(c, &before, &next)
		}
		before = next
		// States on the way serve earlier revisions, such as the base of a plan.
		if now := time.Now(); now.Sub(kept) >= keepEvery && l.Cache != nil && folded > unsettled {
			l.Cache.Keep(&Folded{State: next, Begun: from.Begun || Begins(commits[:folded]), past: from.past})
			kept = now
		}
		return nil
	})
	if err != nil {
		return from, err
	}

	l.last = &Folded{State: from.State, Begun: from.Begun || Begins(commits), past: from.past}
	if l.Cache != nil && from.Commit == head && time.Since(began) >= WorthKeeping {
		l.Cache.Keep(l.last)
	}

	return *l.last, nil
}

// keepEvery is the time between two states that are cached on the way.
const keepEvery = 2 * time.Second

// kept returns the cached state nearest to head, with past one of which that is known; zero
// if there is none.
func (l *States) kept(head string, past bool) (f Folded) {
	if l.Cache == nil && l.InMemory == nil {
		return Folded{}
	}

	known := false
	commit, err := l.Repo.Nearest(head, func(commit string) bool {
		if l.InMemory != nil && !past {
			f, known = l.InMemory(commit)
		}
		return known || l.Cache != nil && l.Cache.Has(commit) && (!past || l.Cache.hasPast(commit))
	})
	if err != nil || commit == "" {
		return Folded{}
	}
	if !known {
		f, _ = l.Cache.Load(commit, l.History)
	}
	if past && f.Commit != "" {
		if f.past = l.Cache.past(f.Commit); f.past == nil {
			return Folded{} // it is damaged
		}
	}
	return f
}

// Commits lists the commits to fold up to head: those after a commit, or from the
// beginning of the fold if after is "".
func (l *States) Commits(after, head string) ([]*source.Commit, error) {
	if l.Since == "" || after != "" {
		return l.History.Commits(after, head)
	}
	first, err := l.Repo.Commit(l.Since)
	if err != nil {
		return nil, err
	}
	rest, err := l.Repo.History(l.Since, head)
	if err != nil {
		return nil, err
	}

	return slices.Insert(rest, 0, first), nil
}

// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/source"
)

// Rollout is how far a commit of the branch is.
type Rollout struct {
	Commit string
	State  forge.State
	Text   string
}

// shown is what the forge was told of the branch's commits.
type shown struct {
	Rollout
	at    time.Time
	tried time.Time // when a write has failed; zero if the last one has not
}

const (
	// rolloutEvery is how often a commit that is still pending is written at most.
	rolloutEvery = 10 * time.Second
	// writeTimeout is how long one write to the forge may take, retries included.
	writeTimeout = 30 * time.Second
)

// roll shows how far the head of the branch is: one write for each text, and none once it
// has succeeded. A commit that was pending when another one came is superseded. It returns
// when there may be more to show.
func (r *Reviewer) roll(ctx context.Context, s Settings, now Rollout) time.Duration {
	was := r.shown
	if now.Commit == "" || was.Rollout == now || was.Commit == now.Commit && was.State == forge.StateSuccess {
		return s.Interval
	}
	if wait := s.Interval - time.Since(was.tried); !was.tried.IsZero() && wait > 0 {
		return wait
	}
	if wait := rolloutEvery - time.Since(was.at); was.Commit == now.Commit && was.State == now.State && wait > 0 {
		return wait
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	repo, err := forge.OpenRepository(ctx, s.Target, s.Token)
	if err == nil && was.Commit != now.Commit && was.State == forge.StatePending {
		err = r.show(ctx, repo, Rollout{was.Commit, forge.StateSuccess, "superseded by " + source.Short(now.Commit)})
	}
	if err == nil && was.Commit == "" && now.State == forge.StatePending {
		// It may have been applied before this process began.
		var has *forge.Status
		if has, err = repo.Status(ctx, now.Commit, r.context()); has != nil && has.State == forge.StateSuccess {
			r.shown = shown{Rollout: Rollout{now.Commit, has.State, has.Description}}
			return s.Interval
		}
	}
	if err == nil {
		err = r.show(ctx, repo, now)
	}
	r.failed("rollout", err)
	if err != nil {
		r.shown.tried = time.Now()
		return s.Interval
	}
	r.shown = shown{Rollout: now, at: time.Now()}
	return s.Interval
}

func (r *Reviewer) show(ctx context.Context, repo forge.Repository, of Rollout) error {
	return forge.ShowStatus(ctx, repo, of.Commit, forge.Status{Context: r.context(), State: of.State, Description: of.Text})
}

// context is the name of the status of the branch's commits.
func (r *Reviewer) context() string { return "fairlead/" + r.opt.Fleet }

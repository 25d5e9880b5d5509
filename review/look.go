// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/source"
)

const (
	// mostPulls is how many open pull requests are planned, those that were updated last.
	mostPulls = 200
	// mostFetched is how many bytes one fetch may bring: a change of a fleet, not a fleet.
	mostFetched = 256 << 20
	// mostKept is how many bytes of pull requests are kept before it is begun anew.
	mostKept = 1 << 30
)

// apart is the time, for each pull request, between two times that all are planned because
// the branch has moved, or the clusters: a forge limits the requests of an hour. Tests
// change it.
var apart = 10 * time.Second

// key is all that a plan depends on. While it stays, nothing is done.
type key struct {
	head, base string
	runs       uint64
	refused    bool // as one of a fork
}

// look is one look at the open pull requests.
type look struct {
	Settings
	*sight
	runs  positions
	large map[string]error // why the heads with these refs were not fetched
}

// look plans what has changed since the last one. The error has all that failed; what did
// is tried again at the next look.
func (r *Reviewer) look(ctx context.Context, l *look) error {
	open, err := r.list(ctx, l)
	if err != nil {
		return err
	}
	todo := r.changed(l, open)
	if len(todo) == 0 {
		return r.tidy(len(open))
	}

	states, large, err := r.fetch(ctx, l, todo)
	if err != nil {
		return fmt.Errorf("the pull requests cannot be fetched: %w", err)
	}
	l.large = large
	var failed []error
	for _, p := range todo {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		err := r.review(ctx, l, states, p)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("pull request %d: %w", p.Number, err))
			continue
		}
		r.known[p.Number] = l.keyOf(p)
	}
	return errors.Join(append(failed, r.tidy(len(open)))...)
}

// list returns the open pull requests against the branch.
func (r *Reviewer) list(ctx context.Context, l *look) ([]forge.OpenPull, error) {
	ctx, cancel := context.WithTimeout(ctx, forge.Timeout)
	defer cancel()
	repo, err := forge.OpenRepository(ctx, l.Target, l.Token)
	if err != nil {
		return nil, err
	}
	open, more, err := repo.Pulls(ctx, r.opt.Branch, r.most)
	if err != nil {
		return nil, err
	}
	if more {
		r.once("many", Note{Text: fmt.Sprintf("more than %d pull requests are open: those that were updated last are planned", r.most)})
	}
	return open, nil
}

// changed returns the pull requests that are not as they were shown, and forgets those
// that are not open any more. Those that only the branch has left behind may have to wait.
func (r *Reviewer) changed(l *look, open []forge.OpenPull) (todo []forge.OpenPull) {
	is := map[int64]bool{}
	var behind []forge.OpenPull
	for _, p := range open {
		is[p.Number] = true
		was, now := r.known[p.Number], l.keyOf(p)
		switch {
		case was == now:
		case was.head == now.head && was.refused == now.refused:
			behind = append(behind, p)
		default:
			todo = append(todo, p)
		}
	}
	for number := range r.known {
		if !is[number] {
			delete(r.known, number)
		}
	}

	r.owed = len(behind) > 0 && time.Now().Before(r.replan)
	if r.owed || len(behind) == 0 {
		return todo
	}
	r.replan = time.Now().Add(time.Duration(len(behind)) * apart)
	return append(todo, behind...)
}

func (l *look) keyOf(p forge.OpenPull) key {
	if p.Fork && !l.Forks {
		return key{head: p.Head, refused: true}
	}
	return key{head: p.Head, base: l.state.Commit, runs: l.runs.digest}
}

// fetch returns the states to plan on, with the heads of pull requests beside them, and
// those that are too large.
func (r *Reviewer) fetch(ctx context.Context, l *look, todo []forge.OpenPull) (states *history.States, large map[string]error, err error) {
	var refs []string
	for _, p := range todo {
		if !p.Fork || l.Forks {
			refs = append(refs, p.Ref)
		}
	}
	if len(refs) == 0 {
		return nil, nil, nil
	}
	if r.pulls == nil {
		if r.pulls, err = r.opt.Loop.Repo().Beside(r.opt.Dir, r.mostBytes); err != nil {
			return nil, nil, err
		}
	}

	if large, err = r.fetchRefs(ctx, refs); err != nil {
		return nil, nil, err
	}
	if err := r.pulls.PointBranch(r.opt.Branch, l.state.Commit); err != nil {
		return nil, nil, err
	}
	states = &history.States{Repo: r.pulls, History: history.New(r.pulls, r.opt.Path)}
	states.Know(l.state)
	return states, large, nil
}

// fetchRefs fetches all at once, and one by one if that is too much.
func (r *Reviewer) fetchRefs(ctx context.Context, refs []string) (large map[string]error, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Deadline)
	defer cancel()
	if _, err = r.pulls.FetchRefs(ctx, refs...); !errors.Is(err, source.ErrTooLarge) {
		return nil, err
	}

	large = map[string]error{}
	for _, ref := range refs {
		_, err := r.pulls.FetchRefs(ctx, ref)
		switch {
		case errors.Is(err, source.ErrTooLarge):
			large[ref] = fmt.Errorf("it brings more than %d bytes", r.mostBytes)
		case err != nil:
			return nil, err
		}
	}
	return large, nil
}

// tidy removes what was fetched when no pull request is open, or when it is too much.
func (r *Reviewer) tidy(open int) error {
	if r.pulls == nil {
		return nil
	}
	size, err := r.pulls.Fetched()
	if err == nil && open > 0 && size < mostKept {
		return nil
	}
	r.pulls = nil
	return errors.Join(err, os.RemoveAll(r.opt.Dir))
}

// review plans one pull request and shows it there. That it cannot be planned is shown,
// too; an error is about us or the forge.
func (r *Reviewer) review(ctx context.Context, l *look, states *history.States, p forge.OpenPull) error {
	target := l.Target
	target.Pull, target.Head = p.Number, p.Head
	if p.Fork && !l.Forks {
		return r.refuse(ctx, target, l.Token, "not planned: it comes from a fork")
	}

	made, err := r.planOf(ctx, l, states, p)
	switch {
	case ctx.Err() != nil || errors.Is(err, errBusy) || errors.Is(err, errMoved):
		return err
	case err != nil && source.IsUnavailable(err):
		r.pulls = nil // the mirror may have been cloned again
		return err
	case err != nil:
		r.opt.Report(Note{Text: fmt.Sprintf("pull request %d cannot be planned: %s", p.Number, printable.Line(err.Error()))})
		return r.refuse(ctx, target, l.Token, "cannot be planned: "+err.Error())
	}

	done, err := forge.PostTo(ctx, target, l.Token, made, forge.Options{Scope: r.opt.Scope, Path: r.opt.Path, Timeout: forge.Timeout})
	if err != nil {
		return err
	}
	if done.Comment != "unchanged" || done.Alert {
		r.opt.Report(Note{Text: fmt.Sprintf("pull request %d: %s", p.Number, done.String())})
	}
	return nil
}

// planOf plans a pull request that was fetched.
func (r *Reviewer) planOf(ctx context.Context, l *look, states *history.States, p forge.OpenPull) (*plan.Plan, error) {
	if err := l.large[p.Ref]; err != nil {
		return nil, err
	}
	if !states.Repo.Has(p.Head) {
		return nil, errMoved
	}
	return r.plan(ctx, states, plan.Request{Base: r.opt.Branch, Head: p.Head, Reported: l.runs.reported})
}

// refuse has the status of a plan say why there is none.
func (r *Reviewer) refuse(ctx context.Context, target forge.Target, token, why string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pull, err := forge.Open(ctx, target, token)
	if err != nil {
		return err
	}
	return forge.ShowStatus(ctx, pull, target.Head, forge.Status{Context: forge.ScopedContext(r.opt.Scope), State: forge.StateFailure, Description: why})
}

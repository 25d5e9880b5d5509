// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// replayBatch is how many commits of a long history share a transaction.
const replayBatch = 64

// foldInTurn folds up to head when it is this loop's turn. If its context ends before,
// the members are still reconciled with what was folded.
func (l *Loop) foldInTurn(ctx context.Context, head string) error {
	if l.opt.Turn == nil {
		return l.timedFold(ctx, head)
	}

	done, err := l.opt.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()

	return l.timedFold(ctx, head)
}

// timedFold is fold, and takes its time.
func (l *Loop) timedFold(ctx context.Context, head string) error {
	began := l.opt.Clock.Elapsed()
	defer func() { l.folds += l.opt.Clock.Elapsed() - began }()
	return l.fold(ctx, head)
}

// fold folds up to head, and saves the state after every commit. When ctx is done it
// stops after the current commit, and the next run continues from there.
func (l *Loop) fold(ctx context.Context, head string) error {
	if l.state.Commit != "" && !l.repo.Has(l.state.Commit) {
		return l.rewritten(head)
	}
	commits, err := l.history.Commits(l.state.Commit, head)
	if errors.Is(err, source.ErrNotAncestor) {
		return l.rewritten(head)
	}
	if err != nil {
		return err
	}

	earlier, err := l.history.SkipsEarlier(commits)
	if err != nil {
		return err
	}
	if earlier {
		return l.skips(head)
	}

	left, unsettled, ends := len(commits), history.Unsettled(commits), l.logEnds(commits)
	_, err = l.history.Fold(l.state, commits, func(c *source.Commit, next propagate.State) error {
		l.opt.At("folded")
		l.state = next
		left--
		if end := ends(&next); end != nil {
			return cmp.Or(l.save(), end)
		}
		if len(commits)-left <= unsettled {
			return nil // if the process ends here, all of it is folded again
		}
		if left > 0 && ctx.Err() != nil {
			ended := fmt.Errorf("%d of %s are not folded yet, the next run goes on after %s: %w", left, plural(len(commits), "commit"), source.Short(c.Hash), ctx.Err())
			if next.Accepted == "" {
				ended = fmt.Errorf("%w; none was accepted so far, and %s", ended, history.HowToBegin)
			}
			return errors.Join(ended, l.save())
		}
		if left > 0 && left%replayBatch != 0 && len(commits) > replayBatch {
			return nil
		}
		return l.save()
	})
	if errors.Is(err, errLogEnds) {
		head, commits, err = l.state.Commit, commits[:len(commits)-left], nil
	}
	if err != nil {
		return err
	}

	l.accepted()
	if r := l.state.Refusal; r != nil && r.Commit == head && len(commits) == 1 {
		return nil // that it is refused is told
	}
	l.info("folded %s to %s %q: %s, %s", plural(len(commits), "commit"), source.Short(head), subject(commits),
		plural(l.state.Bindings.Len(), "binding"), plural(l.state.Works, "work"))

	return nil
}

func subject(commits []*source.Commit) string {
	if len(commits) == 0 {
		return ""
	}
	return commits[len(commits)-1].Subject
}

func (l *Loop) save() error {
	if l.opt.DryRun {
		return nil // a commit of a dry run may still be taken back
	}
	if err := l.checkpoint.Save(l.origin, l.state); err != nil {
		return err
	}
	l.opt.At("saved")
	return nil
}

// skips goes to the fold of a branch on which a commit that was folded already is
// skipped (fold rule 3). As for a rewritten branch that is one step, and if it awaits
// confirmation it is tried again with the next commit.
func (l *Loop) skips(head string) error {
	if l.skipping == head {
		return nil
	}

	commits, err := l.history.Commits("", head)
	if err != nil {
		return err
	}
	line, err := l.foldAgain(commits)
	if err != nil {
		return err
	}

	var all []source.Trailer
	for _, c := range commits {
		all = append(all, c.Trailers...)
	}

	folded := l.state.Commit
	l.skipping, l.state = head, propagate.Rewrite(l.state, line, propagate.Commit{Hash: line.Commit, Trailers: history.Convert(all)})
	if r := l.state.Refusal; r != nil && r.Guard != nil && line.Refusal == nil {
		l.state.Commit = folded
	}
	l.info("folded the branch to %s again, without a commit that it skips", source.Short(head))
	return l.save()
}

// rewritten refuses a branch that does not continue the folded history, unless a
// commit on it allows the rewrite (fold rule 5).
func (l *Loop) rewritten(head string) error {
	commits, err := l.history.Commits("", head)
	if err != nil {
		return err
	}

	var all []source.Trailer
	for _, c := range commits {
		all = append(all, c.Trailers...)
	}

	allowed := slices.Contains(all, source.Trailer{Key: propagate.TrailerAllowRewrite, Value: l.state.Commit})
	if !allowed && l.opt.Shares != nil {
		// The commit that it names was folded by another replica, which was further.
		allowed = newLine(l.repo, head).Replaces(l.state.Commit)
	}
	if !allowed {
		return l.rewriteRefused(head, l.state.Commit)
	}
	line, err := l.foldAgain(commits)
	if err != nil {
		return err
	}

	next := propagate.Rewrite(l.state, line, propagate.Commit{Hash: line.Commit, Trailers: history.Convert(all)})
	if l.gone != nil && next.Refusal != nil && next.Refusal.Guard != nil {
		// There is no state to go on from while it awaits confirmation.
		return fmt.Errorf("commit %s %w", source.Short(head), next.Refusal.Problems[0])
	}

	l.state, l.gone = next, nil
	l.info("folded the rewritten branch to %s", source.Short(head))
	return l.save()
}

// rewriteRefused is why a branch is not followed that does not hold a commit.
func (l *Loop) rewriteRefused(head, missing string) error {
	return fmt.Errorf("branch %s was rewritten: its history up to %s does not hold %s, the last commit that was folded; the fleet stays as it is. If that is meant, add to a commit message on the branch: %s: %s",
		l.opt.Ref, source.Short(head), source.Short(missing), propagate.TrailerAllowRewrite, missing)
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Request asks what a change does.
type Request struct {
	Base string // the revision to compare with; "" is the default branch
	Head string // the revision with the change
	// Each folds every commit of the change on its own, as after a rebase.
	Each bool
	// Noise has the paths listed that tell a reviewer nothing.
	Noise bool
	Now   time.Time // it decides which holds have expired
}

// Make folds the history of the base, and the change on top of it.
func Make(states *history.States, q Request) (*Plan, error) {
	base, err := states.Resolve(q.Base)
	if err != nil {
		return nil, err
	}
	head, err := states.Repo.Resolve(q.Head)
	if err != nil {
		return nil, err
	}
	from, err := states.Repo.MergeBase(base, head)
	if err != nil {
		return nil, err
	}
	before, err := states.At(from)
	if err != nil {
		return nil, err
	}
	after, guard, err := states.Preview(before, from, head, q.Each)
	if err != nil {
		return nil, err
	}

	causes, err := states.History.Causes(&before)
	if err != nil {
		return nil, err
	}

	compared := propagate.Compare(&before, &after, guard)
	found, err := q.findings(states, from, head, &before, &after)
	if err != nil {
		return nil, err
	}
	compared.Findings = append(compared.Findings, found...)
	if from != base {
		compared.Findings = append(compared.Findings, fleet.Finding{
			Code: fleet.FindingBaseMoved, Severity: fleet.SeverityCaution,
			Message: q.baseName() + " has moved on since the change branched off: planned from " + source.Short(from) + "; merge or rebase to plan on " + source.Short(base),
		})
	}

	r := New(compared, Ends{Base: from, Head: head, Before: &before, After: &after, Causes: causes, Noise: q.Noise})
	return r, r.releases(states, &before, compared.Cells, q.Now)
}

// findings are what the fold does not find: it knows no date, no message, and no
// other way in which the change could land.
func (q Request) findings(states *history.States, from, head string, before, after *propagate.State) ([]fleet.Finding, error) {
	commits, err := states.Repo.Ahead(from, head)
	if err != nil {
		return nil, err
	}

	found := report.HoldFindings(before, after, q.Now)
	found = append(found, TrailerFindings(commits)...)
	if len(commits) > 1 && !q.Each {
		each, _, err := states.Preview(*before, from, head, true)
		if err != nil && !errors.Is(err, source.ErrNotAncestor) {
			return nil, err
		}
		if err == nil {
			found = append(found, SplitFindings(after, &each)...)
		}
	}

	stuck, err := report.BaseFindings(states, before)
	return append(found, stuck...), err
}

func (q Request) baseName() string {
	if q.Base == "" {
		return "the default branch"
	}
	return q.Base
}

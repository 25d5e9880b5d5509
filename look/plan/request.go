// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Request asks what a change does.
type Request struct {
	Base string // the revision to compare with; "" is the default branch
	Head string // the revision with the change
	// NoMerge plans the change on the commit at which it left the base, wherever that is
	// now.
	NoMerge bool
	// Each folds every commit of the change on its own, as after a rebase.
	Each bool
	// Noise has the paths listed that tell a reviewer nothing.
	Noise bool
	// Reported is what clusters say they run; without it, they run what was released.
	Reported *Reported
	Now      time.Time // it decides which holds have expired
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
	merge, err := q.merge(states, base, head)
	if err != nil {
		return nil, err
	}
	before, err := states.At(merge.Base)
	if err != nil {
		return nil, err
	}

	l := &landing{states: states, merge: merge, folded: &before, before: &before, after: &before, request: q}
	l.base.Ref, l.head.Ref = refOf(states.Repo, q.Base, base), refOf(states.Repo, q.Head, head)
	l.base.Commit, l.head.Commit = merge.Base, head
	compared, err := l.compare()
	if err != nil {
		return nil, err
	}
	found, err := l.findings()
	if err != nil {
		return nil, err
	}
	compared.Findings = append(compared.Findings, found...)

	r := New(compared, Ends{Base: merge.Base, Head: head, Before: l.before, After: l.after, Causes: l.causes, Noise: q.Noise})
	r.Base, r.Head, r.Merge, r.differ = l.base, l.head, l.result(), l.differ.clusters
	if q.Reported != nil {
		r.Positions = Positions{PositionsReported, q.Reported.head}
	}
	return r, r.AddReleases(states, l.before, compared.Cells, q.Now)
}

func (q Request) merge(states *history.States, base, head string) (*history.Merge, error) {
	if q.NoMerge {
		return states.Fork(base, head)
	}
	return states.Merge(base, head)
}

// landing is a change on its way into a plan.
type landing struct {
	states     *history.States
	request    Request
	merge      *history.Merge
	base, head Revision
	// folded is the state at the base, before has what clusters run, and after what they
	// should.
	folded, before, after *propagate.State
	causes                map[object.ID][]fleet.Origin
	unplanned             []fleet.Finding // why there is no state after
	differ                differences     // between folded and before
}

// compare compares the states before and after.
func (l *landing) compare() (*propagate.Plan, error) {
	preview := l.states.Preview
	switch {
	case l.request.Each:
		preview = l.states.PreviewEach
	case len(l.merge.Conflicts) > 0:
		l.unplanned = l.conflicts(l.merge.Conflicts, "")
		return &propagate.Plan{Incomplete: true}, nil
	}

	after, guard, err := preview(*l.folded, l.merge)
	var conflict *history.ConflictError
	switch {
	case errors.As(err, &conflict):
		l.unplanned = l.conflicts(conflict.Conflicts, ", in commit "+source.Short(conflict.Commit.Hash))
		return &propagate.Plan{Incomplete: true}, nil
	case err != nil:
		return nil, err
	}
	l.after = &after
	if !l.request.Each { // the last of many commits is not what made the difference
		if l.causes, err = l.states.History.Causes(l.folded); err != nil {
			return nil, err
		}
	}
	if q := l.request; q.Reported != nil {
		before, differ, err := q.Reported.moved(l.states, *l.folded)
		if err != nil {
			return nil, err
		}
		l.before, l.differ = &before, differ
	}
	return propagate.Compare(l.before, l.after, guard), nil
}

// findings are what the fold does not find: it knows no date, no message, and no
// other way in which the change could land.
func (l *landing) findings() ([]fleet.Finding, error) {
	found := l.unplanned
	if found == nil {
		found = report.HoldFindings(l.before, l.after, l.request.Now)
	}
	found = append(found, TrailerFindings(l.merge.Commits)...)
	split, err := l.split()
	if err != nil {
		return nil, err
	}

	stuck, err := report.BaseFindings(l.states, l.folded)
	found = slices.Concat(found, split, stuck, l.differ.findings)
	if l.merge.Moved != "" {
		found = append(found, l.moved())
	}
	return found, err
}

// split compares the change as one step with its commits one by one, on the same base.
// If they cannot land so, nobody knows what they would do.
func (l *landing) split() ([]fleet.Finding, error) {
	if len(l.merge.Commits) < 2 || l.request.Each || l.unplanned != nil {
		return nil, nil
	}

	each, _, err := l.states.PreviewEach(*l.folded, l.merge)
	var conflict *history.ConflictError
	switch {
	case errors.As(err, &conflict):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return SplitFindings(l.after, &each), nil
}

// moved says that the plan does not stand on the tip of the base.
func (l *landing) moved() fleet.Finding {
	name, on, tip := l.base.name(), source.Short(l.merge.Base), source.Short(l.merge.Moved)
	f := fleet.Finding{Code: fleet.FindingBaseMoved, Severity: fleet.SeverityCaution,
		Message: fmt.Sprintf("%s has moved on since the change branched off: planned from %s; without --no-merge it is planned on %s", name, on, tip)}
	if l.merge.Test {
		f.Message = fmt.Sprintf("%s has moved on to %s since the merge %s was made: the merge is stale, and planned on %s, as it was made", name, tip, source.Short(l.head.Commit), on)
	}
	return f
}

// conflicts returns an error for each file that cannot be merged.
func (l *landing) conflicts(all []source.Conflict, where string) (found []fleet.Finding) {
	for _, c := range all {
		found = append(found, fleet.Finding{Code: fleet.FindingMergeConflict, Severity: fleet.SeverityError, Origin: fleet.Origin{File: c.Path},
			Message: fmt.Sprintf("%s: %s on %s, and %s by the change%s: files are merged whole, so merge or rebase the change, or plan the merge that the forge has made", c.Path, c.Ours, l.base.name(), c.Theirs, where)})
	}
	return found
}

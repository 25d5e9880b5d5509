// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// Step folds one commit. Its stages, in their order:
//
//	validate → freeze → reindex → mark → decide → reclaim → guard
//
// The stage decide goes through the templates that are marked (bind.go). For
// each of them it makes a binding, whose stages are in decision.go:
//
//	claim → activate → immediate → pending → interpret → evict → schedule → require → work
//
// A commit that could not be read, rendered or validated, or that awaits
// confirmation, contributes nothing but the reason (fold rule 3): everything else in
// the state stays, and the next commit is compared with the same snapshot.
func Step(prev State, c Commit) State {
	prev = prev.begin(c)
	next, guard := advance(prev, c)
	if guard != nil {
		return prev.refuse(c, guard, guard.problems())
	}
	return next
}

// Preview is Step without the guard's veto: the state as if the commit were
// confirmed, and the guard that asks for that.
func Preview(prev State, c Commit) (State, *Guard) { return advance(prev.begin(c), c) }

// advance goes through the stages of a step. A commit on which one of them fails
// is refused.
func advance(prev State, c Commit) (next State, guard *Guard) {
	defer recovered(func() { next, guard = prev.refuse(c, nil, []fleet.Problem{defect}), nil })

	// A commit that is not valid must change nothing, so this comes first.
	if problems, valid := c.validate(&prev); !valid {
		return prev.refuse(c, nil, problems), nil
	}

	st := newStep(&prev, c)
	st.next.Commit, st.next.Accepted, st.next.Refusal = c.Hash, c.Hash, nil
	st.next.Time = prev.later(c)
	st.next.Recent = lastHour(prev.Recent, st.next.Time)
	st.next.Snapshot = c.Snapshot
	st.next.remember(&prev)
	if c.Snapshot == prev.Snapshot {
		return st.next, nil
	}

	// What becomes active names the commit that holds it, which for the content
	// of a frozen unit is an earlier one.
	st.freeze()

	// The marks look templates up in the index of the new snapshot.
	st.reindex()

	// Which replica had a cluster before is for those that share the fleet.
	st.move(c.Hash)

	// Only what is marked is decided, so that the cost follows the change.
	st.mark()

	// The bindings are decided with the index of the new snapshot, of which they
	// become a part.
	st.decide()
	if problem := st.tooMuch(); problem != nil {
		return prev.refuse(c, nil, []fleet.Problem{*problem}), nil
	}

	// A cluster that returns keeps what is wanted there, which is decided now.
	st.reclaim()

	// Users of a generated object are looked for once it is known where it goes.
	st.removals.outlive(prev.snapshot(), c.Snapshot)

	// The guard counts deletions, and all of them are known only at the end.
	return st.next, st.guard(c)
}

// validate reports whether the commit's tree could be read and rendered and its
// documents are valid, which render checks; and whether it holds clusters that
// exist, which depends on what was held before (decision 36). At the beginning of
// the fold nothing was, and that is a caution.
func (c Commit) validate(prev *State) (problems []fleet.Problem, valid bool) {
	if c.Snapshot == nil {
		return c.Problems, false
	}
	if prev.Snapshot == nil {
		return nil, true
	}
	problems = c.Snapshot.UnknownHolds(prev.Snapshot)
	return problems, len(problems) == 0
}

// refuse is the state after a commit that contributes nothing.
func (s State) refuse(c Commit, g *Guard, problems []fleet.Problem) State {
	s.Commit, s.Time = c.Hash, s.later(c)
	s.Recent = lastHour(s.Recent, s.Time)
	s.Refusal = &Refusal{Commit: c.Hash, Problems: few(problems), Guard: g}
	return s
}

// maxProblems is how many problems of a commit a state keeps.
const maxProblems = 101

// few are the first of many problems, and how many there are more.
func few(problems []fleet.Problem) []fleet.Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	more := fleet.Problem{Message: fmt.Sprintf("and %d more problems", len(problems)-maxProblems+1)}
	return append(slices.Clone(problems[:maxProblems-1]), more)
}

// step is one Step while it is made. It goes through the templates and writes
// the next state; a decision makes the binding of one template.
type step struct {
	prev *State
	next State
	in   *inputs // of every decision, with prev and next among them

	dirty    map[string]bool // templates to decide about, by ID.Key()
	kept     map[string]bool // what owners that are removed leave running, by ID.Key()
	removals *removals
	clusters clusterDiff
	cycle    *cycle // the one that is being decided, or nil
}

func newStep(prev *State, c Commit) *step {
	st := &step{prev: prev, next: *prev, dirty: map[string]bool{}, kept: map[string]bool{}}
	st.in = newInputs(prev, &st.next, c.Hash)
	st.removals = &removals{prev: prev, next: &st.next, commit: c.Hash, users: map[string]map[object.ID]bool{}}
	return st
}

// reindex brings the index forward to the snapshot of this step.
func (st *step) reindex() {
	before, after := st.prev.snapshot(), st.next.snapshot()
	st.next.index.documents(before, after)

	st.clusters = diffClusters(before, after)
	st.in.changed = st.clusters.changed
	if len(st.clusters.changed) > 0 || st.clusters.room || before.Gate(fleet.GateFailover) != after.Gate(fleet.GateFailover) {
		st.next.index.clusters = st.next.candidates()
	}
}

// reclaim settles what the clusters run that came back into the fleet.
func (st *step) reclaim() { st.removals.reclaim(st.clusters.returned) }

// guard stops the finished step if it deletes too much; nil if it does not.
func (st *step) guard(c Commit) (g *Guard) {
	g, st.next.Recent = newGuard(st.prev, &st.next, c, st.removals.deletions)
	return g
}

// snapshot is that of the accepted commit, which is empty before the first.
func (s *State) snapshot() *fleet.Snapshot {
	if s.Snapshot == nil {
		return fleet.EmptySnapshot
	}
	return s.Snapshot
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"reflect"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// A commit on which the fold panics is refused with a fixed text, whichever way it is
// read, and the next one is folded on the state before it (decision 43).
func TestPanicRefusesTheCommit(t *testing.T) {
	// Nothing in git leads to such a snapshot; it stands for what nobody knows yet.
	broken := &fleet.Snapshot{Policies: ordered.Map[*fleet.Policy]{}.With("x", nil)}
	before := Step(State{}, Commit{Hash: "a", Snapshot: &fleet.Snapshot{}})
	poison := Commit{Hash: "b", Snapshot: broken}

	after := Step(before, poison)
	want := before.refuse(poison, nil, []fleet.Problem{defect})
	if !reflect.DeepEqual(after, want) || after.Accepted != "a" || after.Commit != "b" {
		t.Errorf("Step: %+v", after.Refusal)
	}
	if preview, guard := Preview(before, poison); !reflect.DeepEqual(preview, want) || guard != nil {
		t.Errorf("Preview: %+v, %v", preview.Refusal, guard)
	}
	if next := Step(after, Commit{Hash: "c", Snapshot: &fleet.Snapshot{}}); next.Refusal != nil || next.Accepted != "c" {
		t.Errorf("the next commit: %+v", next.Refusal)
	}

	head := before
	head.Snapshot = broken
	plan := Compare(&before, &head, nil)
	if !plan.Incomplete || len(plan.Findings) != 1 || plan.Findings[0].Message != defect.Message {
		t.Errorf("Compare: %+v", plan)
	}

	// The state of before stays, with the reason, if a rewritten branch cannot be compared.
	line := before
	line.Bindings = line.Bindings.With("x", nil)
	if rewritten := Rewrite(line, before, Commit{Hash: "d"}); rewritten.Refusal == nil || rewritten.Refusal.Problems[0] != defect {
		t.Errorf("Rewrite: %+v", rewritten.Refusal)
	}
}

// An observation on which the fold panics changes nothing.
func TestPanicOfAnObservation(t *testing.T) {
	s := State{Snapshot: &fleet.Snapshot{}, Evictions: 1}
	s.Bindings = s.Bindings.With("x", nil)
	if next := Observe(s, Observations{At: 1}); !reflect.DeepEqual(next, s) {
		t.Errorf("got %+v", next)
	}
}

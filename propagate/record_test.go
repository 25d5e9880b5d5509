// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fairlead/fairlead/propagate"
)

// A state that was saved and restored after each commit of each story is the
// state, and goes on like it.
func TestRestoredStateGoesOnAlike(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s, restored propagate.State
			snapshots := map[string]*propagate.Snapshot{}
			for _, c := range history(ar) {
				snapshots[c.Hash] = c.Snapshot
				s, restored = propagate.Step(s, c.Commit), propagate.Step(restored, c.Commit)
				if got, want := print(&restored, nil), print(&s, nil); got != want {
					t.Fatalf("%s\n--- restored\n%s--- kept\n%s", c.Hash, got, want)
				}
				restored = restore(t, &restored, snapshots)
			}
		})
	}
}

// fataler is a testing.T or a rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func restore(t fataler, s *propagate.State, snapshots map[string]*propagate.Snapshot) propagate.State {
	t.Helper()
	saved := &propagate.Saved{Commit: s.Commit, Accepted: s.Accepted, Refusal: s.Refusal, Seen: s.Seen,
		Bindings: map[propagate.ID]propagate.BindingRecord{},
		Departed: map[propagate.ID]propagate.AbsenceRecord{},
		Left:     map[propagate.ID]propagate.AbsenceRecord{},
	}
	for b := range s.Bindings.Values() {
		raw, err := json.Marshal(b.Record())
		if err != nil {
			t.Fatal(err)
		}
		var r propagate.BindingRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		saved.Bindings[b.ID] = r
	}
	for a := range s.Departed.Values() {
		saved.Departed[a.ID] = a.Record()
	}
	for a := range s.Left.Values() {
		saved.Left[a.ID] = a.Record()
	}
	have := map[string]*propagate.Snapshot{saved.Accepted: snapshots[saved.Accepted]}
	if s.Snapshot != nil {
		for _, commit := range saved.Needs(s.Snapshot) {
			have[commit] = snapshots[commit]
		}
	}
	back, err := saved.Restore(have)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

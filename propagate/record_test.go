// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fairlead/fairlead/compact"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
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
			snapshots := map[string]*fleet.Snapshot{}
			for _, c := range history(ar) {
				if c.seen != nil {
					return // seen to where observations are told
				}
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

// restore saves a state and makes it again, as it is kept on disk.
func restore(t fataler, s *propagate.State, snapshots map[string]*fleet.Snapshot) propagate.State {
	t.Helper()
	return load(t, save(t, s), s, snapshots)
}

func save(t fataler, s *propagate.State) *propagate.Saved {
	t.Helper()
	saved := s.Save()
	for id, r := range saved.Bindings {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back propagate.BindingRecord
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		saved.Bindings[id] = back
	}

	w := &compact.Writer{}
	if err := saved.Write(w); err != nil {
		t.Fatal(err)
	}
	r, err := compact.NewReader("saved", w.Bytes("saved"))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := propagate.ReadSaved(r)
	if err != nil || r.Done() != nil {
		t.Fatal(err, r.Done())
	}
	if got, want := savedJSON(t, packed), savedJSON(t, saved); got != want {
		t.Fatal("packed it is\n" + got + "\nwant\n" + want)
	}
	return packed
}

func savedJSON(t fataler, saved *propagate.Saved) string {
	t.Helper()
	raw, err := json.Marshal(struct {
		*propagate.Saved
		Bindings, Tombstones, Detached map[string]any
	}{saved, keyed(saved.Bindings), keyed(saved.Tombstones), keyed(saved.Detached)})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func keyed[V any](records map[object.ID]V) map[string]any {
	all := map[string]any{}
	for id, r := range records {
		all[id.Key()] = r
	}
	return all
}

func load(t fataler, saved *propagate.Saved, s *propagate.State, snapshots map[string]*fleet.Snapshot) propagate.State {
	t.Helper()
	have := map[string]*fleet.Snapshot{saved.Accepted: snapshots[saved.Accepted]}
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

// What held works run can be made again from their commits, manifest and all.
func TestRevealedStateShowsWhatHeldWorksRun(t *testing.T) {
	held := 0
	everyStory(t, func(t *testing.T, s *propagate.State, snapshots map[string]*fleet.Snapshot) {
		saved := save(t, s)
		saved.Rehydrated = true
		revealed := load(t, saved, s, snapshots)
		for b := range s.Bindings.Values() {
			for i := range b.Works {
				was, is := &b.Works[i], &revealed.Bindings.At(b.Key()).Works[i]
				if was.Released == nil {
					continue
				}
				held++
				want, got := s.Manifest(b.ID, was.Released), revealed.Manifest(b.ID, is.Released)
				if !reflect.DeepEqual(want, got) {
					t.Errorf("%s on %s\n%v\n%v", b.ID, was.Cluster, got, want)
				}
			}
		}
	})
	if held == 0 {
		t.Error("no story holds anything")
	}
}

// A state whose digests another engine made becomes the state again, and goes
// on like it: what was pending is, and nothing counts as updated (fold rule 7).
func TestRenewedStateGoesOnAlike(t *testing.T) {
	everyStory(t, func(t *testing.T, s *propagate.State, snapshots map[string]*fleet.Snapshot) {
		saved := save(t, s)
		saved.Redigested = true
		for id, r := range saved.Bindings {
			for _, d := range []*object.Digest{&r.Template, &r.Delayed, &r.Placed} {
				if *d != (object.Digest{}) {
					d[0] ^= 0xff
				}
			}
			for i := range r.Contents {
				r.Contents[i].Digest[0] ^= 0xff
			}
			saved.Bindings[id] = r
		}
		renewed := load(t, saved, s, snapshots)
		if got, want := print(&renewed, nil), print(s, nil); got != want {
			t.Errorf("--- renewed\n%s--- kept\n%s", got, want)
		}
		next := propagate.Commit{Hash: "next", Snapshot: s.Snapshot}
		if s.Snapshot != nil {
			again := *s.Snapshot // a commit that changes nothing, and is looked at all the same
			next.Snapshot = &again
		}
		a, b := propagate.Step(renewed, next), propagate.Step(*s, next)
		if got, want := print(&a, nil), print(&b, nil); got != want {
			t.Errorf("one commit later\n--- renewed\n%s--- kept\n%s", got, want)
		}
	})
}

// A checkpoint of rules that did not know a kind has no share of its replicas. What
// runs stays as it is, rule 7, and the next change divides it.
func TestKindThatWasNotKnown(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/third_party_kinds.txtar")
	if err != nil {
		t.Fatal(err)
	}
	commits := history(ar)
	s := propagate.Step(propagate.State{}, commits[0].Commit)

	saved := save(t, &s)
	saved.Redigested = true
	for id, r := range saved.Bindings {
		if id.Kind != "CloneSet" {
			continue
		}
		for i := range r.Targets {
			r.Targets[i].Count = 0
		}
		for i := range r.Contents {
			r.Contents[i].Replicas = 0
		}
	}
	restored := load(t, saved, &s, map[string]*fleet.Snapshot{commits[0].Hash: commits[0].Snapshot})

	replicas := func(s *propagate.State) (all []any) {
		for b := range s.Bindings.Values() {
			for i := range b.Works {
				if b.Kind == "CloneSet" {
					all = append(all, s.Manifest(b.ID, b.Works[i].Want)["spec"].(map[string]any)["replicas"])
				}
			}
		}
		return all
	}
	if got := replicas(&restored); !reflect.DeepEqual(got, []any{int64(4), int64(4)}) {
		t.Errorf("restored, it has %v replicas", got)
	}
	next := propagate.Step(restored, commits[1].Commit)
	if got := replicas(&next); !reflect.DeepEqual(got, []any{int64(3), int64(3)}) {
		t.Errorf("changed, it has %v replicas", got)
	}
}

// A checkpoint of rules that sent what nobody sets stays as it is, too: a share that a
// division gave is not taken away because of an upgrade.
func TestReplicasThatWereSent(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/replicas_that_nobody_sets.txtar")
	if err != nil {
		t.Fatal(err)
	}

	commits := history(ar)
	first, second := commits[0], commits[1] // duplicated, divided
	s := propagate.Step(propagate.State{}, first.Commit)
	snapshots := map[string]*fleet.Snapshot{first.Hash: first.Snapshot}
	for _, want := range []string{first.Hash, second.Hash} {
		if want == second.Hash {
			s = propagate.Step(s, second.Commit)
			snapshots[second.Hash] = second.Snapshot
		}

		saved := save(t, &s)
		saved.Redigested = true
		for _, r := range saved.Bindings {
			for i := range r.Contents {
				r.Contents[i].Bare = false // as a record without the field is read
			}
		}
		restored := load(t, saved, &s, snapshots)
		for b := range restored.Bindings.Values() {
			for i := range b.Works {
				spec := restored.Manifest(b.ID, b.Works[i].Want)["spec"].(map[string]any)
				if field := map[string]string{"Deployment": "replicas", "Job": "parallelism"}[b.Kind]; spec[field] != int64(1) {
					t.Errorf("at %s %s has %s %v", want, b.ID, field, spec[field])
				}
			}
		}
	}
}

// everyStory calls f with every state of every story.
func everyStory(t *testing.T, f func(*testing.T, *propagate.State, map[string]*fleet.Snapshot)) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s propagate.State
			snapshots := map[string]*fleet.Snapshot{}
			for _, c := range history(ar) {
				if c.seen != nil {
					s = propagate.Observe(s, *c.seen)
				} else {
					snapshots[c.Hash] = c.Snapshot
					s = propagate.Step(s, c.Commit)
				}
				f(t, &s, snapshots)
			}
		})
	}
}

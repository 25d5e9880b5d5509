// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// What stands at a commit is what a walk up to there says, wherever the cache has it go on
// from: at that commit, at the one before, from a state without its past, or from nothing.
func TestStanding(t *testing.T) {
	keepEverything(t)
	g := logLine(t)
	repo, _, commits := opened(t, g)
	dir := t.TempDir()
	states := func(cached bool) *history.States {
		s := &history.States{Repo: repo, History: history.New(repo, ".")}
		if cached {
			s.Cache = history.NewCache(dir, ".", "", nil)
		}
		return s
	}

	waited := 0
	for i, c := range commits {
		for _, id := range logObjects {
			asked, err := object.ParseReference([]string{object.Argument(id)}, "")
			if err != nil {
				t.Fatal(err)
			}
			want, wantState, err := states(false).Follow(c.Hash, asked)
			if err != nil {
				t.Fatal(err)
			}

			for _, from := range []string{"nothing kept", "the commit before", "this commit"} {
				got, state, err := states(from != "nothing kept").Standing(c.Hash, asked)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got.Edited, want.Edited) || !reflect.DeepEqual(got.Kinds, want.Kinds) || state.Commit != wantState.Commit {
					t.Errorf("commit %d from %s: edited %v, want %v", i, from, got.Edited, want.Edited)
				}
				if a, b := standing(got), standing(want); !reflect.DeepEqual(a, b) {
					t.Errorf("commit %d from %s, %s: got %v, want %v", i, from, id, a, b)
				}
				for _, hash := range got.Edited {
					if edited := got.Commit(hash); edited == nil || edited.Hash != hash || got.Err() != nil {
						t.Errorf("commit %s is %v: %v", hash, edited, got.Err())
					}
				}
			}
			if i > 0 && len(want.Kinds) == 0 {
				t.Error("no kind is defined, so nothing is said of them")
			}
			if o := want.Objects[id]; o != nil {
				waited += len(o.Waiting) + len(o.Held)
			}
		}
	}
	if waited == 0 {
		t.Error("nothing ever waits, so this says little")
	}

	// What an earlier version has kept is the state alone.
	kept, err := filepath.Glob(filepath.Join(dir, "*", "*.past"))
	if err != nil || len(kept) != len(commits) {
		t.Fatalf("%d are kept of %d: %v", len(kept), len(commits), err)
	}
	damage := []func(file string) error{os.Remove, func(file string) error { return os.WriteFile(file, []byte("fairlead"), 0o600) }}
	for i, file := range kept {
		if err := damage[i%len(damage)](file); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := object.ParseReference([]string{object.Argument(logObjects[0])}, "")
	if err != nil {
		t.Fatal(err)
	}
	held := commits[5].Hash
	want, _, err := states(false).Follow(held, asked)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := states(true).Standing(held, asked)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := standing(got), standing(want); !reflect.DeepEqual(a, b) || len(got.Objects[logObjects[0]].Waiting) == 0 {
		t.Errorf("without what was kept: got %v, want %v", a, b)
	}
}

// keepEverything has every state kept, however soon it was folded.
func keepEverything(t *testing.T) {
	t.Helper()
	before := history.WorthKeeping
	t.Cleanup(func() { history.WorthKeeping = before })
	history.WorthKeeping = 0
}

// On random lines what waits is what a walk of everything says, at every commit.
func TestPastFollowsEverything(t *testing.T) {
	waited, released := 0, 0
	for seed := range uint64(6) {
		g := sourcetest.Txtar(t, logFleet)
		randomHolds(g, rand.New(rand.NewPCG(seed, 5)))
		repo, h, commits := opened(t, g)
		walked, past := history.NewTimeline(), history.NewPast()
		var before propagate.State
		if _, err := h.Fold(before, commits, func(c *source.Commit, after propagate.State) error {
			walked.Step(c, &before, &after)
			past.Step(c, &before, &after)
			before = after
			for id, want := range walked.Objects {
				asked, err := object.ParseReference([]string{object.Argument(id)}, id.Namespace)
				if err != nil {
					return err
				}
				got := past.Timeline(asked, repo).Objects[id]
				if got == nil || !reflect.DeepEqual(got.Waiting, want.Waiting) || !reflect.DeepEqual(got.Held, want.Held) {
					t.Fatalf("seed %d, %s at %s (%s): got %+v, want waiting %v, held %v", seed, id, c.Hash, c.Subject, got, want.Waiting, want.Held)
				}
				waited += len(want.Waiting) + len(want.Held)
			}
			for _, change := range walked.Changes {
				if change.Type == propagate.ChangeReleased || change.Type == propagate.ChangeReverted {
					released++
				}
			}
			if got := past.Timeline(object.Reference{}, repo); !reflect.DeepEqual(got.Edited, walked.Edited) {
				t.Fatalf("seed %d: edited %v, want %v", seed, got.Edited, walked.Edited)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if waited == 0 || released == 0 {
		t.Errorf("%d waited and %d were released, so this says little", waited, released)
	}
}

// randomHolds commits changes of templates, of which clusters are held, of a rule that cannot
// be applied, and of which clusters and templates there are.
func randomHolds(g *sourcetest.Repo, r *rand.Rand) {
	fleet := sourcetest.Files(logFleet)
	clusters, policy := strings.Split(fleet["clusters.yaml"], "---\n"), fleet["policy.yaml"]
	config := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop}\ndata: {a: \"%d\"}\n", name, r.IntN(3))
	}
	failing := "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: failing, namespace: shop}\nspec:\n" +
		"  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: two}]\n" +
		"  overrideRules: [{overriders: {plaintext: [{path: /data/absent, operator: remove}]}}]\n"

	for range 30 {
		files := map[string]string{}
		for range 1 + r.IntN(2) {
			switch r.IntN(7) {
			case 0, 1:
				name := []string{"one", "two"}[r.IntN(2)]
				files[name+".yaml"] = config(name)
			case 2:
				files[[]string{"one", "two"}[r.IntN(2)]+".yaml"] = sourcetest.Delete
			case 3:
				held := []string{"eu-1", "us-1", "us-2"}[r.IntN(3):]
				files["policy.yaml"] = policy + "  suspension: {dispatchingOnClusters: {clusterNames: [" + strings.Join(held, ", ") + "]}}\n"
			case 4:
				files["policy.yaml"] = policy + []string{"", "  suspension: {dispatching: true}\n"}[r.IntN(2)]
			case 5:
				files["clusters.yaml"] = strings.Join(clusters[r.IntN(2):], "---\n")
			case 6:
				files["failing.yaml"] = []string{failing, sourcetest.Delete}[r.IntN(2)]
			}
		}
		g.Commit("random", files)
	}
}

// What is explained of a state that was kept is what is explained of one that was folded from
// the beginning.
func TestStandingIsExplainedAlike(t *testing.T) {
	keepEverything(t)
	explained := 0
	for seed := range uint64(3) {
		g := sourcetest.Txtar(t, logFleet)
		randomHolds(g, rand.New(rand.NewPCG(seed, 7)))
		repo, _, commits := opened(t, g)
		dir := t.TempDir()
		states := func() *history.States {
			return &history.States{Repo: repo, History: history.New(repo, "."), Cache: history.NewCache(dir, ".", "", nil)}
		}

		for i := 2; i < len(commits); i += 4 {
			if _, err := states().At(commits[i-2].Hash); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"one", "two", "web"} {
				asked, err := object.ParseReference([]string{"cm/" + name}, "")
				if err != nil {
					t.Fatal(err)
				}
				want := whyAt(t, states().Follow, commits[i].Hash, asked)
				if got := whyAt(t, states().Standing, commits[i].Hash, asked); got != want {
					t.Errorf("seed %d, commit %d, %s: got\n%s\nwant\n%s", seed, i, name, got, want)
				}
				explained += len(want)
			}
		}
	}
	if explained == 0 {
		t.Error("nothing was explained")
	}
}

// whyAt is what is explained of an object; empty if it is not in the fleet.
func whyAt(t *testing.T, up func(string, object.Reference) (*history.Timeline, propagate.State, error), head string, asked object.Reference) string {
	t.Helper()
	line, state, err := up(head, asked)
	if err != nil {
		t.Fatal(err)
	}
	id, err := line.Found(&state)
	if err != nil || report.Present(line, &state, id, time.Time{}) != nil {
		return ""
	}
	raw, err := json.Marshal(report.NewWhy(line, &state, id, nil, time.Time{}))
	if err != nil || line.Err() != nil {
		t.Fatal(err, line.Err())
	}
	return string(raw)
}

// After the first time nothing is folded to say what stands, though the state was kept by a
// command that did not ask for it.
func TestStandingIsKept(t *testing.T) {
	keepEverything(t)
	g := logLine(t)
	repo, _, _ := opened(t, g)
	dir := t.TempDir()
	states := func(stop func() error) *history.States {
		s := &history.States{Repo: repo, History: history.New(repo, "."), Cache: history.NewCache(dir, ".", "", nil)}
		s.History.Stop = stop
		return s
	}
	at, err := states(nil).At(g.Head())
	if err != nil {
		t.Fatal(err)
	}

	_, state, err := states(func() error { t.Error("a commit is folded"); return nil }).Standing(g.Head(), object.Reference{})
	if err != nil || state.Commit != at.Commit {
		t.Errorf("at %s: %v", state.Commit, err)
	}
}

// standing is what waits for each object.
func standing(t *history.Timeline) map[object.ID][]any {
	all := map[object.ID][]any{}
	for id, o := range t.Objects {
		all[id] = []any{o.Waiting, o.Held}
	}
	return all
}

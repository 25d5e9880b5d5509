// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const (
	twoClusters = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push}\n---\napiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m2}\nspec: {syncMode: Push}\n"
	lazyPolicy  = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: default}\nspec:\n  activationPreference: Lazy\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {clusterAffinity: {clusterNames: [m1]}}\n"
	oneTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: one}\n"
)

// skipping is a history in which it matters whether the second commit is folded: it
// moves the template, which the third leaves where it is and edits back.
func skipping(t *testing.T) (g *sourcetest.Repo, bad, head string) {
	g = sourcetest.New(t)
	g.Commit("begin", map[string]string{"clusters.yaml": twoClusters, "policy.yaml": lazyPolicy, "c.yaml": oneTemplate})
	bad = g.Commit("bad", map[string]string{"policy.yaml": strings.Replace(lazyPolicy, "[m1]", "[m2]", 1), "c.yaml": strings.Replace(oneTemplate, "one", "two", 1)})
	head = g.Commit("back", map[string]string{"c.yaml": oneTemplate})
	return g, bad, head
}

func at(t *testing.T, g *sourcetest.Repo, cache *history.Cache, head string) (propagate.State, error) {
	t.Helper()
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return (&history.States{Repo: repo, History: history.New(repo, "."), Cache: cache}).At(head)
}

func target(t *testing.T, s propagate.State, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b := s.Bindings.At("default/ConfigMap./c")
	if b == nil || len(b.Targets) != 1 {
		t.Fatalf("targets: %+v", b)
	}
	return b.Targets[0].Name
}

// A commit that a later one skips counts as refused, in every fold that ends at the
// later one, whatever was folded and kept before (decision 43).
func TestSkippedCommitIsRefusedInEveryFold(t *testing.T) {
	history.WorthKeeping = 0
	g, bad, before := skipping(t)
	cache := history.NewCache(t.TempDir(), ".", "", nil)

	s, err := at(t, g, cache, before)
	if got := target(t, s, err); got != "m2" {
		t.Fatalf("without a trailer it is on %s", got)
	}

	skip := g.Commit("Skip it\n\nFairlead-Skip: "+bad, nil)
	later := g.Commit("later", map[string]string{"clusters.yaml": twoClusters + "# a comment\n"})
	fresh, err := at(t, g, nil, later)
	if got := target(t, fresh, err); got != "m1" {
		t.Errorf("folded from the beginning it is on %s", got)
	}
	for _, head := range []string{skip, later} {
		kept, err := at(t, g, cache, head)
		if got := target(t, kept, err); got != "m1" {
			t.Errorf("folded on what was kept it is on %s", got)
		}
		if want := fresh.Bindings.At("default/ConfigMap./c").Record(); head == later && !reflect.DeepEqual(kept.Bindings.At("default/ConfigMap./c").Record(), want) {
			t.Errorf("the bindings differ: %+v", want)
		}
	}

	// What ends before the trailer is what it was.
	s, err = at(t, g, cache, before)
	if got := target(t, s, err); got != "m2" {
		t.Errorf("the commit before is on %s now", got)
	}
}

// A commit that is skipped is not read, and says so.
func TestSkippedCommitIsNotRead(t *testing.T) {
	g, bad, _ := skipping(t)
	tree := g.Git("rev-parse", bad+"^{tree}")
	if err := os.Remove(filepath.Join(g.Dir, ".git/objects", tree[:2], tree[2:])); err != nil {
		t.Fatal(err)
	}
	head := g.Git("commit-tree", g.Head()+"^{tree}", "-p", g.Head(), "-m", "unrelated")
	if _, err := at(t, g, nil, head); err == nil {
		t.Fatal("a tree that is missing was read")
	}

	skip := g.Git("commit-tree", head+"^{tree}", "-p", head, "-m", "Skip it", "-m", "Fairlead-Skip: "+bad)
	s, err := at(t, g, nil, skip)
	if got := target(t, s, err); got != "m1" {
		t.Errorf("it is on %s", got)
	}

	// The reason names the commit that has it skipped.
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(repo, ".")
	commits, err := h.Commits("", skip)
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	_, err = h.Fold(propagate.State{}, commits, func(c *source.Commit, s propagate.State) error {
		if c.Hash == bad {
			told = s.Refusal.Problems[0].Message
		}
		return nil
	})
	if want := "it is skipped, and was not read: commit " + skip[:7] + " says so (Fairlead-Skip)"; err != nil || told != want {
		t.Errorf("got %q, %v, want %q", told, err, want)
	}
}

// Only a later first-parent commit skips one, by its full hash (decision 46).
func TestWhoseSkipCounts(t *testing.T) {
	for name, make := range map[string]func(g *sourcetest.Repo, bad string) string{
		"a commit that is merged": func(g *sourcetest.Repo, bad string) string {
			g.Branch("side")
			g.Commit("Skip it\n\nFairlead-Skip: "+bad, nil)
			g.Checkout("main")
			return g.Merge("side", "merge")
		},
		"a short hash": func(g *sourcetest.Repo, bad string) string { return g.Commit("Skip\n\nFairlead-Skip: "+bad[:10], nil) },
		"no trailer":   func(g *sourcetest.Repo, bad string) string { return g.Commit("Fairlead-Skip: "+bad+"\n\nSkip it", nil) },
		"another commit": func(g *sourcetest.Repo, bad string) string {
			return g.Commit("Skip\n\nFairlead-Skip: "+bad[1:]+"0", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, bad, _ := skipping(t)
			s, err := at(t, g, nil, make(g, bad))
			if got := target(t, s, err); got != "m2" {
				t.Errorf("it is on %s", got)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const everyConfigMap = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n"

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s}\n", name, value)
}

// parted is a history in which main and the branch change have both moved on, with a
// kustomization of which each has edited another file.
func parted(t *testing.T) *sourcetest.Repo {
	g := sourcetest.New(t)
	g.Commit("begin", map[string]string{
		"clusters.yaml": twoClusters, "policy.yaml": everyConfigMap, "k/kustomization.yaml": "resources: [a.yaml, b.yaml]\nnamePrefix: k-\n",
		"k/a.yaml": configMap("a", "one"), "k/b.yaml": configMap("b", "one"), "c.yaml": configMap("c", "one"), "d.yaml": configMap("d", "one"),
		"README.md": "words",
	})
	g.Branch("change")
	g.Commit("b", map[string]string{"k/b.yaml": configMap("b", "two")})
	g.Commit("c\n\nTicket: 7", map[string]string{"c.yaml": sourcetest.Delete, "e.yaml": configMap("e", "one"), "link": sourcetest.Symlink("c.yaml")})
	g.Checkout("main")
	g.Commit("a", map[string]string{"k/a.yaml": configMap("a", "two"), "f.yaml": configMap("f", "one")})
	return g
}

func statesOf(t *testing.T, g *sourcetest.Repo) *history.States {
	t.Helper()
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return &history.States{Repo: repo, History: history.New(repo, ".")}
}

// released is what a state releases to each cluster.
func released(s *propagate.State) map[string]string {
	runs := map[string]string{}
	for b := range s.Bindings.Values() {
		for _, w := range b.Works {
			if w.Released != nil {
				runs[b.Key()+"@"+w.Cluster] = w.Released.Digest.String()
			}
		}
	}
	return runs
}

func previewed(t *testing.T, l *history.States, m *history.Merge, preview func(propagate.State, *history.Merge) (propagate.State, *propagate.Guard, error)) propagate.State {
	t.Helper()
	before, err := l.At(m.Base)
	if err != nil {
		t.Fatal(err)
	}
	after, guard, err := preview(before, m)
	if err != nil || guard != nil || after.Refusal != nil {
		t.Fatalf("guard %v, refusal %+v, %v", guard, after.Refusal, err)
	}
	return after
}

// What a preview makes is what the merge makes that git commits, and one by one what
// git's rebase makes; folding on afterwards is not disturbed by it.
func TestPreviewIsTheMerge(t *testing.T) {
	g := parted(t)
	main, change := g.Head(), g.Git("rev-parse", "change")
	l := statesOf(t, g)
	m, err := l.Merge(main, change)
	if err != nil || m.Tree == nil || m.Test || m.Moved != "" || m.Base != main {
		t.Fatalf("%+v, %v", m, err)
	}
	if len(m.Commits) != 2 || !slices.Equal(m.Head.Trailers, []source.Trailer{{Key: "Ticket", Value: "7"}}) {
		t.Errorf("commits %v, trailers %v", m.Commits, m.Head.Trailers)
	}

	one, each := previewed(t, l, m, l.Preview), previewed(t, l, m, l.PreviewEach)
	merged := g.Merge("change", "merge")
	if tree := g.Git("rev-parse", "HEAD^{tree}"); m.Tree.Hash() != tree {
		t.Errorf("the tree is %s, and git's %s", m.Tree.Hash(), tree)
	}
	folded, err := l.At(merged)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := released(&one), released(&folded); !maps.Equal(got, want) || len(want) != 10 {
		t.Errorf("it makes %v, and the merge %v", got, want)
	}
	if got, want := released(&each), released(&folded); !maps.Equal(got, want) {
		t.Errorf("one by one it makes %v, and the merge %v", got, want)
	}
	if one.Commit != change || each.Commit != change {
		t.Errorf("the commit is %s, and one by one %s", one.Commit, each.Commit)
	}
}

func TestMergeThatIsOneAlready(t *testing.T) {
	g := parted(t)
	main, change, fork := g.Head(), g.Git("rev-parse", "change"), g.Git("merge-base", "main", "change")
	g.Checkout(main)
	test := g.Merge("change", "test\n\nA: b")
	g.Checkout("main")
	moved := g.Commit("main moves", nil)
	g.Checkout("change")
	back := g.Merge("main", "back")
	g.Git("checkout", "-q", "-b", "idle", fork)
	idle := g.Merge("main", "nothing of its own")
	g.Git("checkout", "-q", "-b", "landed", moved)
	landed := g.Merge("change", "landed")
	later := g.Commit("later", nil)
	g.Checkout("main")
	further := g.Commit("main moves further", nil)

	l := statesOf(t, g)
	for name, c := range map[string]struct {
		base, head string
		on, moved  string
		test       bool
		commits    int
	}{
		"a test merge":                           {main, test, main, "", true, 2},
		"a stale test merge":                     {moved, test, main, moved, true, 2},
		"a branch that has merged main":          {moved, back, moved, "", false, 3},
		"a branch that has merged an older main": {further, back, further, "", false, 3},
		"a branch without commits of its own":    {moved, idle, moved, "", false, 1},
		"what main has merged":                   {later, landed, later, "", false, 0},
		"a merge on main, of the one before":     {moved, landed, moved, "", true, 3},
		"main, of what stands behind it":         {main, moved, main, "", false, 1},
		"the base itself":                        {moved, moved, moved, "", false, 0},
		"what the base has long had":             {moved, fork, moved, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := l.Merge(c.base, c.head)
			if err != nil {
				t.Fatal(err)
			}
			if m.Base != c.on || m.Moved != c.moved || m.Test != c.test || len(m.Commits) != c.commits || m.Conflicts != nil {
				t.Errorf("on %s, moved %q, test %v, %d commits, %v", m.Base, m.Moved, m.Test, len(m.Commits), m.Conflicts)
			}
			previewed(t, l, m, l.Preview)
			previewed(t, l, m, l.PreviewEach)
		})
	}

	own, err := l.Fork(moved, change)
	if err != nil || own.Base != fork || own.Moved != moved || own.Tree != nil || len(own.Commits) != 2 {
		t.Errorf("on its own base: %+v, %v", own, err)
	}
	if m, err := l.Merge(main, test); err != nil || len(m.Head.Trailers) != 2 {
		t.Errorf("trailers of a test merge: %v, %v", m.Head.Trailers, err)
	}
}

// A commit that takes back what an earlier one did can land with the others, and not on
// its own, where main has done the same.
func TestCommitThatCannotLandAlone(t *testing.T) {
	g := parted(t)
	g.Checkout("change")
	g.Commit("d", map[string]string{"d.yaml": configMap("d", "two")})
	alone := g.Head()
	change := g.Commit("not d", map[string]string{"d.yaml": configMap("d", "one")})
	g.Checkout("main")
	main := g.Commit("d, too", map[string]string{"d.yaml": configMap("d", "three")})

	l := statesOf(t, g)
	m, err := l.Merge(main, change)
	if err != nil || m.Conflicts != nil {
		t.Fatalf("%v, %v", m.Conflicts, err)
	}
	previewed(t, l, m, l.Preview)
	before, err := l.At(main)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = l.PreviewEach(before, m)
	var conflict *history.ConflictError
	if !errors.As(err, &conflict) || conflict.Commit.Hash != alone || !strings.Contains(err.Error(), "d.yaml") {
		t.Errorf("one by one: %v", err)
	}
}

// What cannot be merged for what is in the trees is a fact about the change, which is
// refused as a broken commit is.
func TestMergeOfABrokenTree(t *testing.T) {
	g := parted(t)
	blob := g.Git("rev-parse", "change:e.yaml")
	root := directory(g, "100644 blob "+blob+"\ta\\b\n")
	broken := g.Git("commit-tree", root, "-p", "change", "-m", "broken")
	l := statesOf(t, g)
	m, err := l.Merge(g.Head(), broken)
	if err != nil {
		t.Fatal(err)
	}
	before, err := l.At(m.Base)
	if err != nil {
		t.Fatal(err)
	}
	for _, preview := range []func(propagate.State, *history.Merge) (propagate.State, *propagate.Guard, error){l.Preview, l.PreviewEach} {
		after, _, err := preview(before, m)
		if err != nil || after.Refusal == nil || !strings.Contains(fmt.Sprint(after.Refusal.Problems), "invalid path") {
			t.Errorf("refused for %+v, %v", after.Refusal, err)
		}
	}
}

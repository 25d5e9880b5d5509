// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// sidesOf makes a repository in which main and the branch change have parted.
func sidesOf(t testing.TB, base, ours, theirs map[string]string) *sourcetest.Repo {
	t.Helper()
	g := sourcetest.New(t)
	g.Commit("base", base)
	g.Git("tag", "base")
	g.Branch("change")
	g.Commit("theirs", theirs)
	g.Checkout("main")
	g.Commit("ours", ours)
	return g
}

func mergeOf(t *testing.T, g *sourcetest.Repo) *source.Merged {
	t.Helper()
	m, err := source.Merge(treeOf(t, g, "base", ""), treeOf(t, g, "main", ""), treeOf(t, g, "change", ""))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// filesOf reads a tree as git would list it.
func filesOf(t testing.TB, tree *source.Tree) map[string]string {
	t.Helper()
	paths, err := source.Changed(nil, tree)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		b, err := tree.ReadFile(path)
		if files[path] = string(b); err != nil && !errors.Is(err, source.ErrSymlink) && !errors.Is(err, source.ErrSubmodule) {
			t.Fatal(err)
		}
	}
	return files
}

func TestMerge(t *testing.T) {
	const gone = sourcetest.Delete
	type files = map[string]string
	for name, test := range map[string]struct {
		base, ours, theirs files
		want               string // the files of the merge, or the conflicts
	}{
		"nothing":                        {files{"a": "1"}, files{}, files{}, "a=1"},
		"one side each":                  {files{"a": "1", "b": "1", "d/c": "1"}, files{"a": "2"}, files{"d/c": "2"}, "a=2 b=1 d/c=2"},
		"the same edit twice":            {files{"a": "1"}, files{"a": "2"}, files{"a": "2"}, "a=2"},
		"the same file added twice":      {files{"a": "1"}, files{"b": "1"}, files{"b": "1"}, "a=1 b=1"},
		"both removed it":                {files{"a": "1", "b": "1"}, files{"a": gone}, files{"a": gone}, "b=1"},
		"a new directory on each side":   {files{"a": "1"}, files{"d/x": "1"}, files{"d/y": "2"}, "a=1 d/x=1 d/y=2"},
		"a directory is emptied":         {files{"a": "1", "d/x": "1", "d/y": "1"}, files{"d/x": gone}, files{"d/y": gone}, "a=1"},
		"everything is removed":          {files{"a": "1", "b": "1"}, files{"a": gone}, files{"b": gone}, ""},
		"a rename beside an edit":        {files{"a": "1", "b": "1"}, files{"b": "2"}, files{"a": gone, "c": "1"}, "b=2 c=1"},
		"names that sort by their slash": {files{"a.b": "1", "a/x": "1"}, files{"a/x": "2"}, files{"a0": "1"}, "a.b=1 a/x=2 a0=1"},
		"a file becomes a directory":     {files{"a": "1", "b": "1"}, files{"b": "2"}, files{"a": gone, "a/x": "1"}, "a/x=1 b=2"},
		"a directory becomes a file":     {files{"d/x": "1", "d/y": "1"}, files{"d/x": gone}, files{"d": "1"}, "d=1"},
		"a symlink beside an edit":       {files{"a": "1"}, files{"a": "2"}, files{"l": sourcetest.Symlink("a")}, "a=2 l="},

		"edited differently":                  {files{"a": "1", "b": "1"}, files{"a": "2", "b": "2"}, files{"a": "3"}, "a: edited, edited"},
		"added differently":                   {files{"a": "1"}, files{"d/x": "1"}, files{"d/x": "2"}, "d/x: added, added"},
		"removed and edited":                  {files{"a": "1", "d/x": "1"}, files{"d/x": gone}, files{"d/x": "2"}, "d/x: removed, edited"},
		"edited and removed":                  {files{"a": "1"}, files{"a": "2"}, files{"a": gone}, "a: edited, removed"},
		"edited and moved away":               {files{"a": "1"}, files{"a": "2"}, files{"a": gone, "b": "1"}, "a: edited, removed"},
		"a whole directory removed, one file": {files{"d/x": "1", "d/y": "1", "a": "1"}, files{"d/x": gone, "d/y": gone}, files{"d/y": "2"}, "d/y: removed, edited"},
		"a file against a directory":          {files{"b": "1"}, files{"a": "1"}, files{"a/x": "1"}, "a: added, added"},
		"edited and made a directory":         {files{"a": "1"}, files{"a": "2"}, files{"a": gone, "a/x": "1"}, "a: edited, replaced"},
		"a directory edited and made a file":  {files{"d/x": "1"}, files{"d/x": "2"}, files{"d": "1"}, "d: edited, replaced"},
		"a file and a symlink":                {files{"a": "1"}, files{"a": "2"}, files{"a": sourcetest.Symlink("b")}, "a: edited, replaced"},
		"two conflicts":                       {files{"b": "1", "a": "1"}, files{"a": "2", "b": "2"}, files{"a": "3", "b": gone}, "a: edited, edited; b: edited, removed"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mergeOf(t, sidesOf(t, test.base, test.ours, test.theirs))
			if got := mergedText(t, m); got != test.want {
				t.Errorf("the merge is %q, want %q", got, test.want)
			}
		})
	}
}

func mergedText(t testing.TB, m *source.Merged) string {
	var lines []string
	for _, c := range m.Conflicts {
		lines = append(lines, fmt.Sprintf("%s: %s, %s", c.Path, c.Ours, c.Theirs))
	}
	if m.Tree == nil {
		return strings.Join(lines, "; ")
	}
	files := filesOf(t, m.Tree)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, path+"="+files[path])
	}
	return strings.Join(lines, " ")
}

func TestMergeKeepsModes(t *testing.T) {
	g := sidesOf(t, map[string]string{"run": "1", "a": "1"}, map[string]string{"run": "2"}, map[string]string{"b": "1"})
	g.Checkout("change")
	g.Git("update-index", "--chmod=+x", "run")
	g.Git("update-index", "--add", "--cacheinfo", "160000,"+g.Head()+",sub")
	g.Git("commit", "-q", "-m", "modes")
	m := mergeOf(t, g)
	if m.Tree == nil {
		t.Fatalf("conflicts: %v", m.Conflicts)
	}

	tree := g.Git("merge-tree", "--write-tree", "main", "change")
	if m.Tree.Hash() != tree {
		t.Errorf("the tree is %s, and git's %s:\n%s", m.Tree.Hash(), tree, g.Git("ls-tree", "-r", tree))
	}
	if _, err := m.Tree.ReadFile("sub"); !errors.Is(err, source.ErrSubmodule) {
		t.Errorf("the submodule: %v", err)
	}
}

// A merge on top of a merge is what a rebase does, one commit after another.
func TestMergeOnAMerge(t *testing.T) {
	g := sidesOf(t, map[string]string{"a": "1", "b": "1", "c": "1"}, map[string]string{"a": "2"}, map[string]string{"b": "2"})
	first := mergeOf(t, g)
	g.Checkout("change")
	g.Commit("again", map[string]string{"d/c": "2"})
	second, err := source.Merge(treeOf(t, g, "change~1", ""), first.Tree, treeOf(t, g, "change", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mergedText(t, second), "a=2 b=2 c=1 d/c=2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if changed, err := source.Changed(treeOf(t, g, "main", ""), second.Tree); err != nil || !slices.Equal(changed, []string{"b", "d/c"}) {
		t.Errorf("on main it changes %q, %v", changed, err)
	}
}

func TestMergeOfNothing(t *testing.T) {
	g := sidesOf(t, map[string]string{"a": "1"}, map[string]string{"b": "1"}, map[string]string{"c": "1"})
	main := treeOf(t, g, "main", "")
	m, err := source.Merge(nil, nil, main)
	if err != nil || m.Tree.Hash() != main.Hash() {
		t.Errorf("of one tree: %v, %v", m, err)
	}
	m, err = source.Merge(nil, nil, nil)
	if err != nil || mergedText(t, m) != "" {
		t.Errorf("of no tree: %v, %v", m, err)
	}
	m, err = source.Merge(main, nil, treeOf(t, g, "change", ""))
	if err != nil || mergedText(t, m) != "c=1" {
		t.Errorf("of a side that is gone: %v, %v", m, err)
	}
}

// What git makes of two sides is what Merge makes, to the hash; and where git finds a
// conflict, so does Merge. No two paths have the same content, so that there are no
// renames, and each is one line, so that two edits of a file are a conflict.
func TestMergeIsGits(t *testing.T) {
	paths := []string{"a", "b", "a.b", "d", "d/x", "d/y", "d/e/x", "d/e", "f/x", "f/a/x"}
	edits := rapid.MapOfN(rapid.SampledFrom(paths), rapid.SampledFrom([]string{"1", "2", sourcetest.Delete}), 1, 6)
	g := sourcetest.New(t)
	n, clean, conflicts := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		var trees [3]*source.Tree
		var in strings.Builder
		for _, side := range []string{"base", "ours", "theirs"} {
			fastImport(&in, side, edits.Draw(rt, side))
		}
		g.GitIn(g.Dir, in.String(), "fast-import", "--quiet", "--force")
		for i, side := range []string{"base", "ours", "theirs"} {
			trees[i] = treeOf(t, g, side, "")
		}

		m, err := source.Merge(trees[0], trees[1], trees[2])
		if err != nil {
			rt.Fatal(err)
		}
		// It prints the tree, and more if there is a conflict.
		tree, conflict, _ := strings.Cut(g.Git(
			"-c", `alias.try=!f() { git merge-tree --write-tree "$@" || echo; }; f`, "try", "ours", "theirs"), "\n")
		switch {
		case conflict == "" && m.Tree == nil:
			rt.Fatalf("git merges it to %s, and Merge finds %v", tree, m.Conflicts)
		case conflict != "" && m.Tree != nil:
			rt.Fatalf("git finds a conflict, and Merge makes %v:\n%s", filesOf(t, m.Tree), conflict)
		case conflict == "" && m.Tree.Hash() != tree:
			rt.Fatalf("the tree is %s, and git's %s:\n%v", m.Tree.Hash(), tree, filesOf(t, m.Tree))
		case conflict == "":
			clean++
		default:
			conflicts++
		}
	})
	if clean < n/5 || conflicts < n/10 {
		t.Errorf("%d clean and %d conflicting of %d: too few to tell", clean, conflicts, n)
	}
}

// fastImport writes a branch of one commit, on top of that of base for the others, with
// a file of its own.
func fastImport(in *strings.Builder, side string, files map[string]string) {
	fmt.Fprintf(in, "reset refs/heads/%s\n\ncommit refs/heads/%s\ncommitter c <c@example.com> 0 +0000\ndata 1\nc\n", side, side)
	if side != "base" {
		fmt.Fprintf(in, "from refs/heads/base\n")
	}
	fmt.Fprintf(in, "M 100644 inline own/%s\ndata 1\n1\n", side)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if content := path + files[path]; files[path] == sourcetest.Delete {
			fmt.Fprintf(in, "D %s\n", path)
		} else {
			fmt.Fprintf(in, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
		}
	}
	fmt.Fprintln(in)
}

// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

func treeOf(t *testing.T, g *sourcetest.Repo, rev, path string) *source.Tree {
	t.Helper()
	tree, err := tryTree(t, g, rev, path)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func tryTree(t *testing.T, g *sourcetest.Repo, rev, path string) (*source.Tree, error) {
	t.Helper()
	r := open(t, g.Dir)
	hash, err := r.Resolve(rev)
	if err != nil {
		t.Fatal(err)
	}

	c, err := r.Commit(hash)
	if err != nil {
		t.Fatal(err)
	}

	return c.Tree(path)
}

func TestTreeIsAFileSystem(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a.yaml": "a", "dir/b.yaml": "b", "dir/sub/c.yaml": "c", "dir.txt": "d"})

	if err := fstest.TestFS(treeOf(t, g, "HEAD", ""), "a.yaml", "dir/b.yaml", "dir/sub/c.yaml", "dir.txt"); err != nil {
		t.Error(err)
	}

	sub := treeOf(t, g, "HEAD", "dir/sub/")
	if b, err := sub.ReadFile("c.yaml"); err != nil || string(b) != "c" {
		t.Errorf("c.yaml is %q, %v", b, err)
	}
	if h, ok := sub.BlobHash("c.yaml"); !ok || h != g.Git("rev-parse", "HEAD:dir/sub/c.yaml") {
		t.Errorf("hash of c.yaml is %s, %v", h, ok)
	}
	if _, ok := sub.BlobHash("d.yaml"); ok {
		t.Error("d.yaml has a hash")
	}
	if sub.Hash() != g.Git("rev-parse", "HEAD:dir/sub") {
		t.Errorf("hash of dir/sub is %s", sub.Hash())
	}

	for _, path := range []string{"nope", "dir/b.yaml", "dir/nope/sub", ".."} {
		if _, err := tryTree(t, g, "HEAD", path); !errors.Is(err, source.ErrNoPath) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestT02SymlinkIsNotFollowed(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{
		"out":  sourcetest.Symlink("../../../etc/passwd"),
		"abs":  sourcetest.Symlink("/etc/passwd"),
		"loop": sourcetest.Symlink("loop"),
		"dir":  sourcetest.Symlink("real"), "real/a.yaml": "a",
	})

	tree := treeOf(t, g, "HEAD", "")
	for _, name := range []string{"out", "abs", "loop", "dir"} {
		if _, err := tree.ReadFile(name); !errors.Is(err, source.ErrSymlink) || !strings.Contains(err.Error(), "symlink: not followed") {
			t.Errorf("%s: got %v", name, err)
		}
		if i, err := tree.Stat(name); err != nil || i.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s: %v, %v", name, i, err)
		}
	}

	if _, err := tree.ReadFile("dir/a.yaml"); !errors.Is(err, source.ErrSymlink) {
		t.Errorf("through a symlink: %v", err)
	}
	if _, err := tryTree(t, g, "HEAD", "dir"); !errors.Is(err, source.ErrNoPath) {
		t.Errorf("path is a symlink: %v", err)
	}
}

func TestT12SubmoduleIsOpaque(t *testing.T) {
	g := sourcetest.New(t)
	head := g.Commit("one", map[string]string{"a.yaml": "a"})
	g.Git("update-index", "--add", "--cacheinfo", "160000,"+head+",lib")
	g.Git("commit", "-q", "-m", "two")
	tree := treeOf(t, g, "HEAD", "")
	if i, err := tree.Stat("lib"); err != nil || i.Mode().Type() != fs.ModeIrregular {
		t.Errorf("%v, %v", i, err)
	}

	for _, name := range []string{"lib", "lib/base"} {
		if _, err := tree.ReadFile(name); !errors.Is(err, source.ErrSubmodule) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	if b, err := tree.ReadFile("a.yaml"); err != nil || string(b) != "a" {
		t.Errorf("a.yaml beside it is %q, %v", b, err)
	}
}

// rawTree writes a tree object that git itself would refuse.
func rawTree(t *testing.T, g *sourcetest.Repo, mode, name, hash string) string {
	t.Helper()
	b, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	return g.GitIn(g.Dir, mode+" "+name+"\x00"+string(b), "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
}

func TestT01InvalidPaths(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "a"})
	blob := g.Git("rev-parse", "HEAD:a")
	for _, name := range []string{
		"..", ".", ".git", ".GIT", ".git ", ".git.", "git~1", "GIT~1", ".g\u200cit", ".git::$INDEX_ALLOCATION",
		"a/b", `a\..\b`, "a\nb", "a\x7fb", "\xff", strings.Repeat("n", 4096),
	} {
		bad := rawTree(t, g, "100644", name, blob)
		root := rawTree(t, g, "40000", "fleet", bad)
		commit := g.Git("commit-tree", "-m", "bad", root)
		tree := treeOf(t, g, commit, "")
		_, err := tree.ReadDir("fleet")
		if want := fmt.Sprintf("invalid path %q in tree %s", name, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", name, err)
		}
		if _, err := source.Changed(nil, tree); err == nil {
			t.Errorf("%q: Changed takes it", name)
		}
	}
}

func TestT15LargeFile(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"big.yaml": strings.Repeat("x", source.MaxFile+1), "fits.yaml": strings.Repeat("x", source.MaxFile)})

	for _, packed := range []bool{false, true} {
		if packed {
			g.Git("gc", "-q")
		}

		tree := treeOf(t, g, "HEAD", "")
		if _, err := tree.ReadFile("big.yaml"); !errors.Is(err, source.ErrTooLarge) {
			t.Errorf("packed %v: got %v", packed, err)
		}
		if b, err := tree.ReadFile("fits.yaml"); err != nil || len(b) != source.MaxFile {
			t.Errorf("packed %v: %d bytes, %v", packed, len(b), err)
		}
	}
}

func TestT15DeepDirectories(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "a"})
	tree := rawTree(t, g, "100644", "a", g.Git("rev-parse", "HEAD:a"))
	for range 400 {
		tree = rawTree(t, g, "40000", "d", tree)
	}

	commit := g.Git("commit-tree", "-m", "deep", tree)
	if _, err := source.Changed(nil, treeOf(t, g, commit, "")); err == nil || !strings.Contains(err.Error(), "directories deep") {
		t.Errorf("got %v", err)
	}
}

func TestChanged(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{
		"same/a": "1", "edited/a": "1", "edited/b": "1", "gone/a": "1", "gone/deep/b": "1", "becomes-dir": "1", "becomes-file/x": "1", "link": "1",
	})

	g.Commit("two", map[string]string{
		"edited/a": "2", "gone": sourcetest.Delete, "new/a": "1", "becomes-dir/y": "1", "becomes-file": "1", "link": sourcetest.Symlink("same"),
	})

	one, two := treeOf(t, g, "HEAD~1", ""), treeOf(t, g, "HEAD", "")
	check := func(a, b *source.Tree, want ...string) {
		t.Helper()
		got, err := source.Changed(a, b)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}

	all := []string{"becomes-dir", "becomes-dir/y", "becomes-file", "becomes-file/x", "edited/a", "gone/a", "gone/deep/b", "link", "new/a"}
	check(one, two, all...)
	check(two, one, all...)
	check(one, one)
	check(nil, treeOf(t, g, "HEAD~1", "gone"), "a", "deep/b")
	check(treeOf(t, g, "HEAD~1", "gone"), nil, "a", "deep/b")
}

func TestCommitHeadersAreStrict(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "a"})
	tree := g.Git("rev-parse", "HEAD^{tree}")
	who := " Ada <ada@example.com> 1767225600 +0000\n"
	for name, raw := range map[string]string{
		"two trees":    "tree " + tree + "\ntree " + tree + "\nauthor" + who + "committer" + who + "\nm\n",
		"tree at last": "author" + who + "committer" + who + "tree " + tree + "\n\nm\n",
		"no tree":      "author" + who + "committer" + who + "\nm\n",
		"late parent":  "tree " + tree + "\nauthor" + who + "parent " + tree + "\ncommitter" + who + "\nm\n",
	} {
		hash := g.GitIn(g.Dir, raw, "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
		if _, err := open(t, g.Dir).Commit(hash); err == nil || !strings.Contains(err.Error(), "header") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

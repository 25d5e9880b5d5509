// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

func open(t *testing.T, path string) *source.Repo {
	t.Helper()
	r, err := source.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOpenFindsEveryKindOfRepository(t *testing.T) {
	g := sourcetest.New(t)
	want := g.Commit("one", map[string]string{"a.yaml": "a"})
	linked := filepath.Join(t.TempDir(), "linked")
	g.Git("worktree", "add", "-q", "-b", "side", linked)
	shared := filepath.Join(t.TempDir(), "shared")
	g.Git("clone", "-q", "--shared", ".", shared)
	packed := g.Bare()
	g.GitIn(packed, "", "gc", "-q")
	t.Chdir(linked)
	beside, err := filepath.Rel(linked, g.Dir)
	if err != nil {
		t.Fatal(err)
	}

	for name, path := range map[string]string{
		"work tree": g.Dir, "git directory": filepath.Join(g.Dir, ".git"),
		"linked work tree": linked, "alternates": shared, "bare and packed": packed,
		"here": ".", "beside": beside,
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, path)
			got, err := r.Resolve("HEAD")
			if err != nil || got != want {
				t.Fatalf("HEAD is %s, %v; want %s", got, err, want)
			}

			c, err := r.Commit(got)
			if err != nil {
				t.Fatal(err)
			}

			tree, err := c.Tree("")
			if err != nil {
				t.Fatal(err)
			}
			if b, err := tree.ReadFile("a.yaml"); err != nil || string(b) != "a" {
				t.Errorf("a.yaml is %q, %v", b, err)
			}
			if branch, err := r.DefaultBranch(); err != nil || !strings.HasSuffix(branch, "main") {
				t.Errorf("default branch is %q, %v", branch, err)
			}
		})
	}
}

func TestOpenRefusesWhatItWouldMisread(t *testing.T) {
	empty := t.TempDir()
	sha256 := filepath.Join(t.TempDir(), "sha256")
	g := sourcetest.New(t)
	g.Git("init", "-q", "--object-format=sha256", sha256)

	for path, want := range map[string]string{
		empty:  "not a git repository",
		sha256: "object format sha256 is not supported",
	} {
		if _, err := source.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A CI job for a pull request has a detached HEAD and only remote branches.
func TestWhatToNameInstead(t *testing.T) {
	g := sourcetest.New(t)
	one := g.Commit("one", map[string]string{"apps/web/a": "1"})
	g.Git("checkout", "-q", "--detach")
	g.Git("branch", "-q", "-D", "main")
	r := open(t, g.Dir)
	if _, err := r.DefaultBranch(); err == nil || !strings.HasSuffix(err.Error(), "specify one with --ref") {
		t.Errorf("got %v", err)
	}

	g.Git("update-ref", "refs/remotes/origin/main", one)
	if _, err := r.DefaultBranch(); err == nil || !strings.HasSuffix(err.Error(), "specify one with --ref, such as origin/main") {
		t.Errorf("got %v", err)
	}
	if _, err := r.Resolve("main"); err == nil || !strings.HasSuffix(err.Error(), "; did you mean origin/main?") || !errors.Is(err, source.ErrUnknownRevision) {
		t.Errorf("got %v", err)
	}

	_, err := source.Open(filepath.Join(g.Dir, "apps", "web"))
	if want := "not the root of a git repository; use -C " + g.Dir + ", and --path apps/web "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestResolve(t *testing.T) {
	g := sourcetest.New(t)
	one := g.Commit("one", map[string]string{"a": "1"})
	two := g.Commit("two", map[string]string{"a": "2"})
	g.Branch("side")
	side := g.Commit("side", map[string]string{"b": "1"})
	g.Checkout("main")
	three := g.Merge("side", "three")
	g.Git("tag", "-a", "-m", "release", "v1", one)
	g.Git("tag", "light", two)
	g.Git("tag", "both", one)
	g.Git("branch", "both", two)
	g.Git("update-ref", "refs/remotes/origin/prod", two)
	blob := g.Git("rev-parse", "HEAD:a")
	r := open(t, g.Dir)

	for rev, want := range map[string]string{
		"main": three, "HEAD": three, "@": three, "HEAD~1": two, "HEAD~2": one, "HEAD^2": side, "HEAD^2~1": two,
		"HEAD^^": one, "side": side, "v1": one, "light": two, "origin/prod": two, "refs/heads/both": two,
		three: three, two[:7]: two, two[:12] + "~1": one, "v1^0": one,
	} {
		if got, err := r.Resolve(rev); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", rev, got, err, want)
		}
	}

	for rev, reason := range map[string]string{
		"nope": "no such branch", "HEAD~9": "no parent", "both": "it is both a branch and a tag", "": "only names",
		strings.Repeat("0", 40): "no such commit", "HEAD@{1}": "only names", "--all": "only names",
		"refs/heads/../../config": "no such ref", blob: "not a commit", "a b": "only names",
	} {
		_, err := r.Resolve(rev)
		if !errors.Is(err, source.ErrUnknownRevision) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %v, want %q", rev, err, reason)
		}
	}
}

func TestT11DefaultBranch(t *testing.T) {
	g := sourcetest.New(t)
	if _, err := open(t, g.Dir).DefaultBranch(); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("unborn: %v", err)
	}

	one := g.Commit("one", nil)
	g.Git("branch", "-m", "trunk")
	want := func(want string) {
		t.Helper()
		if got, err := open(t, g.Dir).DefaultBranch(); err != nil || got != want {
			t.Errorf("default branch is %q, %v; want %q", got, err, want)
		}
	}

	want("trunk")
	g.Git("branch", "master")
	want("master")
	g.Git("branch", "main")
	want("main")
	g.Git("update-ref", "refs/remotes/origin/prod", one)
	g.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/prod")
	want("origin/prod")
}

// A repository stays readable while others push to it and repack it.
func TestPushAndRepackAreSeen(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "1"})
	bare := g.Bare()
	r := open(t, bare)
	content := func() string {
		t.Helper()
		head, err := r.Resolve("main")
		if err != nil {
			t.Fatal(err)
		}

		c, err := r.Commit(head)
		if err != nil {
			t.Fatal(err)
		}

		tree, err := c.Tree("")
		if err != nil {
			t.Fatal(err)
		}

		b, err := tree.ReadFile("a")
		if err != nil {
			t.Fatal(err)
		}

		return string(b)
	}

	for _, step := range []string{"1", "2", "3", "4"} {
		if step != "1" {
			g.Commit(step, map[string]string{"a": step})
			g.Git("push", "-q", bare, "main")
		}

		if got := content(); got != step {
			t.Fatalf("a is %q, want %q", got, step)
		}

		g.GitIn(bare, "", "gc", "-q", "--prune=now")
		if got := content(); got != step {
			t.Fatalf("after gc: a is %q, want %q", got, step)
		}
	}

	// Packs that disappear while a tree is being read.
	head, _ := r.Resolve("main")
	c, _ := r.Commit(head)
	tree, err := c.Tree("")
	if err != nil {
		t.Fatal(err)
	}

	g.GitIn(bare, "", "repack", "-q", "-a", "-d", "-f", "--depth=1")
	if b, err := tree.ReadFile("a"); err != nil || string(b) != "4" {
		t.Errorf("a is %q, %v", b, err)
	}
}

func TestMissingObjectIsAnError(t *testing.T) {
	g := sourcetest.New(t)
	head := g.Commit("one", map[string]string{"a": "1"})
	blob := g.Git("rev-parse", "HEAD:a")
	if err := os.Remove(filepath.Join(g.Dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}

	c, err := open(t, g.Dir).Commit(head)
	if err != nil {
		t.Fatal(err)
	}

	tree, err := c.Tree("")
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Err(); err != nil {
		t.Errorf("before anything was read: %v", err)
	}
	if _, err := tree.ReadFile("a"); err == nil || !strings.Contains(err.Error(), blob+" is missing") {
		t.Errorf("got %v", err)
	}
	if err := tree.Err(); err == nil || !strings.Contains(err.Error(), blob+" is missing") {
		t.Errorf("the tree says %v", err)
	}
}

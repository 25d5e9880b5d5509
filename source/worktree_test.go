// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

var when = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))

func editOf(files map[string]string) source.Edit {
	e := source.Edit{Message: "fleet: an edit\n\nReason: a test\n", Author: "Ann", Mail: "ann@example.com", When: when, Files: map[string][]byte{}}
	for name, content := range files {
		e.Files[name] = []byte(content)
	}
	return e
}

// git sees a commit, a clean work tree, an index whose trees match the commit,
// and everything else that it keeps in the index.
func TestCommitInAWorkTree(t *testing.T) {
	for _, layout := range []string{"index.version=2", "index.version=3", "index.version=4", "index.skipHash=true", "core.untrackedCache=true"} {
		t.Run(layout, func(t *testing.T) {
			g := sourcetest.New(t)
			key, value, _ := strings.Cut(layout, "=")
			g.Git("config", key, value)
			g.Commit("one", map[string]string{
				"policies/web.yaml": "a: 1\n", "policies/webs.yaml": "b: 1\n", "policies/" + strings.Repeat("long/", 20) + "name.yaml": "x\n", "z": "z\n", "other": "o\n",
			})

			if err := os.Chmod(filepath.Join(g.Dir, "policies/web.yaml"), 0o755); err != nil {
				t.Fatal(err)
			}

			g.Commit("executable", nil)
			if layout == "index.version=3" {
				// Version 3 is written because of flags like this one.
				if err := os.WriteFile(filepath.Join(g.Dir, "announced"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				g.Git("add", "-N", "announced")
			}

			g.Git("update-index", "--assume-unchanged", "z")
			g.Git("status")
			before := g.Git("status", "--porcelain", "--untracked-files=no")

			w := open(t, g.Dir).WorkTree()
			if w == nil || w.Branch() != "main" {
				t.Fatalf("work tree %+v", w)
			}

			hash, err := w.Commit(editOf(map[string]string{"policies/web.yaml": "a: 2\n"}))
			if err != nil {
				t.Fatal(err)
			}
			if g.Head() != hash {
				t.Errorf("HEAD is %s, want %s", g.Head(), hash)
			}

			for _, clean := range [][]string{{"diff-files", "--quiet", "policies"}, {"diff-index", "--cached", "--quiet", "HEAD", "policies"}, {"fsck", "--strict"}} {
				g.Git(clean...)
			}

			if after := g.Git("status", "--porcelain", "--untracked-files=no"); after != before {
				t.Errorf("status is %q, was %q", after, before)
			}

			if layout != "index.version=3" {
				if staged, committed := g.Git("write-tree"), g.Git("rev-parse", "HEAD^{tree}"); staged != committed {
					t.Errorf("the index is tree %s, HEAD is %s", staged, committed)
				}
			}

			if got := g.Git("ls-files", "-v", "z"); got != "h z" {
				t.Errorf("a mark of a file is lost: %s", got)
			}
			if got := g.Git("log", "-1", "--format=%an <%ae> %aI %s"); got != "Ann <ann@example.com> 2026-01-02T03:04:05+01:00 fleet: an edit" {
				t.Errorf("commit is %s", got)
			}
			if got := g.Git("ls-tree", "HEAD", "policies/web.yaml"); !strings.HasPrefix(got, "100755") {
				t.Errorf("mode is %s", got)
			}
			if info, err := os.Stat(filepath.Join(g.Dir, "policies/web.yaml")); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("mode is %v, %v", info.Mode(), err)
			}
			if got := g.Git("reflog", "-1", "--format=%gs"); got != "commit: fleet: an edit" {
				t.Errorf("reflog is %q", got)
			}
			if got := g.Git("rev-parse", "HEAD@{1}", "main@{1}"); got != g.Git("rev-parse", "HEAD~1", "HEAD~1") {
				t.Errorf("reflog was at %s", got)
			}
		})
	}
}

// Other uncommitted changes stay; a conflicting one is an error and nothing
// changes.
func TestCommitBesideOtherChanges(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"web.yaml": "a: 1\n", "other": "1\n", "third": "1\n"})
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(g.Dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	write("other", "2\n")
	g.Git("add", "other")
	// The third file changes in the moment in which git writes its index, so that
	// only its content shows it.
	g.Git("config", "core.trustctime", "false")
	info, err := os.Stat(filepath.Join(g.Dir, "third"))
	if err != nil {
		t.Fatal(err)
	}

	write("third", "2\n")
	for _, name := range []string{"third", ".git/index"} {
		if err := os.Chtimes(filepath.Join(g.Dir, name), info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}

	write("fourth", "2\n")
	w := open(t, g.Dir).WorkTree()
	if _, err := w.Commit(editOf(map[string]string{"web.yaml": "a: 2\n"})); err != nil {
		t.Fatal(err)
	}

	status := " M third\n?? fourth"
	if got := g.Git("status", "--porcelain"); got != "M  other\n"+status {
		t.Errorf("status is %q", got)
	}
	if got := g.Git("diff", "--name-only", "HEAD~1", "HEAD"); got != "web.yaml" {
		t.Errorf("committed %q", got)
	}

	head := g.Head()
	refused := func(name, want string) {
		t.Helper()
		before := g.Git("status", "--porcelain")
		_, err := w.Commit(editOf(map[string]string{name: "a: 3\n"}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if g.Head() != head || g.Git("status", "--porcelain") != before {
			t.Errorf("refused, and changed: %s", g.Git("status", "--porcelain"))
		}
	}

	refused("other", "staged")
	refused("third", "uncommitted")
	refused("fourth", "not tracked")
	write(".git/index.lock", "")
	refused("web.yaml", "index.lock")

	if err := os.Remove(filepath.Join(g.Dir, ".git/index.lock")); err != nil {
		t.Fatal(err)
	}

	write(".git/MERGE_HEAD", head+"\n")
	refused("web.yaml", "a merge is in progress")

	if err := os.Remove(filepath.Join(g.Dir, ".git/MERGE_HEAD")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(g.Dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}

	stale := editOf(map[string]string{"web.yaml": "a: 3\n"})
	stale.On = g.Git("rev-parse", "HEAD~1")

	for _, commit := range []func(source.Edit) (string, error){w.Commit, open(t, g.Dir).Apply} {
		stale.Branch = "main"
		if _, err := commit(stale); !errors.Is(err, source.ErrBranchMoved) {
			t.Errorf("got %v", err)
		}
	}

	var uncommitted *source.UncommittedError
	if _, err := w.Commit(editOf(map[string]string{"web.yaml": "a: 3\n"})); !errors.As(err, &uncommitted) || uncommitted.File != "web.yaml" {
		t.Errorf("got %v", err)
	}
	if err := os.Symlink("other", filepath.Join(g.Dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}

	refused("web.yaml", "not a regular file")
	g.Git("checkout", "-q", "-f", head)
	refused("web.yaml", "no branch is checked out")
}

// Line endings that git converts are not a difference, and stay converted.
func TestCommitWithConvertedLineEnds(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"web.yaml": "a: 1\nb: 1\n"})

	if err := os.WriteFile(filepath.Join(g.Dir, "web.yaml"), []byte("a: 1\r\nb: 1\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, g.Dir).WorkTree().Commit(editOf(map[string]string{"web.yaml": "a: 2\nb: 1\n"})); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(g.Dir, "web.yaml")); err != nil || string(b) != "a: 2\r\nb: 1\r\n" {
		t.Errorf("the work tree has %q, %v", b, err)
	}
	if got := g.Git("show", "HEAD:web.yaml"); got != "a: 2\nb: 1" {
		t.Errorf("committed %q", got)
	}
	if got := g.Git("-c", "core.autocrlf=true", "status", "--porcelain"); got != "" {
		t.Errorf("status is %q", got)
	}
}

// A linked work tree has its own branch and index.
func TestCommitInALinkedWorkTree(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"web.yaml": "a: 1\n"})
	linked := filepath.Join(t.TempDir(), "linked")
	g.Git("worktree", "add", "-q", "-b", "side", linked)
	r := open(t, linked)
	if got := r.CheckedOut("main"); !sameDir(t, got, g.Dir) {
		t.Errorf("main is checked out at %q", got)
	}
	if got := r.CheckedOut("side"); !sameDir(t, got, linked) {
		t.Errorf("side is checked out at %q", got)
	}
	if got := r.CheckedOut("none"); got != "" {
		t.Errorf("none is checked out at %q", got)
	}

	hash, err := r.WorkTree().Commit(editOf(map[string]string{"web.yaml": "a: 2\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Git("rev-parse", "side"); got != hash {
		t.Errorf("side is %s, want %s", got, hash)
	}

	for _, dir := range []string{g.Dir, linked} {
		if got := g.GitIn(dir, "", "status", "--porcelain"); got != "" {
			t.Errorf("%s: status is %q", dir, got)
		}
	}

	if open(t, g.Bare()).WorkTree() != nil {
		t.Error("a bare repository has a work tree")
	}
}

func sameDir(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	y, err := filepath.EvalSymlinks(b)
	return err == nil && x == y
}

// A symlink in a work tree cannot lead out of it.
func TestWorkTreeStaysInside(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"policies/web.yaml": "a: 1\n"})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "web.yaml"), []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(g.Dir, "policies")), os.Symlink(outside, filepath.Join(g.Dir, "policies"))); err != nil {
		t.Fatal(err)
	}

	w := open(t, g.Dir).WorkTree()
	if b, err := w.Read("policies/web.yaml"); err == nil {
		t.Errorf("read %q", b)
	}
	if err := w.Write(map[string][]byte{"policies/web.yaml": []byte("x")}); err == nil {
		t.Error("wrote outside")
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "web.yaml")); string(b) != "secret\n" {
		t.Errorf("outside is %q", b)
	}
}

// An overlay is a tree with some contents replaced.
func TestOverlay(t *testing.T) {
	g := sourcetest.New(t)
	head := g.Commit("one", map[string]string{"d/a": "1", "d/b": "2"})
	c, err := open(t, g.Dir).Commit(head)
	if err != nil {
		t.Fatal(err)
	}

	tree, err := c.Tree(".")
	if err != nil {
		t.Fatal(err)
	}

	o := tree.With(map[string][]byte{"d/a": []byte("one"), "d/none": nil})
	for name, want := range map[string]string{"d/a": "one", "d/b": "2"} {
		if b, err := o.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v", name, b, err)
		}

		f, err := o.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != int64(len(want)) {
			t.Errorf("%s: %v, %v", name, info, err)
		}

		hash, ok := o.BlobHash(name)
		if hash != g.GitIn(g.Dir, want, "hash-object", "--stdin") || !ok {
			t.Errorf("%s has hash %s", name, hash)
		}
	}

	if _, err := o.ReadFile("d/none"); err == nil {
		t.Error("a file that the tree does not have was read")
	}
}

// An overlay with new files equals a commit with them.
func TestOverlayWithNewFiles(t *testing.T) {
	g := sourcetest.New(t)
	one := g.Commit("one", map[string]string{"d/a": "1", "z": "2"})
	added := map[string]string{"d/new": "new", "d/e/f/deep": "deep", "d/e/b": "", "top": "top", "d/a": "other"}
	two := g.Commit("two", added)
	trees := map[string]*source.Tree{}
	for _, hash := range []string{one, two} {
		c, err := open(t, g.Dir).Commit(hash)
		if err != nil {
			t.Fatal(err)
		}
		if trees[hash], err = c.Tree("."); err != nil {
			t.Fatal(err)
		}
	}

	files := map[string][]byte{}
	for name, content := range added {
		files[name] = []byte(content)
	}

	all := func(fsys fs.FS) (all []string) {
		err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}

			line := fs.FormatDirEntry(e)
			info, err := fs.Stat(fsys, name)
			if err != nil {
				return err
			}

			if line += fmt.Sprintf(" %s %v", name, info.Mode()); !e.IsDir() {
				b, err := fs.ReadFile(fsys, name)
				if err != nil {
					return err
				}
				line += fmt.Sprintf(" %d %s", info.Size(), b)
			}

			all = append(all, line)
			return nil
		})

		if err != nil {
			t.Fatal(err)
		}
		return all
	}

	if got, want := all(trees[one].With(files)), all(trees[two]); !slices.Equal(got, want) {
		t.Errorf("overlay:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := fstest.TestFS(trees[one].With(files), "d/new", "d/e/f/deep", "top"); err != nil {
		t.Error(err)
	}
}

// New files are committed with their directories; git sees a clean work tree, a
// sorted index, and everything else that it keeps there.
func TestCommitNewFiles(t *testing.T) {
	for _, layout := range []string{"index.version=2", "index.version=3", "index.version=4", "index.skipHash=true", "core.untrackedCache=true"} {
		t.Run(layout, func(t *testing.T) {
			g := sourcetest.New(t)
			key, value, _ := strings.Cut(layout, "=")
			g.Git("config", key, value)
			g.Commit("one", map[string]string{
				"b/c": "1\n", "b/cc/d": "1\n", "b/" + strings.Repeat("long/", 60) + "name.yaml": "x\n", "z": "z\n",
			})

			if layout == "index.version=3" {
				if err := os.WriteFile(filepath.Join(g.Dir, "c"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				g.Git("add", "-N", "c")
			}

			g.Git("update-index", "--assume-unchanged", "z")
			g.Git("status")
			before := g.Git("status", "--porcelain")
			w := open(t, g.Dir).WorkTree()
			long := "b/" + strings.Repeat("long/", 59) + "other/" + strings.Repeat("y", 200)
			for _, names := range [][]string{{"a"}, {"zz/z"}, {"b/cc.yaml"}, {long}, {"b/c0", "b/b/b"}} {
				files := map[string]string{}
				for _, name := range names {
					files[name] = name + "\n"
				}

				hash, err := w.Commit(editOf(files))
				if err != nil {
					t.Fatalf("%s: %v", names, err)
				}
				if g.Head() != hash {
					t.Errorf("HEAD is %s, want %s", g.Head(), hash)
				}
				if after := g.Git("status", "--porcelain"); after != before {
					t.Errorf("%s: status is %q, was %q", names, after, before)
				}
				if got := g.Git("diff", "--name-status", "HEAD~1", "HEAD"); strings.Count(got, "A\t") != len(names) || strings.Count(got, "\n") != len(names)-1 {
					t.Errorf("%s: committed %q", names, got)
				}
				if got := g.Git("diff", "--cached", "--name-only", "--diff-filter=ADM", "HEAD"); got != "" {
					t.Errorf("%s: the index differs from HEAD: %s", names, got)
				}
			}

			g.Git("fsck", "--strict")
			if got := g.Git("ls-files", "-v", "z"); got != "h z" {
				t.Errorf("a mark of a file is lost: %s", got)
			}
			if got := g.Git("ls-files", "--stage", "zz/z"); !strings.HasPrefix(got, "100644 ") {
				t.Errorf("the index has %s", got)
			}
		})
	}
}

// If the path of a new file conflicts with something, nothing is committed.
func TestNewFilesInTheWay(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"file": "1\n", "dir/a": "1\n"})

	if err := os.MkdirAll(filepath.Join(g.Dir, "staged"), 0o755); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"there", "staged/a"} {
		if err := os.WriteFile(filepath.Join(g.Dir, name), []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	g.Git("add", "staged/a")
	g.Git("rm", "-q", "--cached", "dir/a")

	for _, name := range []string{"dir/a", "staged/a"} {
		if err := os.Remove(filepath.Join(g.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	head, before := g.Head(), g.Git("status", "--porcelain")
	w := open(t, g.Dir).WorkTree()
	for name, want := range map[string]string{
		"there": "not tracked", "staged/a/b": "staged/a is staged and conflicts with it", "staged": "not tracked",
		"file/a": "not a directory", "dir/a": "staged changes",
	} {
		if _, err := w.Commit(editOf(map[string]string{name: "new\n"})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if after := g.Git("status", "--porcelain"); g.Head() != head || after != before {
			t.Errorf("%s: refused, and changed: %s", name, after)
		}
	}

	r := open(t, g.Dir)
	if _, err := r.Draft(head, editOf(map[string]string{"file/a": "new\n"})); err == nil || !strings.Contains(err.Error(), "file is not a directory") {
		t.Errorf("a file became a directory: %v", err)
	}
}

// The author comes from git's configuration, including included files.
func TestUser(t *testing.T) {
	g := sourcetest.New(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "global"))
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	user := func() string {
		t.Helper()
		name, mail, err := open(t, g.Dir).User()
		if err != nil {
			t.Fatal(err)
		}
		return name + " <" + mail + ">"
	}

	if got := user(); got != " <>" {
		t.Errorf("nobody is %s", got)
	}

	write("global", "[user]\n\tname = \"Ann Other\"\n\temail = ann@home\n[include]\n\tpath = included\n[includeIf \"gitdir:"+filepath.Dir(g.Dir)+"/\"]\n\tpath = ~/work\n[includeIf \"gitdir:/elsewhere/\"]\n\tpath = ~/elsewhere\n")
	write("included", "[user]\n\temail = ann@included\n")
	write("elsewhere", "[user]\n\temail = ann@elsewhere\n")

	if got := user(); got != "Ann Other <ann@included>" {
		t.Errorf("global says %s", got)
	}

	write("work", "[user]\n\temail = ann@work\n")
	if got := user(); got != "Ann Other <ann@work>" {
		t.Errorf("work says %s", got)
	}

	g.Git("config", "user.name", "Bob")
	if got := user(); got != "Bob <ann@work>" {
		t.Errorf("the repository says %s", got)
	}
}

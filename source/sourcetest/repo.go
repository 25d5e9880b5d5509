// SPDX-License-Identifier: Apache-2.0

// Package sourcetest builds git repositories for tests with the real git.
// Dates and names are fixed, so hashes are the same in every run.
package sourcetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// Delete as the content of a file removes the file.
const Delete = "\x00delete"

// Symlink as the content of a file makes it a symlink to target.
func Symlink(target string) string { return "\x00symlink " + target }

// Repo is a repository with a work tree, on branch main.
type Repo struct {
	Dir string

	t     testing.TB
	clock time.Time
}

// New makes an empty repository.
func New(t testing.TB) *Repo {
	t.Helper()
	r := &Repo{Dir: t.TempDir(), t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	r.Git("init", "-q", "-b", "main")
	return r
}

// Txtar makes a repository of one commit from a text archive.
func Txtar(t testing.TB, archive string) *Repo {
	t.Helper()
	r := New(t)
	r.Commit("begin", Files(archive))
	return r
}

// Files reads a text archive.
func Files(archive string) map[string]string {
	files := map[string]string{}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// FilesOf reads all files of a file system, for a test to edit.
func FilesOf(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := fs.ReadFile(fsys, path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Commit writes the files over what is there and commits everything. It
// returns the commit's hash. Each commit is a minute younger than the last.
func (r *Repo) Commit(message string, files map[string]string) string {
	r.t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		r.write(name, files[name])
	}
	r.Git("add", "-A")
	r.tick()
	r.Git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)
	return r.Head()
}

func (r *Repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, filepath.FromSlash(name))
	for dir := filepath.Dir(path); dir != r.Dir; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			_ = os.Remove(dir) // a file that becomes a directory
		}
	}
	if err := os.RemoveAll(path); err != nil {
		r.t.Fatal(err)
	}
	if content == Delete {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if target, ok := strings.CutPrefix(content, "\x00symlink "); ok {
		err = os.Symlink(target, path)
	} else {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// Branch makes a branch at the current commit and switches to it.
func (r *Repo) Branch(name string) {
	r.t.Helper()
	r.Git("checkout", "-q", "-b", name)
}

// Checkout switches to a branch or commit.
func (r *Repo) Checkout(rev string) {
	r.t.Helper()
	r.Git("checkout", "-q", rev)
}

// Merge merges a branch into the current one, with a merge commit.
func (r *Repo) Merge(branch, message string) string {
	r.t.Helper()
	r.tick()
	r.Git("merge", "-q", "--no-ff", "-m", message, branch)
	return r.Head()
}

// Head is the hash of the current commit.
func (r *Repo) Head() string {
	r.t.Helper()
	return r.Git("rev-parse", "HEAD")
}

// Bare makes a bare clone and returns its directory.
func (r *Repo) Bare() string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "repo.git")
	r.Git("clone", "-q", "--bare", ".", dir)
	return dir
}

func (r *Repo) tick() { r.clock = r.clock.Add(time.Minute) }

// Git runs git in the repository and returns what it prints, trimmed.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.GitIn(r.Dir, "", args...)
}

// GitIn runs git in another directory, with something to read.
func (r *Repo) GitIn(dir, stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = r.env()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// env keeps the machine's and the user's configuration out.
func (r *Repo) env() []string {
	env := []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "TZ=UTC", "LC_ALL=C",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_CONFIG_KEY_1=gc.auto", "GIT_CONFIG_VALUE_1=0",
		"GIT_CONFIG_KEY_2=core.autocrlf", "GIT_CONFIG_VALUE_2=false",
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env,
			"GIT_"+who+"_NAME=Ada", "GIT_"+who+"_EMAIL=ada@example.com",
			fmt.Sprintf("GIT_%s_DATE=%d +0000", who, r.clock.Unix()))
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

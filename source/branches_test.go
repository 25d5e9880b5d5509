// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// deploy is a bare repository to publish to.
type deploy struct {
	*sourcetest.Repo
	t    *testing.T
	bare string
	b    *source.Branches
}

func newDeploy(t *testing.T) *deploy {
	t.Helper()
	g := sourcetest.New(t)
	d := &deploy{Repo: g, t: t, bare: filepath.Join(t.TempDir(), "deploy.git")}
	g.Git("init", "-q", "--bare", "-b", "main", d.bare)
	d.in("config", "http.receivepack", "true")
	d.in("config", "receive.fsckObjects", "true")
	return d
}

func (d *deploy) in(args ...string) string {
	d.t.Helper()
	return d.GitIn(d.bare, "", args...)
}

func (d *deploy) open(address string, auth source.Auth) {
	d.t.Helper()
	var err error
	if d.b, err = source.OpenBranches(address, auth); err != nil {
		d.t.Fatal(err)
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func released(branch string, files map[string]string) source.Edit {
	e := source.Edit{Branch: branch, Message: "fleet: x\n\nFairlead-Source: 1\n", Author: "fairlead", Mail: "f@example.com", When: noon, Files: map[string][]byte{}}
	for name, content := range files {
		e.Files[name] = []byte(content)
		if content == sourcetest.Delete {
			e.Files[name] = nil
		}
	}
	return e
}

func (d *deploy) head(branch string) string {
	d.t.Helper()
	h, err := d.b.Head(context.Background(), branch)
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

func (d *deploy) commit(head string, e source.Edit) string {
	d.t.Helper()
	h, err := d.b.Commit(context.Background(), head, e)
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// theirs commits to a branch as another user, and pushes it.
func (d *deploy) theirs(branch string, files map[string]string) string {
	d.t.Helper()
	d.Git("fetch", "-q", d.bare, branch)
	d.Git("checkout", "-q", "--detach", "FETCH_HEAD")
	h := d.Commit("theirs", files)
	d.Git("push", "-q", d.bare, "HEAD:refs/heads/"+branch)
	return h
}

// In place and over each transport: an empty repository gets its first branch,
// a branch its next commit, another branch its own root. Commits of others
// stay, and nothing is forced.
func TestBranches(t *testing.T) {
	for name, connect := range map[string]func(*deploy){
		"file": func(d *deploy) { d.open("file://"+d.bare, source.Auth{}) },
		"https": func(d *deploy) {
			s := serve(d.t, d.bare)
			d.open(s.address(), s.basic())
		},
		"ssh": func(d *deploy) {
			s := serveSSH(d.t)
			d.open("ssh://git@"+s.address+d.bare, source.Auth{Identity: s.identity, KnownHosts: s.knownHosts})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			d := newDeploy(t)
			connect(d)

			if got := d.head("fairlead/eu-1"); got != "" {
				t.Fatalf("the branch is at %s", got)
			}

			one := d.commit("", released("fairlead/eu-1", map[string]string{"default/a.yaml": "a: 1\n", "default/b.yaml": "b: 1\n", "_cluster/c.yaml": "c: 1\n"}))
			if got := d.head("fairlead/eu-1"); got != one || d.in("rev-parse", "fairlead/eu-1") != one {
				t.Errorf("the branch is at %s, want %s", got, one)
			}

			two := d.commit(one, released("fairlead/eu-1", map[string]string{"default/a.yaml": "a: 2\n", "_cluster/c.yaml": sourcetest.Delete}))
			other := d.commit("", released("fairlead/us-1", map[string]string{"default/a.yaml": "a: 1\n"}))

			if got := d.in("log", "--format=%P", "fairlead/eu-1"); got != one {
				t.Errorf("its parents are %q", got)
			}
			if got := d.in("rev-list", "--count", "fairlead/us-1"); got != "1" {
				t.Errorf("the other has %s commits", got)
			}
			if got := d.in("ls-tree", "-r", "--name-only", "fairlead/eu-1"); got != "default/a.yaml\ndefault/b.yaml" {
				t.Errorf("it holds %q", got)
			}

			d.in("fsck", "--strict")

			tree, err := d.b.Tree(ctx, "fairlead/eu-1", two)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := tree.ReadFile("default/a.yaml"); err != nil || string(b) != "a: 2\n" {
				t.Errorf("a is %q, %v", b, err)
			}
			if h, ok := tree.BlobHash("default/b.yaml"); !ok || h != source.BlobHash([]byte("b: 1\n")) {
				t.Errorf("b has the hash %s", h)
			}

			// Someone else pushes: the late commit is not made, theirs stays.
			theirs := d.theirs("fairlead/eu-1", map[string]string{"README": "hello\n", "default/b.yaml": "b: theirs\n"})
			late := released("fairlead/eu-1", map[string]string{"default/a.yaml": "a: 3\n"})
			if _, err := d.b.Commit(ctx, two, late); !errors.Is(err, source.ErrBranchMoved) {
				t.Fatalf("got %v", err)
			}
			if got := d.head("fairlead/eu-1"); got != theirs {
				t.Fatalf("the branch is at %s, want %s", got, theirs)
			}
			if _, err := d.b.Tree(ctx, "fairlead/eu-1", theirs); err != nil {
				t.Fatal(err)
			}

			d.commit(theirs, late)
			if got := d.in("show", "fairlead/eu-1:README", "fairlead/eu-1:default/a.yaml", "fairlead/eu-1:default/b.yaml"); got != "hello\na: 3\nb: theirs" {
				t.Errorf("it holds %q", got)
			}

			// A branch that exists cannot be created, one that is gone cannot be
			// extended.
			if _, err := d.b.Commit(ctx, "", late); !errors.Is(err, source.ErrBranchMoved) {
				t.Errorf("got %v", err)
			}

			d.in("update-ref", "-d", "refs/heads/fairlead/us-1")
			if _, err := d.b.Commit(ctx, other, released("fairlead/us-1", map[string]string{"x": "1"})); !errors.Is(err, source.ErrBranchMoved) {
				t.Errorf("got %v", err)
			}
			if got := d.head("fairlead/us-1"); got != "" {
				t.Errorf("it is at %s", got)
			}

			// A name that conflicts with an existing one in git.
			if _, err := d.b.Commit(ctx, "", released("fairlead/eu-1/x", map[string]string{"x": "1"})); err == nil || errors.Is(err, source.ErrBranchMoved) {
				t.Errorf("got %v", err)
			}
			if _, err := d.b.Head(ctx, "a..b"); err == nil {
				t.Error("a branch has a name that is none")
			}
		})
	}
}

// A second instance that makes the same commit is harmless, a commit is never
// older than its parent, and of many concurrent commits each gets its place.
func TestBranchesMeet(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := newDeploy(t)
	s := serve(t, d.bare)
	d.open("file://"+d.bare, source.Auth{})
	second, err := source.OpenBranches(s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}

	e := released("fairlead/eu-1", map[string]string{"a": "1"})
	one := d.commit("", e)
	if again, err := second.Commit(ctx, "", e); err != nil || again != one {
		t.Errorf("%s, %v", again, err)
	}

	theirs := d.theirs("fairlead/eu-1", map[string]string{"b": "1"})
	old := released("fairlead/eu-1", map[string]string{"a": "2"})
	old.When = noon.AddDate(-1, 0, 0)
	two := d.commit(theirs, old)
	if there, here := d.in("show", "-s", "--format=%ct", theirs), d.in("show", "-s", "--format=%ct", two); there != here {
		t.Errorf("a commit of %s follows one of %s", here, there)
	}

	var all sync.WaitGroup
	for _, b := range []*source.Branches{d.b, second} {
		for _, name := range []string{"x", "y", "z"} {
			all.Go(func() {
				for {
					head, err := b.Head(ctx, "fairlead/eu-1")
					if err == nil {
						if _, err = b.Tree(ctx, "fairlead/eu-1", head); err == nil {
							_, err = b.Commit(ctx, head, released("fairlead/eu-1", map[string]string{b.String()[:4] + name: "1"}))
						}
					}

					if err == nil {
						return
					}

					if !errors.Is(err, source.ErrBranchMoved) {
						t.Error(err)
						return
					}
				}
			})
		}
	}

	all.Wait()
	if got := d.in("ls-tree", "--name-only", "fairlead/eu-1"); got != "a\nb\nfilex\nfiley\nfilez\nhttpx\nhttpy\nhttpz" {
		t.Errorf("it holds %q", got)
	}

	d.in("fsck", "--strict")
}

// One commit is one push, and needs no fetch as long as nobody else writes.
// However many ask for the branches at once, the server is asked twice.
func TestBranchesCost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := newDeploy(t)
	s := serve(t, d.bare)
	d.open(s.address(), s.basic())
	head := ""
	for _, v := range []string{"1", "2", "3"} {
		head = d.commit(head, released("fairlead/eu-1", map[string]string{"a": v}))
	}

	if packs, pushes := s.packs.Load(), s.pushes.Load(); packs != 0 || pushes != 3 {
		t.Errorf("%d fetches, %d pushes", packs, pushes)
	}

	s.asked.Store(0)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if h, err := d.b.Head(ctx, "fairlead/eu-1"); err != nil || h != head {
				t.Errorf("%s, %v", h, err)
			}
		})
	}

	all.Wait()
	// Those that come while the first is in progress share the second, unless the
	// machine is so busy that they come later.
	if asked := s.asked.Load(); asked > 10 {
		t.Errorf("asked %d times", asked)
	}

	// A new process fetches the last commit, not the history.
	d.open(s.address(), s.basic())
	d.commit(head, released("fairlead/eu-1", map[string]string{"a": "4"}))

	if packs := s.packs.Load(); packs != 1 {
		t.Errorf("%d fetches", packs)
	}
}

// F21: even if the answer is lost, an accepted push is known to be accepted.
func TestBranchesWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := newDeploy(t)
	s := serve(t, d.bare)
	d.open(s.address(), s.basic())
	one := d.commit("", released("fairlead/eu-1", map[string]string{"a": "1"}))
	s.lose.Store(true)
	two := d.commit(one, released("fairlead/eu-1", map[string]string{"a": "2"}))
	if got := d.in("rev-parse", "fairlead/eu-1"); got != two {
		t.Errorf("the branch is at %s, want %s", got, two)
	}

	// Someone else pushes between our listing and our push.
	s.race = func() { d.theirs("fairlead/eu-1", map[string]string{"b": "1"}) }
	if _, err := d.b.Commit(ctx, two, released("fairlead/eu-1", map[string]string{"a": "3"})); !errors.Is(err, source.ErrBranchMoved) {
		t.Errorf("got %v", err)
	}
}

// The error for a rejected push has the server's words, and no secrets.
func TestBranchesDenied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := newDeploy(t)
	s := serve(t, d.bare)
	hook := "#!/bin/sh\necho 'fairlead/* is protected' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(d.bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}

	d.open(strings.Replace(s.address(), "://", "://ada:s3cret@", 1), source.Auth{CA: s.ca})
	if strings.Contains(d.b.String(), "s3cret") {
		t.Errorf("it is called %s", d.b)
	}

	_, err := d.b.Commit(ctx, "", released("fairlead/eu-1", map[string]string{"a": "1"}))
	if !errors.Is(err, source.ErrDenied) || !strings.Contains(err.Error(), "is protected") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}

	d.open(strings.Replace(s.address(), "://", "://ada:wr0ng@", 1), source.Auth{CA: s.ca})
	if _, err = d.b.Head(ctx, "x"); !errors.Is(err, source.ErrDenied) || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("got %v", err)
	}

	now := source.Auth{Username: "ada", Password: "wr0ng", CA: s.ca} // F44: rotated while in use
	d.open(s.address(), source.Auth{})
	d.b.Renew(func() (source.Auth, error) { return now, nil })

	if _, err = d.b.Head(ctx, "x"); !errors.Is(err, source.ErrDenied) {
		t.Errorf("got %v", err)
	}

	now.Password = "s3cret"
	if _, err = d.b.Head(ctx, "x"); err != nil {
		t.Errorf("got %v", err)
	}

	d.open(s.URL+"/nothing.git", s.basic())
	if _, err = d.b.Head(ctx, "x"); !errors.Is(err, source.ErrDenied) {
		t.Errorf("got %v", err)
	}

	s.deny.Store(true)
	if _, err = d.b.Head(ctx, "x"); err == nil || errors.Is(err, source.ErrDenied) {
		t.Errorf("a server that is away: %v", err)
	}

	// A branch that is checked out is not moved.
	g := sourcetest.New(t)
	g.Commit("one", nil)
	d.open("file://"+g.Dir, source.Auth{})

	if _, err := d.b.Commit(ctx, g.Head(), released("main", map[string]string{"a": "1"})); !errors.Is(err, source.ErrDenied) || !strings.Contains(err.Error(), "checked out") {
		t.Errorf("got %v", err)
	}
}

// T07: only supported URLs are connected to.
func TestT07BranchesURLs(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "deploy", "/srv/deploy.git", "ext::sh -c id", "git://x/y", "http://example.com/x", "file://elsewhere/x", "file:///nope", "file:", "-x", "ssh://-oProxyCommand=x/y",
	} {
		if _, err := source.OpenBranches(address, source.Auth{}); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
}

// Git and fairlead take the same lock: they wait while git updates a branch,
// and report a lock that is never released.
func TestBranchesLock(t *testing.T) {
	t.Parallel()
	d := newDeploy(t)
	d.open("file://"+d.bare, source.Auth{})
	one := d.commit("", released("fairlead/eu-1", map[string]string{"a": "1"}))
	d.in("pack-refs", "--all")
	lock := filepath.Join(d.bare, "refs", "heads", "fairlead", "eu-1.lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	time.AfterFunc(100*time.Millisecond, func() { os.Remove(lock) })
	d.commit(one, released("fairlead/eu-1", map[string]string{"a": "2"}))

	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.b.Commit(context.Background(), d.head("fairlead/eu-1"), released("fairlead/eu-1", map[string]string{"a": "3"})); err == nil || !strings.Contains(err.Error(), "eu-1.lock") {
		t.Errorf("got %v", err)
	}
}

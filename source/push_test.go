// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// pushed is a remote and a clone of it.
type pushed struct {
	*sourcetest.Repo        // the clone, with origin
	bare             string // the remote
	repo             *source.Repo
	auth             source.Auth
}

// cloned creates a remote with some history and a clone of it.
func cloned(t *testing.T) *pushed {
	t.Helper()
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"policies/web.yaml": "a: 1\n", "apps/x/y.yaml": "y\n", "apps/z.yaml": "z\n"})
	g.Branch("side")
	g.Commit("side", map[string]string{"apps/side.yaml": "s\n"})
	g.Checkout("main")
	g.Merge("side", "merge side")
	bare := g.Bare()
	g.GitIn(bare, "", "config", "http.receivepack", "true")
	g.GitIn(bare, "", "config", "receive.fsckObjects", "true")
	g.Git("remote", "add", "origin", bare)
	g.Git("fetch", "-q", "origin")
	return &pushed{Repo: g, bare: bare, repo: open(t, g.Dir)}
}

func (p *pushed) push(t *testing.T, commit, branch string) error {
	t.Helper()
	_, err := p.repo.Push(context.Background(), commit, branch, p.auth)
	return err
}

func (p *pushed) draft(t *testing.T, parent, content string) string {
	t.Helper()
	hash, err := p.repo.Draft(parent, editOf(map[string]string{"policies/web.yaml": content}))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// The same over each transport: a new branch, a commit on top of it, local
// commits that were never pushed, and never a forced push.
func TestPush(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, *pushed){
		"path": func(*testing.T, *pushed) {},
		"relative path": func(t *testing.T, p *pushed) {
			rel, err := filepath.Rel(p.Dir, p.bare)
			if err != nil {
				t.Fatal(err)
			}
			p.Git("remote", "set-url", "origin", rel)
		},
		"file": func(_ *testing.T, p *pushed) { p.Git("remote", "set-url", "origin", "file://"+p.bare) },
		"https": func(t *testing.T, p *pushed) {
			s := serve(t, p.bare)
			p.auth = s.basic()
			p.Git("remote", "set-url", "origin", s.address())
		},
		"ssh": func(t *testing.T, p *pushed) {
			s := serveSSH(t)
			p.auth = source.Auth{Identity: s.identity, KnownHosts: s.knownHosts}
			p.Git("config", "url.ssh://git@"+s.address+"/.pushInsteadOf", "fleet:")
			p.Git("remote", "set-url", "origin", "fleet:"+p.bare)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			p := cloned(t)
			connect(t, p)
			main := p.Head()

			first := p.draft(t, main, "a: 2\n")
			if err := p.push(t, first, "fairlead/suspend-web"); err != nil {
				t.Fatal(err)
			}

			there := func(rev string) string { return p.GitIn(p.bare, "", "rev-parse", rev) }
			if got := there("fairlead/suspend-web"); got != first {
				t.Errorf("the branch is %s, want %s", got, first)
			}
			if got := p.Git("rev-parse", "origin/fairlead/suspend-web"); got != first {
				t.Errorf("here it is known as %s", got)
			}
			if got := there("main"); got != main {
				t.Errorf("main moved to %s", got)
			}

			second := p.draft(t, first, "a: 3\n")
			if err := p.push(t, second, "fairlead/suspend-web"); err != nil {
				t.Fatal(err)
			}
			if got := p.GitIn(p.bare, "", "log", "--format=%s", "main..fairlead/suspend-web"); got != "fleet: an edit\nfleet: an edit" {
				t.Errorf("the branch has %q", got)
			}

			// The user's own commits are pushed, too.
			p.Commit("mine", map[string]string{"apps/x/new.yaml": "n\n"})
			p.Branch("other")
			p.Commit("mine, too", map[string]string{"apps/x/newer.yaml": "n\n"})
			p.Checkout("main")
			p.Merge("other", "merge other")
			third := p.draft(t, p.Head(), "a: 4\n")
			if err := p.push(t, third, "third"); err != nil {
				t.Fatal(err)
			}

			p.GitIn(p.bare, "", "fsck", "--strict", "--connectivity-only")
			if got := p.GitIn(p.bare, "", "show", "third:policies/web.yaml", "third:apps/x/newer.yaml"); got != "a: 4\nn" {
				t.Errorf("pushed %q", got)
			}

			// A branch that has moved stays where it is.
			for _, base := range []string{main, third} {
				if err := p.push(t, p.draft(t, base, "a: 5\n"), "fairlead/suspend-web"); !errors.Is(err, source.ErrBranchMoved) {
					t.Errorf("got %v", err)
				}
			}

			if got := there("fairlead/suspend-web"); got != second {
				t.Errorf("the branch was forced to %s", got)
			}

			// So does one whose commits are not available locally.
			elsewhere := t.TempDir()
			p.Git("clone", "-q", p.bare, elsewhere)
			p.GitIn(elsewhere, "", "commit", "-q", "--allow-empty", "-m", "theirs")
			p.GitIn(elsewhere, "", "push", "-q", "origin", "HEAD:fairlead/theirs")

			if err := p.push(t, p.draft(t, main, "a: 6\n"), "fairlead/theirs"); !errors.Is(err, source.ErrBranchMoved) || !strings.Contains(err.Error(), "fetch") {
				t.Errorf("got %v", err)
			}
			if err := p.push(t, first, "bad..name"); err == nil {
				t.Error("a branch was made whose name is none")
			}
		})
	}
}

// A mirror pushes to its remote, and finds its own commit there.
func TestPushFromAMirror(t *testing.T) {
	ctx := context.Background()
	p := cloned(t)
	s := serve(t, p.bare)
	r, err := source.Clone(ctx, filepath.Join(t.TempDir(), "mirror"), s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}

	p.repo = r
	hash := p.draft(t, p.Head(), "a: 2\n")
	to, err := r.Push(ctx, hash, "fairlead/suspend-web", source.Auth{})
	if err != nil || to != s.address() {
		t.Fatalf("%s: %v", to, err)
	}
	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve("fairlead/suspend-web"); err != nil || got != hash {
		t.Errorf("the mirror has %s, %v", got, err)
	}
	if r.WorkTree() != nil {
		t.Error("a mirror has a work tree")
	}
}

// The error for a rejected push has the server's words, and no secrets.
func TestPushRefused(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	p := cloned(t)
	s := serve(t, p.bare)
	p.Git("remote", "set-url", "origin", strings.Replace(s.address(), "://", "://ada:s3cret@", 1))
	p.auth = source.Auth{CA: s.ca}
	hook := "#!/bin/sh\necho 'main is protected' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(p.bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}

	err := p.push(t, p.draft(t, p.Head(), "a: 2\n"), "main")
	if err == nil || !strings.Contains(err.Error(), "pre-receive hook declined") || !strings.Contains(err.Error(), "main is protected") {
		t.Errorf("got %v", err)
	}

	p.auth = source.Auth{CA: s.ca, Password: "wrong"}
	if err = p.push(t, p.draft(t, p.Head(), "a: 2\n"), "x"); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "authentication required") {
		t.Errorf("got %v", err)
	}

	p.Git("remote", "remove", "origin")
	if err = p.push(t, p.Head(), "x"); err == nil || !strings.Contains(err.Error(), "no remote origin") {
		t.Errorf("got %v", err)
	}

	// A branch that is checked out is not moved.
	other := sourcetest.New(t)
	other.Git("pull", "-q", p.Dir, "main")
	p.Git("remote", "add", "origin", other.Dir)

	if err = p.push(t, p.draft(t, p.Head(), "a: 3\n"), "main"); err == nil || !strings.Contains(err.Error(), "checked out") {
		t.Errorf("got %v", err)
	}
}

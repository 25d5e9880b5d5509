// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// Refs are fetched beside a mirror: they read what the mirror has, and the mirror knows
// nothing of them.
func TestBeside(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	first := g.Commit("one", map[string]string{"a": "1"})
	bare := g.Bare()
	s := serve(t, bare)
	mirror, err := source.Clone(ctx, filepath.Join(t.TempDir(), "mirror"), s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "pulls")
	beside, err := mirror.Beside(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := beside.PointBranch("main", first); err != nil {
		t.Fatal(err)
	}

	const pull, gone = "refs/pull/1/head", "refs/pull/2/head"
	change := g.Commit("change", map[string]string{"b": "2"})
	g.Git("push", "-q", bare, "HEAD:"+pull)
	found, err := beside.FetchRefs(ctx, pull, gone)
	if err != nil || len(found) != 1 || found[pull] != change {
		t.Fatalf("fetched are %v, %v", found, err)
	}
	for rev, want := range map[string]string{pull: change, "main": first} {
		if got, err := beside.Resolve(rev); err != nil || got != want {
			t.Errorf("%s is %s, %v", rev, got, err)
		}
	}
	if c, err := beside.Commit(change); err != nil || c.Parent != first {
		t.Errorf("the change is %+v, %v", c, err)
	}
	if base, err := beside.MergeBase(change, first); err != nil || base != first {
		t.Errorf("they meet at %s, %v", base, err)
	}
	if size, err := beside.Fetched(); err != nil || size == 0 || size > 10_000 {
		t.Errorf("it has fetched %d bytes, %v", size, err)
	}
	if err := mirror.Fetch(ctx); err != nil || mirror.Has(change) {
		t.Errorf("the mirror has what was fetched beside it: %v", err)
	}

	packs := s.packs.Load()
	if _, err := beside.FetchRefs(ctx, pull); err != nil || s.packs.Load() != packs {
		t.Errorf("what is there is fetched again: %v", err)
	}
	if _, err := beside.FetchRefs(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := beside.Resolve(pull); !errors.Is(err, source.ErrUnknownRevision) {
		t.Errorf("a ref that is not asked for any more: %v", err)
	}

	for _, name := range []string{"refs/heads/main", "refs/../../x", "main"} {
		if _, err := beside.FetchRefs(ctx, name); err == nil {
			t.Errorf("%s is fetched", name)
		}
	}
	if beside, err = mirror.Beside(dir, 10); err != nil {
		t.Fatal(err)
	}
	g.Commit("larger", map[string]string{"c": "3"})
	g.Git("push", "-q", bare, "HEAD:"+pull)
	if _, err := beside.FetchRefs(ctx, pull); !errors.Is(err, source.ErrTooLarge) || !strings.Contains(err.Error(), "at most 10 bytes") {
		t.Errorf("a large pack: %v", err)
	}

	mirror.SetAuth(source.Auth{Username: "ada", Password: "another", CA: s.ca})
	if _, err := beside.FetchRefs(ctx, pull); !errors.Is(err, source.ErrAuthentication) || strings.Contains(err.Error(), "another") {
		t.Errorf("with other credentials: %v", err)
	}
	if again, err := mirror.Beside(dir, 1<<20); err != nil || again.Has(change) {
		t.Errorf("what was there is there again: %v", err)
	}
}

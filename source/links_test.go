// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A poll is one request, and a commit one more, however large the fleet is and however
// many commits it is behind. All of them share a connection, so that only the first
// pays for a handshake.
func TestFetchCountsItsRequests(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("dir-%d/%d.yaml", i%7, i)] = fmt.Sprint("a: ", i)
	}
	g.Commit("one", files)
	bare := g.Bare()
	s := serve(t, bare)

	var requests []string
	from := map[string]bool{}
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests, from[r.RemoteAddr] = append(requests, r.Method), true
		inner.ServeHTTP(w, r)
	})

	dir := filepath.Join(t.TempDir(), "mirror")
	r, err := source.Clone(ctx, dir, s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(what string, want ...string) {
		t.Helper()
		requests = nil
		if err := r.Fetch(ctx); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(requests, want) {
			t.Errorf("%s is %q, want %q", what, requests, want)
		}
	}
	fetch("nothing new", "GET")
	g.Commit("two", map[string]string{"dir-0/0.yaml": "a: b"})
	g.Git("push", "-q", bare, "main")
	fetch("a commit", "GET", "POST")
	for i := range 30 {
		g.Commit("more", map[string]string{fmt.Sprintf("dir-1/%d.yaml", i): "a: c"})
	}
	g.Git("push", "-q", bare, "main")
	fetch("thirty commits", "GET", "POST")
	if packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack")); len(packs) != 1 {
		t.Errorf("%d packs, want that of the clone", len(packs))
	}
	fetch("nothing new again", "GET")
	if len(from) != 1 {
		t.Errorf("%d connections", len(from))
	}

	// A password that is rotated needs no other connection, another authority does.
	r.SetAuth(source.Auth{BearerToken: "t0ken", CA: s.ca})
	fetch("with a token", "GET")
	if len(from) != 1 {
		t.Errorf("%d connections after the token was changed", len(from))
	}
	r.SetAuth(source.Auth{BearerToken: "t0ken", CA: append(slices.Clone(s.ca), '\n')})
	fetch("with another authority", "GET")
	if len(from) != 2 {
		t.Errorf("%d connections after the authority was changed", len(from))
	}

	for i := range 1200 {
		files[fmt.Sprintf("new-%d/%d.yaml", i%7, i)] = fmt.Sprint("b: ", i)
	}
	g.Commit("a thousand files", files)
	g.Git("push", "-q", bare, "main")
	fetch("a large commit", "GET", "POST", "POST") // the second pack is not thin
	g.GitIn(dir, "", "fsck", "--strict")
}

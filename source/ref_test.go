// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

func edited(t *testing.T, r *Repo, content string) string {
	t.Helper()
	h, err := r.Apply(Edit{Branch: "fairlead/eu-1", Message: "x\n", Author: "a", Mail: "a@example.com", When: time.Unix(1, 0).UTC(), Files: map[string][]byte{"f": []byte(content)}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The lock of a killed process does not block: killed before the rename, and
// after it.
func TestLockOfAKilledProcess(t *testing.T) {
	r, err := Init(filepath.Join(t.TempDir(), "r.git"), "main")
	if err != nil {
		t.Fatal(err)
	}

	one := edited(t, r, "1")
	ref := filepath.Join(r.common, "refs", "heads", "fairlead", "eu-1")
	own := filepath.Join(r.common, "fairlead-"+BlobHash([]byte(ref)))
	for name, leave := range map[string]func(){
		"before the rename": func() { _ = os.WriteFile(own, []byte("half"), 0o644); _ = os.Link(own, ref+".lock") },
		"after it":          func() { _ = os.Link(ref, own) },
		"before the link":   func() { _ = os.WriteFile(own, []byte("half"), 0o644) },
	} {
		leave()
		_ = os.WriteFile(filepath.Join(r.common, "fairlead.lock"), nil, 0o644)
		before := time.Now()
		two := edited(t, r, name)
		if got, err := r.Resolve("fairlead/eu-1"); err != nil || got != two || two == one || time.Since(before) > lockTime/2 {
			t.Errorf("%s: it is at %s, %v", name, got, err)
		}

		left, _ := filepath.Glob(filepath.Join(r.common, "fairlead*"))
		if locks, _ := filepath.Glob(ref + ".lock"); len(left)+len(locks) > 0 {
			t.Errorf("%s: left %q %q", name, left, locks)
		}
	}
}

// Of many that move a ref from the same commit, one succeeds.
func TestOneMovesARef(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r.git")
	if _, err := Init(dir, "main"); err != nil {
		t.Fatal(err)
	}

	name := plumbing.NewBranchReferenceName("x")
	at := plumbing.ZeroHash
	for range 8 {
		var mu sync.Mutex
		var moved []plumbing.Hash
		var all sync.WaitGroup
		for i := range 4 {
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}

			to := plumbing.ComputeHash(plumbing.BlobObject, []byte{byte(i), at[0], at[1]})
			all.Go(func() {
				r.mu.Lock()
				defer r.mu.Unlock()

				err := r.move(name, at, to)
				mu.Lock()
				defer mu.Unlock()

				if err == nil {
					moved = append(moved, to)
				} else if !errors.Is(err, ErrBranchMoved) {
					t.Error(err)
				}
			})
		}

		all.Wait()
		if len(moved) != 1 {
			t.Fatalf("%d have moved it", len(moved))
		}

		at = moved[0]
	}

	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.refs.Reference(name); err != nil || got.Hash() != at {
		t.Errorf("it is at %v, %v", got, err)
	}

	entries, err := os.ReadDir(filepath.Join(dir, "refs", "heads"))
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "x" }) {
		t.Errorf("left %v, %v", entries, err)
	}
}

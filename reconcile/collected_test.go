// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/source/sourcetest"
)

// A05: a process that stays up sees a rewritten branch whose old commits are
// collected as one that starts does, and takes the trailer that it asks for.
func TestRewrittenAndCollected(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("first", quickstart(t))
	l := w.open()
	defer l.Close()
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err, w.said())
	}

	folded := w.repo.Git("rev-parse", "HEAD")
	w.repo.Git("checkout", "-q", "--orphan", "other")
	w.repo.Commit("another line", map[string]string{"more.yaml": "# nothing\n"})
	w.repo.Git("branch", "-D", "main")
	w.repo.Git("branch", "-m", "main")
	w.repo.Git("reflog", "expire", "--expire=now", "--all")
	w.repo.Git("gc", "-q", "--prune=now")
	for range 2 {
		if err := l.Once(context.Background()); err == nil || !strings.Contains(err.Error(), "Fairlead-Allow-Rewrite: "+folded) {
			t.Fatalf("got %v", err)
		}
	}

	w.repo.Commit("go on\n\nFairlead-Allow-Rewrite: "+folded, map[string]string{"more.yaml": sourcetest.Delete})
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err, w.said())
	}
	w.wantImages("ap-1=1.0 eu-1=1.0 us-1=1.0")
}

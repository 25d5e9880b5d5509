// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// Fold rule 4: members that bear none of our marks get nothing while the head
// is refused, and everything once it is good again, in the same process.
func TestFreshMembersWaitForAGoodHead(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("good", quickstart(t))
	w.repo.Commit("broken", map[string]string{"broken.yaml": "broken: [\n"})
	l := w.open()
	defer l.Close()
	if err := l.Once(context.Background()); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatalf("a refused head: %v", err)
	}
	w.wantWrites()
	w.repo.Commit("mended", map[string]string{"broken.yaml": sourcetest.Delete})
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err, w.said())
	}
	w.wantImages("ap-1=1.0 eu-1=1.0 us-1=1.0")
}

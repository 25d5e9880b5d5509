// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/reconcile"
)

// F30: a file that this machine cannot read says nothing about the commit. It
// is not refused, and it is folded once the file can be read.
func TestLostObjectRefusesNothing(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("good", quickstart(t))
	w.repo.Commit("more", map[string]string{"more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"})
	blob := w.repo.Git("rev-parse", "HEAD:more.yaml")
	file := filepath.Join(w.repo.Dir, ".git/objects", blob[:2], blob[2:])
	aside := filepath.Join(t.TempDir(), "object")
	if err := os.Rename(file, aside); err != nil {
		t.Fatal(err)
	}
	err := w.once()
	if err == nil || errors.Is(err, reconcile.ErrNotConverged) || !strings.Contains(err.Error(), blob+" is missing") {
		t.Errorf("got %v", err)
	}
	if said := w.said(); strings.Contains(said, "refused") {
		t.Errorf("it was refused:\n%s", said)
	}
	w.wantWrites()
	if err := os.Rename(aside, file); err != nil {
		t.Fatal(err)
	}
	l := w.open()
	defer l.Close()
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err, w.said())
	}
	w.wantImages("ap-1=1.0 eu-1=1.0 us-1=1.0")
}

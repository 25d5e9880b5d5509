// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A fold that takes long shows how far it is, and leaves nothing on the screen; a short
// one shows nothing.
func TestProgress(t *testing.T) {
	g := sourcetest.New(t)
	for range 4 {
		g.Commit("one", nil)
	}
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}

	for takes, want := range map[time.Duration]string{
		time.Millisecond: "",
		time.Second:      "\rfolding 1 of 4 commits\rfolding 2 of 4 commits\rfolding 3 of 4 commits\r" + strings.Repeat(" ", 38) + "\r",
	} {
		var out strings.Builder
		now := time.Unix(0, 0)
		h := history.New(repo, ".")
		h.Progress = history.NewProgress(&out, func() time.Time { now = now.Add(takes); return now })
		commits, err := h.Commits("", g.Head())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Fold(propagate.State{}, commits, nil); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("where a commit takes %s: %q, want %q", takes, out.String(), want)
		}
	}

	var out strings.Builder
	now := time.Unix(0, 0)
	p := history.NewProgress(&out, func() time.Time { now = now.Add(time.Minute); return now })
	p.Folded(1_200, 5_648)
	if out.String() != "\rfolding 1,200 of 5,648 commits" {
		t.Errorf("it says %q", out.String())
	}
}

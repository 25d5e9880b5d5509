// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

func subjects(history []*source.Commit) (out []string) {
	for _, c := range history {
		out = append(out, c.Subject)
	}
	return out
}

func TestHistoryIsTheFirstParentLine(t *testing.T) {
	g := sourcetest.New(t)
	one := g.Commit("one", nil)
	g.Branch("side")
	g.Commit("side one\n\nFairlead-Allow-Delete: sha256:1", nil)
	side := g.Commit("side two\n\nFairlead-Begin: true", nil)
	g.Checkout("main")
	g.Commit("two", nil)
	merge := g.Merge("side", "merge of a forge\n\nReviewed-by: Grace")
	g.Commit("four", nil)
	r := open(t, g.Dir)

	history, err := r.History("", "main")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := subjects(history), []string{"one", "two", "merge of a forge", "four"}; !slices.Equal(got, want) {
		t.Errorf("history is %q, want %q", got, want)
	}

	m := history[2]
	want := []source.Trailer{{"Reviewed-by", "Grace"}} // what it merges has no say (decision 46)
	if m.Hash != merge || m.Parent != history[1].Hash || !slices.Equal(m.Trailers, want) {
		t.Errorf("merge is %+v", m)
	}
	if m.Author != "Ada <ada@example.com>" || m.When.IsZero() || m.Authored.IsZero() {
		t.Errorf("merge by %q at %v and %v", m.Author, m.Authored, m.When)
	}

	since, err := r.History(one, merge)
	if err != nil || !reflect.DeepEqual(subjects(since), []string{"two", "merge of a forge"}) {
		t.Errorf("since one: %q, %v", subjects(since), err)
	}
	if same, err := r.History("main", "main"); err != nil || len(same) != 0 {
		t.Errorf("since itself: %q, %v", subjects(same), err)
	}
	if _, err := r.History(side, "main"); !errors.Is(err, source.ErrNotAncestor) {
		t.Errorf("since a merged commit: %v", err)
	}
	if base, err := r.MergeBase("main", side); err != nil || base != side {
		t.Errorf("merge base is %s, %v", base, err)
	}
	if base, err := r.MergeBase("main~2", side); err != nil || base != one {
		t.Errorf("merge base is %s, %v; want %s", base, err, one)
	}

	ahead, err := r.Ahead("main~2", "main")
	if err != nil || !slices.Equal(subjects(ahead), []string{"four", "merge of a forge"}) {
		t.Errorf("ahead of main~2: %v, %v", subjects(ahead), err)
	}
}

func TestT14ShallowBoundaryIsNoRoot(t *testing.T) {
	g := sourcetest.New(t)
	for i := range 4 {
		g.Commit(fmt.Sprint(i), nil)
	}

	clone := filepath.Join(t.TempDir(), "shallow")
	g.Git("clone", "-q", "--depth=2", "file://"+g.Dir, clone)
	r := open(t, clone)
	boundary := g.Git("rev-parse", "main~1")

	_, err := r.History("", "HEAD")
	var shallow *source.ShallowError
	if !errors.As(err, &shallow) || shallow.Boundary != boundary || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Fatalf("got %v", err)
	}
	if since, err := r.History("HEAD~1", "HEAD"); err != nil || len(since) != 1 {
		t.Errorf("within the clone: %v, %v", since, err)
	}
	if _, err := r.Resolve("HEAD~3"); !errors.As(err, &shallow) {
		t.Errorf("got %v", err)
	}

	g.GitIn(clone, "", "fetch", "-q", "--unshallow")
	if all, err := r.History("", "HEAD"); err != nil || len(all) != 4 {
		t.Errorf("deepened: %v, %v", all, err)
	}
}

func TestMergeBaseOfStrangers(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", nil)
	g.Git("checkout", "-q", "--orphan", "other")
	g.Commit("other", nil)
	if _, err := open(t, g.Dir).MergeBase("main", "other"); !errors.Is(err, source.ErrNoMergeBase) {
		t.Errorf("got %v", err)
	}
}

// For any history, git agrees on the line, on what is ahead, and on the merge base,
// however wrong the dates are (A14).
func TestHistoryAgreesWithGit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := sourcetest.New(t)
		hashes := grow(rt, g)
		r := open(t, g.Dir)
		pick := rapid.SampledFrom(hashes)
		a, b := pick.Draw(rt, "a"), pick.Draw(rt, "b")

		want := strings.Fields(g.Git("log", "--format=%H", "--first-parent", "--reverse", b))
		history, err := r.History("", b)
		if err != nil {
			rt.Fatal(err)
		}

		var got []string
		for _, c := range history {
			got = append(got, c.Hash)
			if want := []source.Trailer{{"Number", c.Subject}}; !slices.Equal(c.Trailers, want) {
				rt.Fatalf("%s: trailers %v, want %v", c.Subject, c.Trailers, want)
			}
		}

		if !slices.Equal(got, want) {
			rt.Fatalf("history is %v, want %v", got, want)
		}

		var ahead []string
		for _, hash := range slices.Backward(want) {
			if slices.Contains(strings.Fields(g.Git("merge-base", "--all", hash, a)), hash) {
				break
			}
			ahead = append(ahead, hash)
		}
		in, err := r.Ahead(a, b)
		if err != nil {
			rt.Fatal(err)
		}
		if got := hashesOf(in); !slices.Equal(got, ahead) {
			rt.Fatalf("%s is ahead of %s by %v, want %v", b, a, got, ahead)
		}

		base, err := r.MergeBase(a, b)
		if err != nil {
			rt.Fatal(err)
		}
		if bases := strings.Fields(g.Git("merge-base", "--all", a, b)); !slices.Contains(bases, base) {
			rt.Fatalf("merge base is %s, want one of %v", base, bases)
		}
	})
}

// grow makes commits with random parents, and dates that jump by some hours.
// Each has its number as its subject and as its only trailer.
func grow(rt *rapid.T, g *sourcetest.Repo) (hashes []string) {
	var stream strings.Builder
	n := rapid.IntRange(1, 14).Draw(rt, "commits")
	for i := range n {
		when := 1767225600 + i*3600 + rapid.SampledFrom([]int{0, 0, 1, 5, 48, 1000, -1, -5, -48, -1000}).Draw(rt, "skew")*3600
		message := fmt.Sprintf("%d\n\nNumber: %d\n", i, i)
		fmt.Fprintf(&stream, "commit refs/heads/c%d\nmark :%d\ncommitter Ada <ada@example.com> %d +0000\ndata %d\n%s", i, i+1, when, len(message), message)

		if i > 0 {
			parents := rapid.SliceOfNDistinct(rapid.IntRange(max(0, i-5), i-1), 1, 3, rapid.ID[int]).Draw(rt, "parents")
			for j, p := range parents {
				fmt.Fprintf(&stream, "%s :%d\n", []string{"from", "merge", "merge"}[j], p+1)
			}
		}

		stream.WriteString("\n")
	}

	g.GitIn(g.Dir, stream.String(), "fast-import", "--quiet")
	for i := range n {
		hashes = append(hashes, g.Git("rev-parse", fmt.Sprintf("c%d", i)))
	}

	return hashes
}

func hashesOf(commits []*source.Commit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.Hash)
	}
	return out
}

func TestTrailersAreFoundAsGitFindsThem(t *testing.T) {
	g := sourcetest.New(t)
	for name, message := range map[string]string{
		"none":            "subject\n\nbody",
		"subject only":    "Fix: this",
		"one":             "subject\n\nFairlead-Begin: true\n",
		"two":             "subject\n\nbody\n\nA-b: 1\nC: two words\n",
		"in the middle":   "subject\n\nKey: no\n\nbody\n",
		"mixed":           "subject\n\nKey: no\nprose\n",
		"signed":          "subject\n\nprose\nKey: yes\nSigned-off-by: Ada <a@b>\n",
		"continued":       "subject\n\nKey: one\n two\n",
		"space":           "subject\n\nKey : value\n",
		"crlf":            "subject\r\n\r\nKey: value\r\n",
		"empty value":     "subject\n\nKey:\n",
		"cherry":          "subject\n\nKey: v\n(cherry picked from commit 123)\n",
		"blank lines end": "subject\n\nKey: v\n\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			hash := g.Commit(message, nil)
			c, err := open(t, g.Dir).Commit(hash)
			if err != nil {
				t.Fatal(err)
			}

			var got strings.Builder
			for _, t := range c.Trailers {
				fmt.Fprintf(&got, "%s=%s\n", t.Key, t.Value)
			}

			want := g.Git("log", "-1", "--format=%(trailers:only,unfold,key_value_separator==)", hash)
			if strings.TrimSpace(got.String()) != strings.ReplaceAll(want, "\r", "") {
				t.Errorf("got %q, git finds %q", got.String(), want)
			}
		})
	}
}

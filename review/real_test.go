// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/review"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
	realforge "github.com/fairlead/fairlead/testenv/forge"
)

// The same on a real Gitea, as an account that may write: a pull request of the repository,
// one of a fork that is refused and then allowed, and a merge that has the other one
// planned again.
func TestReviewsOnGitea(t *testing.T) {
	g := realforge.Start(t)
	ann, bot, eve := must1(g.User("ann"))(t), must1(g.User("fleet-bot"))(t), must1(g.User("eve"))(t)
	const repo = "ann/fleet"
	must(t, g.Repo(ann, "fleet"))
	must(t, g.Do(ann, "PUT", "/repos/"+repo+"/collaborators/fleet-bot", map[string]string{"permission": "write"}, nil))

	w := &world{t: t, repo: sourcetest.Txtar(t, fleet), digests: map[string]map[object.ID]object.Digest{}}
	w.repo.Commit("web", template("web", "1.0"))
	w.repo.Git("push", "-q", g.CloneURL(ann, repo), "main")
	w.mirror = must1(source.Clone(t.Context(), filepath.Join(t.TempDir(), "mirror"), g.CloneURL(bot, repo), source.Auth{}))(t)
	w.states = &history.States{Repo: w.mirror, History: history.New(w.mirror, ".")}
	w.settings = review.Settings{Target: forge.Target{Kind: forge.KindGitea, URL: g.URL(), Repo: repo}, Token: bot.Token, Interval: time.Hour}
	w.reviewer = w.start(nil)

	// ann opens a pull request of a branch, and eve one of her fork.
	w.repo.Branch("change")
	change := w.repo.Commit("change", template("web", "2.0"))
	w.repo.Git("push", "-q", g.CloneURL(ann, repo), "change")
	ours := must1(g.OpenPull(ann, repo, "change", "main"))(t)
	w.repo.Checkout("main")
	w.repo.Branch("gift")
	gift := w.repo.Commit("gift", template("api", "1.0"))
	must(t, g.Fork(eve, repo))
	w.repo.Git("push", "-q", g.CloneURL(eve, "eve/fleet"), "gift")
	theirs := must1(g.OpenPull(eve, repo, "eve:gift", "main"))(t)

	has := func(number int64, parts ...string) string {
		t.Helper()
		comments := must1(g.Comments(ann, repo, number))(t)
		if len(comments) != 1 || comments[0].User.Login != "fleet-bot" {
			t.Fatalf("the comments on %d are %+v; the notes are %+v", number, comments, w.notes)
		}
		for _, part := range parts {
			if !strings.Contains(comments[0].Body, part) {
				t.Errorf("there is no %q in\n%s", part, comments[0].Body)
			}
		}
		return comments[0].Body
	}
	status := func(commit, want string) {
		t.Helper()
		all := must1(g.Statuses(ann, repo, commit))(t)
		if len(all) == 0 {
			t.Fatalf("%s has no status; the notes are %+v", commit, w.notes)
		}
		if got := all[0].Context + " " + all[0].Status + ": " + all[0].Description; got != want {
			t.Errorf("the status of %s is %q, want %q", commit, got, want)
		}
	}

	w.look()
	has(ours, "### Fleet plan: 2 now", "`key version 1.0 -> 2.0`")
	status(change, "fairlead/plan success: 2 now")
	status(gift, "fairlead/plan failure: not planned: it comes from a fork")

	w.settings.Forks = true
	w.reviewer.Set(w.settings)
	w.look()
	before := has(theirs, "### Fleet plan: 2 now", "create", "shop/api")
	status(gift, "fairlead/plan success: 2 now")
	if w.mirror.Has(gift) {
		t.Error("the mirror has the commit of a fork")
	}

	must(t, g.Merge(ann, repo, ours))
	merged := w.state().Commit
	w.rollout = review.Rollout{Commit: merged, State: forge.StatePending, Text: "applying: on 0 of 2 clusters"}
	w.look()
	status(merged, "fairlead/acme pending: applying: on 0 of 2 clusters")
	w.rollout = review.Rollout{Commit: merged, State: forge.StateSuccess, Text: "applied on 2 of 2 clusters"}
	w.look()
	status(merged, "fairlead/acme success: applied on 2 of 2 clusters")
	if after := has(theirs, merged[:7]); after == before {
		t.Error("the branch has moved, and the plan is as it was")
	}
	for _, n := range w.notes {
		if n.Err != nil || strings.Contains(n.Text, bot.Token) {
			t.Errorf("it has failed: %+v", n)
		}
	}
}

func must1[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

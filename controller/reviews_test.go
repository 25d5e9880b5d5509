// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr/funcr"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// A pull request gets its plan from the controller, and the commit that merges it is shown
// until it is applied. The token of the forge comes later than the Fleet, which follows the
// branch before; that the forge is away changes no condition.
func TestPullRequests(t *testing.T) {
	const token = "canary-f02a77"
	var mu sync.Mutex
	var log strings.Builder
	h := newHub(t)
	h.run(func(o *controller.Options) {
		o.Log = funcr.New(func(prefix, args string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&log, prefix, args)
		}, funcr.Options{Verbosity: 1})
	})
	f := fakeforge.GitHub(token)
	t.Cleanup(f.Close)

	acme := h.fleet("acme", func(fl *v1alpha1.Fleet) {
		fl.Spec.PullRequests = &v1alpha1.PullRequestsSpec{Provider: "github", URL: f.URL, Repository: fakeforge.Repo, SecretRef: meta.LocalObjectReference{Name: "forge"}}
	})
	h.create(acme)
	h.waitFor("acme", "Ready=True")
	h.eventually("it is told that the token is missing", func() string {
		if got := h.events("acme"); !strings.Contains(got, "Warning PullRequestsFailed: Secret team/forge: not found") {
			return got + "."
		}
		return ""
	})

	h.secret("forge", map[string]string{"token": token})
	begun := h.repo.Head()
	h.eventually("the head is shown as applied", func() string { return lastStatus(f, begun, "fairlead/acme success: applied on 3 of 3 clusters") })

	h.repo.Git("checkout", "-q", "-b", "change")
	h.release("2.0")
	head := h.repo.Head()
	h.repo.Git("update-ref", "refs/pull/7/head", head)
	h.repo.Checkout("main")
	f.SetPull(7, fakeforge.Pull{Head: head, Target: "main"})
	f.SetBranch("main", begun)
	look := 0
	lookNow := func() {
		look++
		edit(h, acme, func(fl *v1alpha1.Fleet) {
			fl.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": fmt.Sprint("look ", look)}
		})
	}
	lookNow()
	h.eventually("the pull request is planned", func() string { return lastStatus(f, head, "fairlead/plan success: ") })
	if all := f.Comments(7); len(all) != 1 || !strings.Contains(all[0].Body, "### Fleet plan: ") || !strings.Contains(all[0].Body, "from what clusters reported") {
		t.Fatalf("the comments are %+v", all)
	}
	if got := h.image("eu-1"); got != "1.0" {
		t.Errorf("eu-1 runs %q of a pull request", got)
	}

	merged := h.repo.Merge("change", "Merge change")
	f.SetBranch("main", merged)
	f.SetPull(7, fakeforge.Pull{Head: head, Target: "main", Closed: true})
	h.eventually("the merge is applied", func() string { return lastStatus(f, merged, "fairlead/acme success: applied on 3 of 3 clusters") })
	if got := h.image("us-1"); got != "2.0" {
		t.Errorf("us-1 runs %q", got)
	}

	h.commit("broken", map[string]string{"policies/broken.yaml": "kind: ["})
	broken := h.repo.Head()
	h.eventually("the refusal is shown", func() string { return lastStatus(f, broken, "fairlead/acme failure: refused: policies/broken.yaml:1") })
	h.waitFor("acme", "Ready=False CommitRefused")
	h.repo.Git("revert", "--no-edit", "HEAD")
	h.waitFor("acme", "Ready=True")

	f.Fail(func(*http.Request) *fakeforge.Answer {
		return &fakeforge.Answer{Code: http.StatusForbidden, Body: `{"message": "no entry for ` + token + `"}`}
	})
	lookNow()
	h.eventually("it is told that the forge is away", func() string {
		if got := h.events("acme"); !strings.Contains(got, "Warning PullRequestsFailed: the open pull requests cannot be read: ") {
			return got + "."
		}
		return ""
	})
	if got := h.status("acme"); !strings.Contains(got, "Ready=True") {
		t.Errorf("the forge is away, and the Fleet is\n%s", got)
	}

	mu.Lock()
	defer mu.Unlock()
	if all := log.String() + h.events("acme") + h.status("acme"); strings.Contains(all, token) {
		t.Errorf("the token of the forge is in\n%s", all)
	}
}

// lastStatus returns what the last status of a commit is instead of what it should be, ""
// if it begins so.
func lastStatus(f *fakeforge.Server, commit, want string) string {
	all := f.Statuses(commit)
	if len(all) == 0 {
		return "there is none."
	}
	last := all[len(all)-1]
	if got := last.Context + " " + last.State + ": " + last.Description; !strings.HasPrefix(got, want) {
		return got + "."
	}
	return ""
}

// How far the head is, in one line.
func TestRollout(t *testing.T) {
	refused := func(r *reconcile.Result) {
		r.Accepted = first
		r.Refusal = &propagate.Refusal{Commit: second, Problems: []fleet.Problem{{Origin: fleet.Origin{File: "policies/web.yaml", Line: 12}, Message: "no such\ncluster"}}}
	}
	for name, test := range map[string]struct {
		result reconcile.Result
		want   string
	}{
		"nothing yet": {reconcile.Result{}, "<nothing>"},
		"applied":     {at(second, current("a"), current("b")), "success: applied on 2 of 2 clusters"},
		"one cluster": {at(second, current("a")), "success: applied on 1 of 1 cluster"},
		"applying":    {at(second, current("a"), busy("b")), "pending: applying: on 1 of 2 clusters"},
		"one is away": {at(second, current("a"), away("b")), "pending: applying: on 1 of 2 clusters"},
		"folding":     {with(at(second, current("a")), func(r *reconcile.Result) { r.Accepted = first }), "<nothing>"},
		"refused":     {with(at(second, current("a")), refused), "failure: refused: policies/web.yaml:12: "},
		"to confirm":  {with(at(second, current("a")), func(r *reconcile.Result) { refused(r); r.Refusal.Guard = &propagate.Guard{} }), "failure: awaits confirmation"},
		"not signed": {with(at(first, current("a")), func(r *reconcile.Result) {
			r.Err = fmt.Errorf("fetch: %w", &source.VerificationError{Commit: second, Reason: "it is not signed"})
		}), "failure: commit 22222222 is not verified: it is not signed"},
		"one is held":  {with(at(second, current("a"), current("b")), func(r *reconcile.Result) { r.Works["b"] = reconcile.Works{Total: 10, Held: 1} }), "success: applied on 1 of 2 clusters, held on 1"},
		"one is wrong": {at(second, current("a"), failing("b", "Invalid")), "pending: applying: on 1 of 2 clusters, failing on 1"},
	} {
		got := controller.Rollout(&test.result)
		if name != "refused" && got != test.want || !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Where the forge and the repository are, if only the address to fetch from is known.
func TestForgeOfARepository(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com/acme/fleet.git":          "https://github.com acme/fleet",
		"ssh://git@git.example.com:2222/acme/fleet/": "https://git.example.com acme/fleet",
		"http://localhost:3000/acme/fleet":           "http://localhost:3000 acme/fleet",
		"https://ada:pass@git.example.com/acme/f":    "https://git.example.com acme/f",
		"https://git.example.com/fleet.git":          `specify repository: "fleet" is not of the form OWNER/NAME`,
		"https://git.example.com/a/b/c.git":          `specify repository: "a/b/c" is not of the form OWNER/NAME`,
	} {
		if got := controller.ForgeOf(&v1alpha1.PullRequestsSpec{Provider: "gitea"}, address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got, want := controller.ForgeOf(&v1alpha1.PullRequestsSpec{Provider: "gitlab"}, "https://gitlab.com/a/b/c.git"), "https://gitlab.com a/b/c"; got != want {
		t.Errorf("a subgroup: %s, want %s", got, want)
	}
}

// The token is the key token, or else password; what is wrong with it is told without it.
func TestTokenOfASecret(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"none":      {nil, "Secret a/b: not found"},
		"empty":     {map[string][]byte{"token": []byte(" \n")}, "Secret a/b: has neither token nor password"},
		"token":     {map[string][]byte{"token": []byte("t1\n"), "password": []byte("t2")}, "t1"},
		"password":  {map[string][]byte{"username": []byte("x"), "password": []byte("t2")}, "t2"},
		"two lines": {map[string][]byte{"token": []byte("t1\nt2")}, "Secret a/b: the key token holds more than a token: it has blanks or control characters"},
	} {
		if got := controller.TokenIn(test.data, "Secret a/b"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

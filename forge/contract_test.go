// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// host is a forge with one open pull request, for the suite that every forge passes.
type host interface {
	forge(t *testing.T) forge.Forge
	push(t *testing.T) (head string) // a new commit on the pull request
	move(t *testing.T) (base string) // a new commit on its target
	say(t *testing.T, body string)   // a comment by somebody else
	bodies(t *testing.T) []string    // of all comments, oldest first
	status(t *testing.T, commit string) string
	writes(t *testing.T) int // requests that wrote since the last call; -1 where nobody counts
}

func TestContract(t *testing.T) {
	for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
		h := newFake(t, start)
		t.Run(h.Kind(), func(t *testing.T) { contract(t, h) })
	}
}

// contract is the life of a pull request.
func contract(t *testing.T, h host) {
	base, head := h.move(t), h.push(t)
	h.say(t, "<!-- fairlead:plan:v1 -->\nI am the plan")
	f := h.forge(t)
	update := planOf(base, head, cell("update", "web", "eu-1"))

	expect(t, h, post(t, f, update), "posted", 2)
	has(t, h.bodies(t)[1], "<!-- fairlead:plan:v1 -->\n### Fleet plan: 1 now\n", "`eu-1`")
	lacks(t, h.bodies(t)[1], "Earlier plans", "planned on")
	if got := h.status(t, head); got != "success: 1 now" {
		t.Errorf("the status is %q", got)
	}

	h.writes(t)
	expect(t, h, post(t, f, update), "unchanged", 2)
	if n := h.writes(t); n > 0 {
		t.Errorf("an equal plan was %d requests that write", n)
	}

	second := h.push(t)
	expect(t, h, post(t, f, planOf(base, second, cell("update", "web", "eu-1"), cell("update", "web", "us-1"))), "edited", 2)
	has(t, h.bodies(t)[1], "### Fleet plan: 2 now\n", "Earlier plans of this pull request (1)", "| `"+head[:7]+"` | 1 now |")
	if got := h.bodies(t)[0]; got != "<!-- fairlead:plan:v1 -->\nI am the plan" {
		t.Errorf("the comment of somebody else is %q now", got)
	}

	third := h.push(t)
	deletes := planOf(base, third, cell("delete", "web", "us-1"))
	deletes.Findings = []plan.Finding{{Code: "fleet-wide-delete", Severity: fleet.SeverityError, Message: "deletes 1 of 1 works", Trailer: "Fairlead-Allow-Delete: abc"}}
	done := post(t, f, deletes)
	expect(t, h, done, "edited", 3)
	has(t, h.bodies(t)[1], "Earlier plans of this pull request (2)")
	has(t, h.bodies(t)[2], "`"+third[:7]+"` adds 1 deletion and 1 error**", "- deletes `Deployment shop/web` on `us-1`", "- error `fleet-wide-delete`")
	if got := h.status(t, third); !strings.HasPrefix(got, "failure: ") {
		t.Errorf("the status is %q", got)
	}
	h.writes(t)
	expect(t, h, post(t, f, deletes), "unchanged", 3)
	if n := h.writes(t); n > 0 {
		t.Errorf("an equal plan was %d requests that write", n)
	}

	moved := h.move(t)
	expect(t, h, post(t, f, deletes), "edited", 3)
	has(t, h.bodies(t)[1], "`main` is at `"+moved[:7]+"` now, and this was planned on `"+base[:7]+"`")

	listed(t, h, f, third)
	rollout(t, h, f, moved)

	if _, err := forge.Post(t.Context(), f, update, forge.Options{Timeout: forge.Timeout}); err == nil || !strings.Contains(err.Error(), "it was pushed to since") {
		t.Errorf("a plan of an earlier head: %v", err)
	}
}

// listed is the pull request in the list of open ones against its target.
func listed(t *testing.T, h host, f forge.Forge, head string) {
	t.Helper()
	open, more, err := f.Pulls(t.Context(), "main", 10)
	if err != nil || more || len(open) != 1 {
		t.Fatalf("the open pull requests are %+v, more %v: %v", open, more, err)
	}
	p := open[0]
	if p.Head != head || p.Fork || p.Draft || !strings.HasPrefix(p.Ref, "refs/") || !strings.HasSuffix(p.Ref, fmt.Sprintf("/%d/head", p.Number)) {
		t.Errorf("it is listed as %+v", p)
	}
	if open, more, err = f.Pulls(t.Context(), "elsewhere", 10); err != nil || more || len(open) > 0 {
		t.Errorf("against another branch are %+v, more %v: %v", open, more, err)
	}
}

// rollout is the status of a commit of the branch, from its beginning to its end.
func rollout(t *testing.T, h host, f forge.Forge, commit string) {
	t.Helper()
	show := func(state forge.State, text string) {
		t.Helper()
		if err := forge.ShowStatus(t.Context(), f, commit, forge.Status{Context: "fairlead/acme", State: state, Description: text}); err != nil {
			t.Fatal(err)
		}
	}
	show(forge.StatePending, "applying: on 0 of 3 clusters")
	show(forge.StatePending, "applying: on 2 of 3 clusters")
	if got := h.status(t, commit); !strings.HasPrefix(got, "pending: applying: on ") {
		t.Errorf("the status is %q", got)
	}
	show(forge.StateSuccess, "applied on 3 of 3 clusters")
	if got := h.status(t, commit); got != "success: applied on 3 of 3 clusters" {
		t.Errorf("the status is %q", got)
	}
	h.writes(t)
	show(forge.StateSuccess, "applied on 3 of 3 clusters")
	if n := h.writes(t); n > 0 {
		t.Errorf("an equal status was %d requests that write", n)
	}
}

func post(t *testing.T, f forge.Forge, p *plan.Plan) forge.Result {
	t.Helper()
	done, err := forge.Post(t.Context(), f, p, forge.Options{Timeout: forge.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func expect(t *testing.T, h host, done forge.Result, what string, comments int) {
	t.Helper()
	if done.Comment != what || len(h.bodies(t)) != comments {
		t.Fatalf("%s with %d comments, want %s with %d:\n%s", done.Comment, len(h.bodies(t)), what, comments, strings.Join(h.bodies(t), "\n---\n"))
	}
}

func has(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Fatalf("there is no %q in\n%s", part, body)
		}
	}
}

func lacks(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(body, part) {
			t.Fatalf("there is %q in\n%s", part, body)
		}
	}
}

// planOf is a plan with some cells, as plan -o json has it.
func planOf(base, head string, cells ...plan.Cell) *plan.Plan {
	p := &plan.Plan{
		APIVersion: report.APIVersion, Kind: "Plan", FormatVersion: "1.0", Complete: true,
		Base: plan.Revision{Commit: base}, Head: plan.Revision{Commit: head}, Cells: cells,
	}
	for _, c := range cells {
		n := plan.CellCounts{Now: 1}
		if c.Action == propagate.ActionDelete {
			n = plan.CellCounts{Deleted: 1}
		}
		p.Clusters = append(p.Clusters, plan.Cluster{Name: c.Cluster, CellCounts: n})
		p.Summary.Cells.Now += n.Now
		p.Summary.Cells.Deleted += n.Deleted
	}
	return p
}

func cell(action, name, cluster string) plan.Cell {
	return plan.Cell{
		Object:  report.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name},
		Cluster: cluster, Action: propagate.Action(action), Disposition: propagate.Now, Change: "c1",
		Because: []report.Because{{Code: "template-changed", File: "apps/web.yaml", Line: 3}},
	}
}

// fake is a host on a server in the test.
type fake struct {
	*fakeforge.Server
	commits int
	head    string
}

const secret = "canary-7c1d0e"

func newFake(t *testing.T, start func(string) *fakeforge.Server) *fake {
	t.Helper()
	f := &fake{Server: start(secret)}
	t.Cleanup(f.Close)
	f.SetPageSize(2)
	return f
}

func (f *fake) target() forge.Target {
	return forge.Target{Kind: f.Kind(), URL: f.URL, Repo: fakeforge.Repo, Pull: 7}
}

func (f *fake) forge(t *testing.T) forge.Forge {
	t.Helper()
	to, err := forge.Open(t.Context(), f.target(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func (f *fake) commit() string {
	f.commits++
	sum := sha1.Sum([]byte(fmt.Sprint(f.commits)))
	return hex.EncodeToString(sum[:])
}

func (f *fake) push(*testing.T) string {
	f.head = f.commit()
	f.SetPull(7, fakeforge.Pull{Head: f.head, Target: "main", Branch: "acme:change"})
	return f.head
}

func (f *fake) move(*testing.T) string {
	c := f.commit()
	f.SetBranch("main", c)
	return c
}

func (f *fake) say(_ *testing.T, body string) {
	f.Say(7, fakeforge.User{ID: 5, Login: "mallory"}, body)
}

func (f *fake) bodies(*testing.T) (all []string) {
	for _, c := range f.Comments(7) {
		all = append(all, c.Body)
	}
	return all
}

func (f *fake) status(_ *testing.T, commit string) string {
	all := f.Statuses(commit)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	return strings.Replace(last.State, "failed", "failure", 1) + ": " + last.Description
}

func (f *fake) writes(*testing.T) (n int) {
	for _, r := range f.Requests() {
		if r.Method != "GET" && r.Path != "/api/graphql" {
			n++
		}
	}
	return n
}

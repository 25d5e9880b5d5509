// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	realforge "github.com/fairlead/fairlead/testenv/forge"
)

// A real Gitea passes the suite of the servers in the test.
func TestContractOnGitea(t *testing.T) {
	g := newReal(t)
	contract(t, g)

	for _, body := range g.bodies(t)[1:] {
		html := g.rendered(t, body)
		lacks(t, html, "fairlead:plan:v1", "&lt;!--", "keys")
		has(t, html, "<code>")
	}
	has(t, g.rendered(t, g.bodies(t)[1]), "<details", "<table>", "Earlier plans of this pull request (2)")
}

// What a plan names does not link, notify or load anything.
func TestHostilePlanOnGitea(t *testing.T) {
	g := newReal(t)
	base := g.git(t, "rev-parse", "main")
	f := g.forge(t)
	post(t, f, planOf(base, g.git(t, "rev-parse", "change")))
	const hostile = "x|y` @ann <img src=//evil.example.com/i> [l](//evil.example.com) https://evil.example.com #1 ann/fleet#1 :tada: --> <b>"
	p := planOf(base, g.push(t), cell("delete", strings.TrimPrefix(hostile, "x|y"), hostile))
	p.Findings = []plan.Finding{{
		Code: hostile, Severity: fleet.SeverityCaution, Message: hostile, Policy: hostile, Object: &report.Object{Kind: hostile, Name: hostile},
	}}
	post(t, f, p)

	for _, body := range g.bodies(t) {
		lacks(t, g.rendered(t, body), "<img", "class=\"mention\"", "href=\"//evil", "href=\"https://evil", "ref-issue", "emoji")
	}
	alert := g.rendered(t, g.bodies(t)[1])
	lacks(t, alert, "ref-issue", "emoji")
	has(t, alert, "deletes <code>Deployment shop/&#39; @ann")
}

// gitea is a host on a real Gitea: the bot writes, ann owns the repository.
type gitea struct {
	server   *realforge.Server
	ann, bot realforge.User
	dir      string
	number   int64
	count    int
}

const realRepo = "ann/fleet"

func newReal(t *testing.T) *gitea {
	t.Helper()
	g := &gitea{server: realforge.Start(t), dir: t.TempDir()}
	g.ann, g.bot = must(g.server.User("ann"))(t), must(g.server.User("fleet-bot"))(t)
	check(t, g.server.Repo(g.ann, "fleet"))
	check(t, g.server.Do(g.ann, "PUT", "/repos/"+realRepo+"/collaborators/fleet-bot", map[string]string{"permission": "write"}, nil))
	g.git(t, "init", "-q", "-b", "main")
	g.git(t, "remote", "add", "origin", g.server.CloneURL(g.ann, realRepo))
	g.move(t)
	g.git(t, "checkout", "-q", "-b", "change")
	g.push(t)
	g.number = must(g.server.OpenPull(g.ann, realRepo, "change", "main"))(t)
	return g
}

func (g *gitea) forge(t *testing.T) forge.Forge {
	t.Helper()
	target := forge.Target{Kind: forge.KindGitea, URL: g.server.URL(), Repo: realRepo, Pull: g.number}
	return must(forge.Open(t.Context(), target, g.bot.Token))(t)
}

func (g *gitea) push(t *testing.T) string { return g.commit(t, "change") }

func (g *gitea) move(t *testing.T) string { return g.commit(t, "main") }

// commit adds a commit to a branch of the forge.
func (g *gitea) commit(t *testing.T, branch string) string {
	t.Helper()
	if g.count > 0 && branch != g.git(t, "branch", "--show-current") {
		g.git(t, "checkout", "-q", branch)
	}
	g.count++
	g.git(t, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("commit ", g.count))
	g.git(t, "push", "-q", "origin", branch)
	return g.git(t, "rev-parse", "HEAD")
}

func (g *gitea) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "HOME="+g.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g *gitea) say(t *testing.T, body string) {
	check(t, g.server.Say(g.ann, realRepo, g.number, body))
}

func (g *gitea) bodies(t *testing.T) (all []string) {
	for _, c := range must(g.server.Comments(g.ann, realRepo, g.number))(t) {
		all = append(all, c.Body)
	}
	return all
}

func (g *gitea) status(t *testing.T, commit string) string {
	all := must(g.server.Statuses(g.ann, realRepo, commit))(t)
	if len(all) == 0 {
		return ""
	}
	return all[0].Status + ": " + all[0].Description
}

// rendered is a comment as readers see it.
func (g *gitea) rendered(t *testing.T, body string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, g.server.URL()+"/api/v1/markdown", strings.NewReader(string(must(json.Marshal(map[string]string{
		"Text": body, "Mode": "comment", "Context": realRepo,
	}))(t))))
	check(t, err)
	req.Header.Set("Authorization", "token "+g.ann.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer resp.Body.Close()
	return string(must(io.ReadAll(resp.Body))(t))
}

func (g *gitea) writes(*testing.T) int { return -1 }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

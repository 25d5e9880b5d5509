// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// The kinds of forges.
const (
	KindGitHub = "github"
	KindGitLab = "gitlab"
	KindGitea  = "gitea" // Forgejo speaks the same
)

// Kinds are all of them.
var Kinds = []string{KindGitHub, KindGitLab, KindGitea}

// Target says which pull request on which forge is meant.
type Target struct {
	Kind string
	URL  string // of the forge, or of its API; "" is the public one
	Repo string // OWNER/NAME, or the path of a project
	Pull int64
	// Head is the commit that the plan was made for, as the forge's event names it; ""
	// where it names none, and the plan is asked.
	Head string
	// Branch is OWNER:BRANCH of a run whose pull request the event does not name: that
	// of a fork.
	Branch string
}

// Environment is where the program runs.
type Environment struct {
	Getenv func(string) string
	Open   func(string) (io.ReadCloser, error)
}

// Process is the environment of this process.
func Process() Environment {
	return Environment{Getenv: os.Getenv, Open: func(name string) (io.ReadCloser, error) { return os.Open(name) }}
}

// Or returns a target with what it leaves open taken from the environment. Another kind
// of forge than that of the environment is asked for in full.
func (t Target) Or(env Environment) (Target, error) {
	found, err := env.target()
	if err != nil || found.Kind == "" || t.Kind != "" && t.Kind != found.Kind {
		return t, err
	}

	if t.Repo != "" && t.Repo != found.Repo || t.Pull != 0 && t.Pull != found.Pull {
		found.Head, found.Branch = "", "" // of another pull request
	}
	t.Kind = found.Kind
	t.URL, t.Repo = either(t.URL, found.URL), either(t.Repo, found.Repo)
	t.Head, t.Branch = either(t.Head, found.Head), either(t.Branch, found.Branch)
	if t.Pull == 0 {
		t.Pull = found.Pull
	}
	return t, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Missing returns the flag that a target lacks; "" if none.
func (t Target) Missing() string {
	switch {
	case t.Kind == "":
		return "--forge"
	case t.Repo == "":
		return "--repo"
	case t.Kind == KindGitea && t.URL == "":
		return "--url"
	case t.Pull == 0 && t.Branch == "":
		return "--pull"
	}
	return ""
}

// target is what the environment says. Gitea's and Forgejo's runners set the variables
// of GitHub too.
func (e Environment) target() (Target, error) {
	switch {
	case e.Getenv("GITEA_ACTIONS") == "true", e.Getenv("FORGEJO_ACTIONS") == "true":
		return e.actions(Target{Kind: KindGitea, URL: e.Getenv("GITHUB_SERVER_URL")})
	case e.Getenv("GITHUB_ACTIONS") == "true":
		return e.actions(Target{Kind: KindGitHub, URL: e.Getenv("GITHUB_API_URL")})
	case e.Getenv("GITLAB_CI") == "true":
		return e.gitlab()
	}
	return Target{}, nil
}

// gitlab reads the variables of a merge request pipeline. In one of merged results
// CI_COMMIT_SHA is the merge, and in any other the source branch's variable is empty.
func (e Environment) gitlab() (Target, error) {
	t := Target{
		Kind: KindGitLab, URL: e.Getenv("CI_SERVER_URL"),
		Repo: either(e.Getenv("CI_MERGE_REQUEST_PROJECT_PATH"), e.Getenv("CI_PROJECT_PATH")),
	}
	iid := e.Getenv("CI_MERGE_REQUEST_IID")
	if iid == "" {
		return t, nil
	}

	t.Head = either(e.Getenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), e.Getenv("CI_COMMIT_SHA"))
	n, err := strconv.ParseInt(iid, 10, 64)
	if err != nil {
		return t, fmt.Errorf("CI_MERGE_REQUEST_IID %q is not a number", iid)
	}
	t.Pull = n
	return t, nil
}

// event is what is read of the event that started a workflow. The forge wrote it; an
// artifact of a fork's job cannot change it.
type event struct {
	PullRequest *struct {
		Number int64                `json:"number"`
		Head   struct{ SHA string } `json:"head"`
	} `json:"pull_request"`
	WorkflowRun *struct {
		HeadSHA        string `json:"head_sha"`
		HeadBranch     string `json:"head_branch"`
		HeadRepository struct {
			Owner struct{ Login string } `json:"owner"`
		} `json:"head_repository"`
		PullRequests []struct{ Number int64 } `json:"pull_requests"`
	} `json:"workflow_run"`
}

// mostEvent bounds the event that is read.
const mostEvent = 32 << 20

// actions completes a target from the variables and the event that GitHub's runner sets,
// and those that are made alike.
func (e Environment) actions(t Target) (Target, error) {
	t.Repo = e.Getenv("GITHUB_REPOSITORY")
	path := e.Getenv("GITHUB_EVENT_PATH")
	if path == "" {
		return t, nil
	}
	file, err := e.Open(path)
	if err != nil {
		return t, fmt.Errorf("event of the workflow: %w", err)
	}
	defer file.Close()

	var what event
	if err := json.NewDecoder(io.LimitReader(file, mostEvent)).Decode(&what); err != nil {
		return t, fmt.Errorf("event of the workflow %s: %w", path, err)
	}
	what.fill(&t)
	return t, nil
}

func (what event) fill(t *Target) {
	if pull := what.PullRequest; pull != nil {
		t.Pull, t.Head = pull.Number, pull.Head.SHA
	}
	run := what.WorkflowRun
	if run == nil {
		return
	}

	t.Head = run.HeadSHA
	switch {
	case len(run.PullRequests) == 1:
		t.Pull = run.PullRequests[0].Number
	case run.HeadBranch != "" && run.HeadRepository.Owner.Login != "":
		t.Branch = run.HeadRepository.Owner.Login + ":" + run.HeadBranch
	}
}

// tokens are the variables that a token is read from, first to last.
var tokens = map[string][]string{
	KindGitHub: {"FAIRLEAD_FORGE_TOKEN", "GITHUB_TOKEN"},
	KindGitLab: {"FAIRLEAD_FORGE_TOKEN", "GITLAB_TOKEN"},
	KindGitea:  {"FAIRLEAD_FORGE_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN"},
}

// Token returns the token for a kind of forge. There is no flag for it, because the
// command lines of a machine can be read by all who are on it.
func (e Environment) Token(kind string) (string, error) {
	for _, name := range tokens[kind] {
		token := strings.TrimSpace(e.Getenv(name))
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return "", fmt.Errorf("%s holds more than a token: it has blanks or control characters", name)
		}
		if token != "" {
			return token, nil
		}
	}

	text := "no token: set " + strings.Join(tokens[kind], " or ")
	if kind == KindGitLab && e.Getenv("CI_JOB_TOKEN") != "" {
		text += " to a project access token with the scope api; GitLab lets no CI_JOB_TOKEN write notes"
	}
	return "", fmt.Errorf("%s", text)
}

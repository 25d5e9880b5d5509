// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/forge"
)

const (
	headSHA  = "1111111111111111111111111111111111111111"
	mergeSHA = "2222222222222222222222222222222222222222"
)

func environment(variables, event string) forge.Environment {
	set := map[string]string{}
	for pair := range strings.FieldsSeq(variables) {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return forge.Environment{
		Getenv: func(name string) string { return set[name] },
		Open: func(name string) (io.ReadCloser, error) {
			if name != "/event.json" {
				return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("no such file")}
			}
			return io.NopCloser(strings.NewReader(event)), nil
		},
	}
}

// The variables are those that the forges document.
func TestTargetFromEnvironment(t *testing.T) {
	const actions = "GITHUB_ACTIONS=true GITHUB_REPOSITORY=acme/fleet GITHUB_EVENT_PATH=/event.json GITHUB_REF=refs/pull/7/merge GITHUB_SHA=" + mergeSHA
	const pull = `{"action":"synchronize","number":7,"pull_request":{"number":7,"head":{"sha":"` + headSHA + `"}}}`
	for name, test := range map[string]struct {
		variables, event string
		flags, want      forge.Target
	}{
		"nothing": {},
		"GitHub": {
			actions + " GITHUB_API_URL=https://api.github.com GITHUB_SERVER_URL=https://github.com", pull, forge.Target{},
			forge.Target{Kind: "github", URL: "https://api.github.com", Repo: "acme/fleet", Pull: 7, Head: headSHA},
		},
		"a push": {
			actions + " GITHUB_API_URL=https://api.github.com", `{"after":"` + headSHA + `"}`, forge.Target{},
			forge.Target{Kind: "github", URL: "https://api.github.com", Repo: "acme/fleet"},
		},
		"a run of a branch": {
			actions, `{"workflow_run":{"head_sha":"` + headSHA + `","head_branch":"change","head_repository":{"owner":{"login":"acme"}},"pull_requests":[{"number":7}]}}`, forge.Target{},
			forge.Target{Kind: "github", Repo: "acme/fleet", Pull: 7, Head: headSHA},
		},
		"a run of a fork": {
			actions, `{"workflow_run":{"head_sha":"` + headSHA + `","head_branch":"change","head_repository":{"owner":{"login":"mallory"}},"pull_requests":[]}}`, forge.Target{},
			forge.Target{Kind: "github", Repo: "acme/fleet", Head: headSHA, Branch: "mallory:change"},
		},
		"Gitea": {
			actions + " GITEA_ACTIONS=true GITHUB_SERVER_URL=https://git.example.com/ GITHUB_API_URL=https://git.example.com/api/v1", pull, forge.Target{},
			forge.Target{Kind: "gitea", URL: "https://git.example.com/", Repo: "acme/fleet", Pull: 7, Head: headSHA},
		},
		"Forgejo": {
			actions + " FORGEJO_ACTIONS=true GITEA_ACTIONS=true GITHUB_SERVER_URL=https://codeberg.org", pull, forge.Target{},
			forge.Target{Kind: "gitea", URL: "https://codeberg.org", Repo: "acme/fleet", Pull: 7, Head: headSHA},
		},
		"GitLab": {
			"GITLAB_CI=true CI_SERVER_URL=https://gitlab.com CI_PROJECT_PATH=mallory/fleet CI_MERGE_REQUEST_PROJECT_PATH=acme/ops/fleet CI_MERGE_REQUEST_IID=7 CI_COMMIT_SHA=" + headSHA, "", forge.Target{},
			forge.Target{Kind: "gitlab", URL: "https://gitlab.com", Repo: "acme/ops/fleet", Pull: 7, Head: headSHA},
		},
		"merged results": {
			"GITLAB_CI=true CI_SERVER_URL=https://gitlab.com CI_PROJECT_PATH=acme/fleet CI_MERGE_REQUEST_IID=7 CI_COMMIT_SHA=" + mergeSHA + " CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=" + headSHA, "", forge.Target{},
			forge.Target{Kind: "gitlab", URL: "https://gitlab.com", Repo: "acme/fleet", Pull: 7, Head: headSHA},
		},
		"a branch pipeline": {
			"GITLAB_CI=true CI_SERVER_URL=https://gitlab.com CI_PROJECT_PATH=acme/fleet CI_COMMIT_SHA=" + headSHA, "", forge.Target{},
			forge.Target{Kind: "gitlab", URL: "https://gitlab.com", Repo: "acme/fleet"},
		},
		"flags go first": {
			actions, pull, forge.Target{Kind: "github", URL: "https://ghe.example.com", Pull: 8},
			forge.Target{Kind: "github", URL: "https://ghe.example.com", Repo: "acme/fleet", Pull: 8},
		},
		"another forge": {
			actions, pull, forge.Target{Kind: "gitea", URL: "https://git.example.com"},
			forge.Target{Kind: "gitea", URL: "https://git.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.flags.Or(environment(test.variables, test.event))
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestBrokenEnvironment(t *testing.T) {
	for name, test := range map[string]struct{ variables, event, want string }{
		"no event":  {"GITHUB_ACTIONS=true GITHUB_EVENT_PATH=/gone.json", "", "event of the workflow: open /gone.json"},
		"no JSON":   {"GITHUB_ACTIONS=true GITHUB_EVENT_PATH=/event.json", "x", "event of the workflow /event.json: invalid character"},
		"no number": {"GITLAB_CI=true CI_MERGE_REQUEST_IID=x", "", `CI_MERGE_REQUEST_IID "x" is not a number`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := (forge.Target{}).Or(environment(test.variables, test.event)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	for _, test := range []struct {
		target forge.Target
		want   string
	}{
		{forge.Target{}, "--forge"},
		{forge.Target{Kind: "github"}, "--repo"},
		{forge.Target{Kind: "gitea", Repo: "acme/fleet"}, "--url"},
		{forge.Target{Kind: "github", Repo: "acme/fleet"}, "--pull"},
		{forge.Target{Kind: "github", Repo: "acme/fleet", Branch: "mallory:change"}, ""},
		{forge.Target{Kind: "gitlab", Repo: "acme/fleet", Pull: 7}, ""},
	} {
		if got := test.target.Missing(); got != test.want {
			t.Errorf("%+v lacks %q, want %q", test.target, got, test.want)
		}
	}
}

func TestToken(t *testing.T) {
	for name, test := range map[string]struct{ variables, kind, want, refused string }{
		"ours first":    {"FAIRLEAD_FORGE_TOKEN=a GITHUB_TOKEN=b", "github", "a", ""},
		"GitHub's":      {"GITHUB_TOKEN=b GITLAB_TOKEN=c", "github", "b", ""},
		"GitLab's":      {"GITHUB_TOKEN=b GITLAB_TOKEN=c CI_JOB_TOKEN=d", "gitlab", "c", ""},
		"Gitea's":       {"GITHUB_TOKEN=b GITEA_TOKEN=e", "gitea", "e", ""},
		"Forgejo's":     {"FORGEJO_TOKEN=f", "gitea", "f", ""},
		"none":          {"GITLAB_TOKEN=c", "github", "", "no token: set FAIRLEAD_FORGE_TOKEN or GITHUB_TOKEN"},
		"that of a job": {"CI_JOB_TOKEN=" + secret, "gitlab", "", "GitLab lets no CI_JOB_TOKEN write notes"},
		"two in one":    {"GITHUB_TOKEN=" + secret + "\x00x", "github", "", "GITHUB_TOKEN holds more than a token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := environment(test.variables, "").Token(test.kind)
			if got != test.want || (err == nil) != (test.refused == "") || err != nil && (!strings.Contains(err.Error(), test.refused) || strings.Contains(err.Error(), secret)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestBadTargets(t *testing.T) {
	for name, test := range map[string]struct {
		target forge.Target
		want   string
	}{
		"a user in the URL": {forge.Target{Kind: "gitea", URL: "https://ann:" + secret + "@git.example.com", Repo: "a/b", Pull: 1}, "has a user"},
		"a bad escape":      {forge.Target{Kind: "gitea", URL: "https://ann:" + secret + "%zz@git.example.com", Repo: "a/b", Pull: 1}, "cannot be read"},
		"no host":           {forge.Target{Kind: "gitea", URL: "git.example.com", Repo: "a/b", Pull: 1}, "is not the URL of a forge"},
		"another scheme":    {forge.Target{Kind: "gitea", URL: "ssh://git.example.com", Repo: "a/b", Pull: 1}, "is not the URL of a forge"},
		"no owner":          {forge.Target{Kind: "github", Repo: "fleet", Pull: 1}, "is not of the form OWNER/NAME"},
		"a path":            {forge.Target{Kind: "gitea", URL: "https://git.example.com", Repo: "a/b/c", Pull: 1}, "is not of the form OWNER/NAME"},
		"another forge":     {forge.Target{Kind: "bitbucket", URL: "https://x.example.com", Repo: "a/b", Pull: 1}, `there is no forge "bitbucket"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := forge.Open(t.Context(), test.target, secret); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// A forge may be named by its page or by its API.
func TestBase(t *testing.T) {
	for _, test := range []struct{ kind, url, want string }{
		{"github", "", "https://api.github.com/"},
		{"github", "https://github.com", "https://api.github.com/"},
		{"github", "https://api.github.com", "https://api.github.com/"},
		{"github", "https://ghe.example.com/", "https://ghe.example.com/api/v3/"},
		{"github", "https://ghe.example.com/api/v3", "https://ghe.example.com/api/v3/"},
		{"github", "https://acme.ghe.com", "https://api.acme.ghe.com/"},
		{"github", "https://api.acme.ghe.com", "https://api.acme.ghe.com/"},
		{"gitlab", "", "https://gitlab.com/"},
		{"gitlab", "https://git.example.com/gitlab", "https://git.example.com/gitlab/"},
		{"gitea", "https://git.example.com/", "https://git.example.com/"},
	} {
		if got, err := forge.Base(forge.Target{Kind: test.kind, URL: test.url}); got != test.want || err != nil {
			t.Errorf("%s %q: got %s, %v, want %s", test.kind, test.url, got, err, test.want)
		}
	}
}

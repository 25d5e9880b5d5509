// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v89/github"

	"github.com/fairlead/fairlead/look/plan"
)

// github is a pull request on GitHub or a GitHub Enterprise Server.
type gitHub struct {
	client      *github.Client
	owner, name string
	number      int
}

func openGitHub(ctx context.Context, t Target, base *url.URL, client *http.Client) (Forge, error) {
	owner, name, err := t.split()
	if err != nil {
		return nil, err
	}
	api := base.String()
	c, err := github.NewClient(github.WithHTTPClient(client), github.WithURLs(&api, nil),
		github.WithUserAgent(userAgent), github.WithDisableRateLimitCheck())
	if err != nil {
		return nil, err
	}

	g := &gitHub{client: c, owner: owner, name: name, number: int(t.Pull)}
	if t.Pull == 0 && t.Branch != "" {
		g.number, err = g.find(ctx, t.Branch, t.Head)
	}
	return g, err
}

// find returns the open pull request of a branch, which may be that of a fork: an event
// of a run does not name those.
func (g *gitHub) find(ctx context.Context, branch, head string) (int, error) {
	pulls, _, err := g.client.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "open", Head: branch, ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return 0, because("the pull requests of "+branch+" cannot be read", err)
	}

	var found []int
	for _, p := range pulls {
		if p.GetHead().GetSHA() == head {
			found = append(found, p.GetNumber())
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%d open pull requests of %s are at this run's commit: name one with --pull", len(found), branch)
	}
	return found[0], nil
}

func (g *gitHub) MostBytes() int { return plan.GitHubLimit + roomForOurs }

// Self asks for the user of the token. The token of a workflow and that of an app have
// none in this API, and the other one names the app's bot.
func (g *gitHub) Self(ctx context.Context) (Account, error) {
	user, _, err := g.client.Users.Get(ctx, "")
	if err == nil {
		return Account{user.GetID(), user.GetLogin()}, nil
	}
	if !refusedWith(err, http.StatusForbidden) {
		return Account{}, err
	}

	var answer struct {
		Data struct {
			Viewer struct {
				Login      string
				DatabaseID int64 `json:"databaseId"`
			}
		}
	}
	req, err := g.client.NewRequest(ctx, http.MethodPost, g.graphQL(), map[string]string{"query": "{viewer{login databaseId}}"})
	if err != nil {
		return Account{}, err
	}
	if _, err := g.client.Do(req, &answer); err != nil {
		return Account{}, err
	}
	viewer := answer.Data.Viewer
	if viewer.Login == "" {
		return Account{}, errors.New("GitHub names no account for this token")
	}
	return Account{viewer.DatabaseID, strings.TrimSuffix(viewer.Login, bot) + bot}, nil
}

// bot ends the login of an app's account, and of no user's.
const bot = "[bot]"

// graphQL is where the other API is: beside this one.
func (g *gitHub) graphQL() string {
	if base := g.client.BaseURL(); strings.HasSuffix(base, "/api/v3/") {
		return strings.TrimSuffix(base, "v3/") + "graphql"
	}
	return "graphql"
}

func (g *gitHub) Pull(ctx context.Context) (Pull, error) {
	p, _, err := g.client.PullRequests.Get(ctx, g.owner, g.name, g.number)
	if err != nil {
		return Pull{}, err
	}

	pull := Pull{Head: p.GetHead().GetSHA(), Merge: p.GetMergeCommitSHA(), Target: p.GetBase().GetRef()}
	branch, _, err := g.client.Repositories.GetBranch(ctx, g.owner, g.name, pull.Target, 1)
	if err != nil && !notToRead(err) {
		return Pull{}, err
	}
	pull.Base = branch.GetCommit().GetSHA()
	return pull, nil
}

// Pulls implements Repository. The repository of a fork that was deleted is not told.
func (g *gitHub) Pulls(ctx context.Context, branch string, most int) (open []OpenPull, more bool, err error) {
	return listPulls(most, func(page int) (some []OpenPull, next int, err error) {
		pulls, resp, err := g.client.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
			State: "open", Base: branch, Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{Page: page, PerPage: 100},
		})
		if err != nil {
			return nil, 0, err
		}
		for _, p := range pulls {
			from := p.GetHead().GetRepo().GetID()
			some = append(some, OpenPull{
				Number: int64(p.GetNumber()), Head: p.GetHead().GetSHA(), Ref: fmt.Sprintf("refs/pull/%d/head", p.GetNumber()),
				Fork: from == 0 || from != p.GetBase().GetRepo().GetID(), Draft: p.GetDraft(), Updated: p.GetUpdatedAt().Time,
			})
		}
		return some, resp.NextPage, nil
	})
}

func (g *gitHub) Comments(ctx context.Context) ([]Comment, error) {
	var all []Comment
	for page := 1; page <= mostPages; {
		some, resp, err := g.client.Issues.ListComments(ctx, g.owner, g.name, g.number,
			&github.IssueListCommentsOptions{ListOptions: github.ListOptions{Page: page, PerPage: 100}})
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			all = append(all, fromGitHub(c))
		}
		if page = resp.NextPage; page == 0 {
			return all, nil
		}
	}
	return nil, errPages
}

func fromGitHub(c *github.IssueComment) Comment {
	return Comment{ID: c.GetID(), Author: Account{c.GetUser().GetID(), c.GetUser().GetLogin()}, Body: c.GetBody(), URL: c.GetHTMLURL()}
}

func (g *gitHub) Post(ctx context.Context, body string) (Comment, error) {
	c, _, err := g.client.Issues.CreateComment(ctx, g.owner, g.name, g.number, &github.IssueComment{Body: &body})
	if err != nil {
		return Comment{}, err
	}
	return fromGitHub(c), nil
}

func (g *gitHub) Edit(ctx context.Context, id int64, body string) error {
	_, _, err := g.client.Issues.EditComment(ctx, g.owner, g.name, id, &github.IssueComment{Body: &body})
	return err
}

func (g *gitHub) Status(ctx context.Context, commit, name string) (*Status, error) {
	for page := 1; page <= mostPages; {
		all, resp, err := g.client.Repositories.GetCombinedStatus(ctx, g.owner, g.name, commit, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, err
		}
		for _, s := range all.Statuses {
			if s.GetContext() == name {
				return &Status{Context: name, State: State(s.GetState()), Description: s.GetDescription(), URL: s.GetTargetURL()}, nil
			}
		}
		if page = resp.NextPage; page == 0 {
			return nil, nil //nolint:nilnil // a commit has none
		}
	}
	return nil, errPages
}

func (g *gitHub) SetStatus(ctx context.Context, commit string, s Status) error {
	state := string(s.State)
	status := github.RepoStatus{State: &state, Context: &s.Context, Description: &s.Description}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	_, _, err := g.client.Repositories.CreateStatus(ctx, g.owner, g.name, commit, status)
	return err
}

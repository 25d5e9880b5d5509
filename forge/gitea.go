// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/fairlead/fairlead/look/plan"
)

// giteaForge is a pull request on Gitea or Forgejo.
type giteaForge struct {
	client      *gitea.Client
	owner, name string
	number      int64
}

func openGitea(t Target, base *url.URL, client *http.Client) (Forge, error) {
	owner, name, err := t.split()
	if err != nil {
		return nil, err
	}
	// Without a version the library does not ask for it: what we use is in all of them.
	c, err := gitea.NewClient(strings.TrimSuffix(base.String(), "/"), gitea.SetHTTPClient(client), gitea.SetUserAgent(userAgent), gitea.SetGiteaVersion(""))
	if err != nil {
		return nil, err
	}
	return &giteaForge{client: c, owner: owner, name: name, number: t.Pull}, nil
}

// with returns the client for a call: this library has the context in the client.
func (g *giteaForge) with(ctx context.Context) *gitea.Client {
	g.client.SetContext(ctx)
	return g.client
}

func (g *giteaForge) MostBytes() int { return plan.GitHubLimit + roomForOurs }

func (g *giteaForge) Self(ctx context.Context) (Account, error) {
	user, _, err := g.with(ctx).GetMyUserInfo()
	if err != nil {
		return Account{}, err
	}
	return Account{user.ID, user.UserName}, nil
}

func (g *giteaForge) Pull(ctx context.Context) (Pull, error) {
	p, _, err := g.with(ctx).GetPullRequest(g.owner, g.name, g.number)
	if err != nil {
		return Pull{}, err
	}

	pull := Pull{}
	if p.Head != nil {
		pull.Head = p.Head.Sha
	}
	if p.Base == nil {
		return pull, nil
	}
	pull.Target = p.Base.Ref
	branch, _, err := g.with(ctx).GetRepoBranch(g.owner, g.name, pull.Target)
	if err != nil && !notToRead(err) {
		return Pull{}, err
	}
	if err == nil && branch.Commit != nil {
		pull.Base = branch.Commit.ID
	}
	return pull, nil
}

// Pulls implements Repository. Gitea lists the pull requests against every branch.
func (g *giteaForge) Pulls(ctx context.Context, branch string, most int) (open []OpenPull, more bool, err error) {
	return listPulls(most, func(page int) (some []OpenPull, next int, err error) {
		pulls, resp, err := g.with(ctx).ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: 50}, State: gitea.StateOpen, Sort: "recentupdate",
		})
		if err != nil {
			return nil, 0, err
		}
		for _, p := range pulls {
			if p.Head == nil || p.Base == nil || p.Base.Ref != branch {
				continue
			}
			open := OpenPull{
				Number: p.Index, Head: p.Head.Sha, Ref: fmt.Sprintf("refs/pull/%d/head", p.Index),
				Fork: p.Head.RepoID == 0 || p.Head.RepoID != p.Base.RepoID, Draft: p.Draft,
			}
			if p.Updated != nil {
				open.Updated = *p.Updated
			}
			some = append(some, open)
		}
		return some, resp.NextPage, nil
	})
}

// Comments has them all in one answer: Gitea does not page them, whatever it is asked.
func (g *giteaForge) Comments(ctx context.Context) ([]Comment, error) {
	var all []Comment
	seen := map[int64]bool{}
	for page := 1; page <= mostPages; page++ {
		some, resp, err := g.with(ctx).ListIssueComments(g.owner, g.name, g.number, gitea.ListIssueCommentOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			if !seen[c.ID] {
				seen[c.ID] = true
				all = append(all, fromGitea(c))
			}
		}
		if resp.NextPage == 0 {
			slices.SortFunc(all, func(a, b Comment) int { return int(a.ID - b.ID) })
			return all, nil
		}
	}
	return nil, errPages
}

func fromGitea(c *gitea.Comment) Comment {
	comment := Comment{ID: c.ID, Body: c.Body, URL: c.HTMLURL}
	if c.Poster != nil {
		comment.Author = Account{c.Poster.ID, c.Poster.UserName}
	}
	return comment
}

func (g *giteaForge) Post(ctx context.Context, body string) (Comment, error) {
	c, _, err := g.with(ctx).CreateIssueComment(g.owner, g.name, g.number, gitea.CreateIssueCommentOption{Body: body})
	if err != nil {
		return Comment{}, err
	}
	return fromGitea(c), nil
}

func (g *giteaForge) Edit(ctx context.Context, id int64, body string) error {
	_, _, err := g.with(ctx).EditIssueComment(g.owner, g.name, id, gitea.EditIssueCommentOption{Body: body})
	return err
}

func (g *giteaForge) Status(ctx context.Context, commit, name string) (*Status, error) {
	all, _, err := g.with(ctx).GetCombinedStatus(g.owner, g.name, commit)
	if err != nil {
		return nil, err
	}
	for _, s := range all.Statuses {
		if s.Context == name {
			return &Status{Context: name, State: State(s.State), Description: s.Description, URL: s.TargetURL}, nil
		}
	}
	return nil, nil //nolint:nilnil // a commit has none
}

func (g *giteaForge) SetStatus(ctx context.Context, commit string, s Status) error {
	_, _, err := g.with(ctx).CreateStatus(g.owner, g.name, commit, gitea.CreateStatusOption{
		State: gitea.StatusState(s.State), Context: s.Context, Description: s.Description, TargetURL: s.URL,
	})
	return err
}

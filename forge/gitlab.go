// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	retryable "github.com/hashicorp/go-retryablehttp"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/fairlead/fairlead/look/plan"
)

// gitLab is a merge request. Its comment is a note and no discussion: a discussion would
// have to be resolved before the merge.
type gitLab struct {
	client  *gitlab.Client
	project string
	iid     int64
	web     string // of the merge request, once it was read
}

func openGitLab(t Target, base *url.URL, client *http.Client) (Forge, error) {
	c, err := gitlab.NewAuthSourceClient(gitlab.AccessTokenAuthSource{},
		gitlab.WithURLWarningLogger(slog.New(slog.DiscardHandler)), gitlab.WithBaseURL(base.String()), gitlab.WithHTTPClient(client),
		gitlab.WithAuthSourceStrategy(noHeaders{}), gitlab.WithoutRetries(), gitlab.WithUserAgent(userAgent))
	if err != nil {
		return nil, err
	}
	return &gitLab{client: c, project: t.Repo, iid: t.Pull}, nil
}

// noHeaders leaves the token to our transport.
type noHeaders struct{}

func (noHeaders) ApplyAuthHeader(gitlab.AuthSource, *retryable.Request) error { return nil }

func (g *gitLab) MostBytes() int { return plan.GitLabLimit + roomForOurs }

func (g *gitLab) Self(ctx context.Context) (Account, error) {
	user, _, err := g.client.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return Account{}, err
	}
	return Account{user.ID, user.Username}, nil
}

func (g *gitLab) Pull(ctx context.Context) (Pull, error) {
	m, _, err := g.client.MergeRequests.GetMergeRequest(g.project, g.iid, nil, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, err
	}

	g.web = m.WebURL
	pull := Pull{Head: m.SHA, Target: m.TargetBranch}
	branch, _, err := g.client.Branches.GetBranch(g.project, m.TargetBranch, gitlab.WithContext(ctx))
	if err != nil && !notToRead(err) {
		return Pull{}, err
	}
	if err == nil && branch.Commit != nil {
		pull.Base = branch.Commit.ID
	}
	return pull, nil
}

// Pulls implements Repository.
func (g *gitLab) Pulls(ctx context.Context, branch string, most int) (open []OpenPull, more bool, err error) {
	return listPulls(most, func(page int) (some []OpenPull, next int, err error) {
		merges, resp, err := g.client.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: 100}, State: gitlab.Ptr("opened"), TargetBranch: &branch,
			OrderBy: gitlab.Ptr("updated_at"), Sort: gitlab.Ptr("desc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		for _, m := range merges {
			p := OpenPull{
				Number: m.IID, Head: m.SHA, Ref: fmt.Sprintf("refs/merge-requests/%d/head", m.IID),
				Fork: m.SourceProjectID == 0 || m.SourceProjectID != m.TargetProjectID, Draft: m.Draft,
			}
			if m.UpdatedAt != nil {
				p.Updated = *m.UpdatedAt
			}
			some = append(some, p)
		}
		return some, int(resp.NextPage), nil
	})
}

func (g *gitLab) Comments(ctx context.Context) ([]Comment, error) {
	var all []Comment
	o := &gitlab.ListMergeRequestNotesOptions{
		ListOptions: gitlab.ListOptions{Page: 1, PerPage: 100}, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("asc"),
	}
	for range mostPages {
		notes, resp, err := g.client.Notes.ListMergeRequestNotes(g.project, g.iid, o, gitlab.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		for _, n := range notes {
			if !n.System {
				all = append(all, g.comment(n))
			}
		}
		if o.Page = resp.NextPage; o.Page == 0 {
			return all, nil
		}
	}
	return nil, errPages
}

func (g *gitLab) comment(n *gitlab.Note) Comment {
	c := Comment{ID: n.ID, Author: Account{n.Author.ID, n.Author.Username}, Body: n.Body}
	if g.web != "" {
		c.URL = fmt.Sprintf("%s#note_%d", g.web, n.ID)
	}
	return c
}

func (g *gitLab) Post(ctx context.Context, body string) (Comment, error) {
	n, _, err := g.client.Notes.CreateMergeRequestNote(g.project, g.iid, &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	if err != nil {
		return Comment{}, err
	}
	return g.comment(n), nil
}

func (g *gitLab) Edit(ctx context.Context, id int64, body string) error {
	_, _, err := g.client.Notes.UpdateMergeRequestNote(g.project, g.iid, id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return err
}

func (g *gitLab) Status(ctx context.Context, commit, name string) (*Status, error) {
	all, _, err := g.client.Commits.GetCommitStatuses(g.project, commit, &gitlab.GetCommitStatusesOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100}, Name: &name,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, err
	}

	var latest *gitlab.CommitStatus
	for _, s := range all {
		if s.Name == name && (latest == nil || s.ID > latest.ID) {
			latest = s
		}
	}
	if latest == nil {
		return nil, nil //nolint:nilnil // a commit has none
	}
	status := &Status{Context: name, State: State(latest.Status), Description: latest.Description, URL: latest.TargetURL}
	if latest.Status == string(gitlab.Failed) {
		status.State = StateFailure
	}
	return status, nil
}

// SetStatus adds the status to the newest pipeline of the commit. A commit of a fork
// without one stands on no branch of the project, and its reference has to be named.
func (g *gitLab) SetStatus(ctx context.Context, commit string, s Status) error {
	o := &gitlab.SetCommitStatusOptions{State: gitlab.Success, Name: &s.Context, Description: &s.Description}
	switch s.State {
	case StateFailure:
		o.State = gitlab.Failed
	case StatePending:
		o.State = gitlab.Pending
	}
	if s.URL != "" {
		o.TargetURL = &s.URL
	}

	_, _, err := g.client.Commits.SetCommitStatus(g.project, commit, o, gitlab.WithContext(ctx))
	if s.State == StatePending && refusedWith(err, http.StatusBadRequest) {
		return nil // it is pending already: GitLab does not let its text be changed
	}
	if g.iid != 0 && refusedWith(err, http.StatusNotFound) {
		o.Ref = gitlab.Ptr(fmt.Sprintf("refs/merge-requests/%d/head", g.iid))
		_, _, err = g.client.Commits.SetCommitStatus(g.project, commit, o, gitlab.WithContext(ctx))
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
)

// Repo creates an empty repository of a user.
func (s *Server) Repo(owner User, name string) error {
	return s.Do(owner, http.MethodPost, "/user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
}

// Fork copies a repository to a user.
func (s *Server) Fork(by User, repo string) error {
	return s.Do(by, http.MethodPost, "/repos/"+repo+"/forks", map[string]any{}, nil)
}

// CloneURL is the URL of a repository with what a user needs to push to it.
func (s *Server) CloneURL(u User, repo string) string {
	at, err := url.Parse(s.url)
	if err != nil {
		panic(err) // we made it
	}
	at.User, at.Path = url.UserPassword(u.Name, u.Token), "/"+repo+".git"
	return at.String()
}

// OpenPull opens a pull request of a branch, OWNER:BRANCH for that of a fork, and returns
// its number.
func (s *Server) OpenPull(by User, repo, head, base string) (int64, error) {
	var pull struct{ Number int64 }
	err := s.Do(by, http.MethodPost, "/repos/"+repo+"/pulls", map[string]any{"head": head, "base": base, "title": head}, &pull)
	return pull.Number, err
}

// Merge merges a pull request.
func (s *Server) Merge(by User, repo string, number int64) error {
	return s.Do(by, http.MethodPost, fmt.Sprintf("/repos/%s/pulls/%d/merge", repo, number), map[string]any{"Do": "merge"}, nil)
}

// Report has the forge report each push to a repository to a URL, signed with a token.
func (s *Server) Report(by User, repo, to, token string) error {
	return s.Do(by, http.MethodPost, "/repos/"+repo+"/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"push"},
		"config": map[string]any{"url": to, "content_type": "json", "secret": token},
	}, nil)
}

// Comment is a comment as the API has it.
type Comment struct {
	Body string
	User struct{ Login string }
}

// Comments are those on a pull request, oldest first.
func (s *Server) Comments(by User, repo string, number int64) (all []Comment, err error) {
	err = s.Do(by, http.MethodGet, fmt.Sprintf("/repos/%s/issues/%d/comments", repo, number), nil, &all)
	return all, err
}

// Say adds a comment by a user.
func (s *Server) Say(by User, repo string, number int64, body string) error {
	return s.Do(by, http.MethodPost, fmt.Sprintf("/repos/%s/issues/%d/comments", repo, number), map[string]any{"body": body}, nil)
}

// Status is a commit status as the API has it.
type Status struct {
	ID                           int64
	Context, Status, Description string
}

// Statuses are all that a commit ever had, newest first.
func (s *Server) Statuses(by User, repo, commit string) (all []Status, err error) {
	err = s.Do(by, http.MethodGet, fmt.Sprintf("/repos/%s/commits/%s/statuses?sort=recentupdate", repo, commit), nil, &all)
	// Gitea sorts by the second in which they were set.
	slices.SortFunc(all, func(a, b Status) int { return int(b.ID - a.ID) })
	return all, err
}

// Do asks the API, with a body and an answer of JSON where there are any.
func (s *Server) Do(by User, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, s.url+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "token "+by.Token)
	req.Header.Set("Content-Type", "application/json")

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}

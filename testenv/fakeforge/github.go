// SPDX-License-Identifier: Apache-2.0

package fakeforge

import (
	"encoding/json"
	"fmt"
	"net/http"
)

func (s *Server) gitHub(mux *http.ServeMux) {
	const repo = "/api/v3/repos/" + Repo
	mux.HandleFunc("GET /api/v3/user", func(w http.ResponseWriter, _ *http.Request) {
		if s.app {
			refuse(w, http.StatusForbidden, "Resource not accessible by integration")
			return
		}
		answer(w, http.StatusOK, gitHubUser(Bot))
	})
	mux.HandleFunc("POST /api/graphql", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"data": object{"viewer": object{"login": Bot.Login, "databaseId": s.appID}}})
	})
	mux.HandleFunc("GET "+repo+"/pulls", s.gitHubPulls)
	mux.HandleFunc("GET "+repo+"/pulls/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := s.pulls[numberOf(r, "n")]; ok {
			answer(w, http.StatusOK, gitHubPull(numberOf(r, "n"), p))
			return
		}
		refuse(w, http.StatusNotFound, "Not Found")
	})
	mux.HandleFunc("GET "+repo+"/branches/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if commit, ok := s.branches[r.PathValue("name")]; ok {
			answer(w, http.StatusOK, object{"name": r.PathValue("name"), "commit": object{"sha": commit}})
			return
		}
		refuse(w, http.StatusNotFound, "Branch not found")
	})
	mux.HandleFunc("GET "+repo+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		some, next := page(s, r, s.comments[numberOf(r, "n")])
		s.link(w, r, next)
		all := []object{}
		for _, c := range some {
			all = append(all, s.gitHubComment(numberOf(r, "n"), c))
		}
		answer(w, http.StatusOK, all)
	})
	mux.HandleFunc("POST "+repo+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		if in, ok := decode[struct{ Body string }](w, r); ok && s.fits(w, in.Body, 65_536) {
			answer(w, http.StatusCreated, s.gitHubComment(numberOf(r, "n"), s.comment(numberOf(r, "n"), s.self(), in.Body)))
		}
	})
	mux.HandleFunc("PATCH "+repo+"/issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[struct{ Body string }](w, r)
		if !ok || !s.fits(w, in.Body, 65_536) {
			return
		}
		if c, ok := s.edit(numberOf(r, "id"), in.Body); ok {
			answer(w, http.StatusOK, s.gitHubComment(0, c))
			return
		}
		refuse(w, http.StatusNotFound, "Not Found")
	})
	s.gitHubStatuses(mux, repo)
	s.gitHubChecks(mux, repo)
}

func gitHubUser(u User) object { return object{"id": u.ID, "login": u.Login} }

// self is the account that writes: that of an app ends in [bot].
func (s *Server) self() User {
	if s.app {
		return User{Bot.ID, Bot.Login + "[bot]"}
	}
	return Bot
}

func gitHubPull(number int64, p Pull) object {
	return object{
		"number": number, "state": "open", "draft": p.Draft, "updated_at": p.Updated, "merge_commit_sha": p.Merge,
		"head": object{"sha": p.Head, "label": p.Branch, "repo": object{"id": p.from()}},
		"base": object{"ref": p.Target, "repo": object{"id": home}},
	}
}

func (s *Server) gitHubPulls(w http.ResponseWriter, r *http.Request) {
	numbers, next := page(s, r, s.list(r.URL.Query().Get("base")))
	s.link(w, r, next)
	all := []object{}
	for _, number := range numbers {
		if head := r.URL.Query().Get("head"); head == "" || head == s.pulls[number].Branch {
			all = append(all, gitHubPull(number, s.pulls[number]))
		}
	}
	answer(w, http.StatusOK, all)
}

func (s *Server) gitHubComment(number int64, c Comment) object {
	return object{"id": c.ID, "body": c.Body, "user": gitHubUser(c.Author), "html_url": fmt.Sprintf("%s/%s/pull/%d#issuecomment-%d", s.URL, Repo, number, c.ID)}
}

// fits refuses a body that is longer than the forge takes.
func (s *Server) fits(w http.ResponseWriter, body string, most int) bool {
	if body == "" || len([]rune(body)) > most {
		refuse(w, http.StatusUnprocessableEntity, fmt.Sprintf("body is too long (maximum is %d characters)", most))
		return false
	}
	return true
}

func (s *Server) gitHubStatuses(mux *http.ServeMux, repo string) {
	mux.HandleFunc("GET "+repo+"/commits/{sha}/status", func(w http.ResponseWriter, r *http.Request) {
		some, next := page(s, r, latest(s.statuses[r.PathValue("sha")]))
		s.link(w, r, next)
		all := []object{}
		for _, status := range some {
			all = append(all, object{"id": status.ID, "context": status.Context, "state": status.State, "description": status.Description, "target_url": status.URL})
		}
		answer(w, http.StatusOK, object{"state": "pending", "statuses": all})
	})
	mux.HandleFunc("POST "+repo+"/statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[struct {
			State, Context, Description string
			TargetURL                   string `json:"target_url"`
		}](w, r)
		if !ok {
			return
		}
		if len([]rune(in.Description)) > 140 {
			refuse(w, http.StatusUnprocessableEntity, "description is too long (maximum is 140 characters)")
			return
		}
		s.status(r.PathValue("sha"), Status{0, in.Context, in.State, in.Description, in.TargetURL})
		answer(w, http.StatusCreated, object{"context": in.Context, "state": in.State})
	})
}

func (s *Server) status(commit string, status Status) {
	s.next++
	status.ID = s.next
	s.statuses[commit] = append(s.statuses[commit], status)
}

// latest returns the last status of each name.
func latest(all []Status) []Status {
	var some []Status
	named := map[string]bool{}
	for i := len(all) - 1; i >= 0; i-- {
		if !named[all[i].Context] {
			named[all[i].Context] = true
			some = append(some, all[i])
		}
	}
	return some
}

type gitHubRun struct {
	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha"`
	ExternalID string `json:"external_id"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	Output     struct {
		Annotations []json.RawMessage `json:"annotations"`
	} `json:"output"`
}

func (s *Server) gitHubChecks(mux *http.ServeMux, repo string) {
	mux.HandleFunc("GET "+repo+"/commits/{sha}/check-runs", func(w http.ResponseWriter, r *http.Request) {
		all := []object{}
		for _, run := range s.checks {
			if run.Commit == r.PathValue("sha") && run.Name == r.URL.Query().Get("check_name") {
				all = append(all, object{"id": run.ID, "name": run.Name, "external_id": run.Key, "status": run.Status, "conclusion": run.Conclusion})
			}
		}
		answer(w, http.StatusOK, object{"total_count": len(all), "check_runs": all})
	})
	mux.HandleFunc("POST "+repo+"/check-runs", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[gitHubRun](w, r)
		if !ok {
			return
		}
		s.next++
		s.checks = append(s.checks, CheckRun{ID: s.next, Name: in.Name, Commit: in.HeadSHA, Key: in.ExternalID})
		s.gitHubRun(w, &s.checks[len(s.checks)-1], in, http.StatusCreated)
	})
	mux.HandleFunc("PATCH "+repo+"/check-runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[gitHubRun](w, r)
		if !ok {
			return
		}
		for i := range s.checks {
			if s.checks[i].ID == numberOf(r, "id") {
				s.gitHubRun(w, &s.checks[i], in, http.StatusOK)
				return
			}
		}
		refuse(w, http.StatusNotFound, "Not Found")
	})
}

func (s *Server) gitHubRun(w http.ResponseWriter, run *CheckRun, in gitHubRun, code int) {
	if len(in.Output.Annotations) > 50 {
		refuse(w, http.StatusUnprocessableEntity, "No more than 50 annotations")
		return
	}
	run.Calls++
	run.Annotations = append(run.Annotations, in.Output.Annotations...)
	if in.Status != "" {
		run.Status = in.Status
	}
	if in.Conclusion != "" {
		run.Conclusion = in.Conclusion
	}
	answer(w, code, object{"id": run.ID, "name": run.Name})
}

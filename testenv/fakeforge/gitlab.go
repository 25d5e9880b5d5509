// SPDX-License-Identifier: Apache-2.0

package fakeforge

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// gitLab routes by hand: the path of a project is one escaped piece of a URL there.
func (s *Server) gitLab(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v4/user", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"id": Bot.ID, "username": Bot.Login})
	})

	project := http.NewServeMux()
	project.HandleFunc("GET /merge_requests/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := s.pulls[numberOf(r, "n")]; ok {
			answer(w, http.StatusOK, object{"iid": numberOf(r, "n"), "sha": p.Head, "target_branch": p.Target, "web_url": s.URL + "/" + Repo + "/-/merge_requests/" + r.PathValue("n")})
			return
		}
		refuse(w, http.StatusNotFound, "404 Not found")
	})
	project.HandleFunc("GET /merge_requests", func(w http.ResponseWriter, r *http.Request) {
		numbers, next := page(s, r, s.list(r.URL.Query().Get("target_branch")))
		s.nextPage(w, next)
		all := []object{}
		for _, number := range numbers {
			p := s.pulls[number]
			all = append(all, object{
				"iid": number, "state": "opened", "sha": p.Head, "draft": p.Draft, "updated_at": p.Updated,
				"source_project_id": p.from(), "target_project_id": home, "target_branch": p.Target,
			})
		}
		answer(w, http.StatusOK, all)
	})
	project.HandleFunc("GET /repository/branches/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if commit, ok := s.branches[r.PathValue("name")]; ok {
			answer(w, http.StatusOK, object{"name": r.PathValue("name"), "commit": object{"id": commit}})
			return
		}
		refuse(w, http.StatusNotFound, "404 Branch Not Found")
	})
	s.gitLabNotes(project)
	s.gitLabStatuses(project)
	mux.HandleFunc("/api/v4/projects/", func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v4/projects/"+strings.ReplaceAll(Repo, "/", "%2F"))
		if !ok {
			refuse(w, http.StatusNotFound, "404 Project Not Found")
			return
		}
		in := r.Clone(r.Context())
		in.URL.Path, in.URL.RawPath = rest, ""
		project.ServeHTTP(w, in)
	})
}

// nextPage sets the header with which GitLab names the next page.
func (s *Server) nextPage(w http.ResponseWriter, next int) {
	w.Header().Set("X-Next-Page", "")
	if next > 0 {
		w.Header().Set("X-Next-Page", strconv.Itoa(next))
	}
}

func (s *Server) gitLabNotes(mux *http.ServeMux) {
	const notes = "/merge_requests/{n}/notes"
	mux.HandleFunc("GET "+notes, func(w http.ResponseWriter, r *http.Request) {
		some, next := page(s, r, s.comments[numberOf(r, "n")])
		s.nextPage(w, next)
		all := []object{{"id": 1, "system": true, "body": "added 1 commit", "author": object{"id": Bot.ID, "username": Bot.Login}}}
		for _, c := range some {
			all = append(all, gitLabNote(c))
		}
		answer(w, http.StatusOK, all)
	})
	mux.HandleFunc("POST "+notes, func(w http.ResponseWriter, r *http.Request) {
		if in, ok := decode[struct{ Body string }](w, r); ok && s.fits(w, in.Body, 1_000_000) {
			answer(w, http.StatusCreated, gitLabNote(s.comment(numberOf(r, "n"), Bot, in.Body)))
		}
	})
	mux.HandleFunc("PUT "+notes+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[struct{ Body string }](w, r)
		if !ok {
			return
		}
		if c, ok := s.edit(numberOf(r, "id"), in.Body); ok {
			answer(w, http.StatusOK, gitLabNote(c))
			return
		}
		refuse(w, http.StatusNotFound, "404 Not found")
	})
}

func gitLabNote(c Comment) object {
	return object{"id": c.ID, "body": c.Body, "system": false, "author": object{"id": c.Author.ID, "username": c.Author.Login}}
}

// gitLabStatuses plays the state machine of GitLab too: it refuses a status that is as
// it was, and any after pending that is pending.
func (s *Server) gitLabStatuses(mux *http.ServeMux) {
	mux.HandleFunc("GET /repository/commits/{sha}/statuses", func(w http.ResponseWriter, r *http.Request) {
		all := []object{}
		for _, status := range latest(s.statuses[r.PathValue("sha")]) {
			if name := r.URL.Query().Get("name"); name == "" || name == status.Context {
				all = append(all, object{"id": status.ID, "name": status.Context, "status": status.State, "description": status.Description, "target_url": status.URL})
			}
		}
		answer(w, http.StatusOK, all)
	})
	mux.HandleFunc("POST /statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[struct {
			State, Name, Description string
			TargetURL                string `json:"target_url"`
		}](w, r)
		if !ok {
			return
		}
		for _, has := range latest(s.statuses[r.PathValue("sha")]) {
			pending := has.State == "pending" && in.State == "pending"
			if has.Context == in.Name && has.State == in.State && (has.Description == in.Description || pending) {
				refuse(w, http.StatusBadRequest, fmt.Sprintf("Cannot transition status via :%s from :%s", in.State, in.State))
				return
			}
		}
		s.status(r.PathValue("sha"), Status{0, in.Name, in.State, in.Description, in.TargetURL})
		answer(w, http.StatusCreated, object{"name": in.Name, "status": in.State})
	})
}

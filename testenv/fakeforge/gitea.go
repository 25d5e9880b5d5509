// SPDX-License-Identifier: Apache-2.0

package fakeforge

import (
	"fmt"
	"net/http"
)

func (s *Server) gitea(mux *http.ServeMux) {
	const repo = "/api/v1/repos/" + Repo
	mux.HandleFunc("GET /api/v1/user", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, giteaUser(Bot)) })
	mux.HandleFunc("GET "+repo+"/pulls", func(w http.ResponseWriter, r *http.Request) {
		numbers, next := page(s, r, s.list("")) // whatever branch is asked for
		s.link(w, r, next)
		all := []object{}
		for _, number := range numbers {
			p := s.pulls[number]
			all = append(all, object{
				"number": number, "state": "open", "draft": p.Draft, "updated_at": p.Updated,
				"head": object{"sha": p.Head, "repo_id": p.from()}, "base": object{"ref": p.Target, "repo_id": home},
			})
		}
		answer(w, http.StatusOK, all)
	})
	mux.HandleFunc("GET "+repo+"/pulls/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := s.pulls[numberOf(r, "n")]; ok {
			answer(w, http.StatusOK, object{"number": numberOf(r, "n"), "head": object{"sha": p.Head}, "base": object{"ref": p.Target}})
			return
		}
		refuse(w, http.StatusNotFound, "The target couldn't be found.")
	})
	mux.HandleFunc("GET "+repo+"/branches/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if commit, ok := s.branches[r.PathValue("name")]; ok {
			answer(w, http.StatusOK, object{"name": r.PathValue("name"), "commit": object{"id": commit}})
			return
		}
		refuse(w, http.StatusNotFound, "The target couldn't be found.")
	})
	mux.HandleFunc("GET "+repo+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		all := []object{}
		for _, c := range s.comments[numberOf(r, "n")] {
			all = append(all, s.giteaComment(c)) // never in pages
		}
		answer(w, http.StatusOK, all)
	})
	mux.HandleFunc("POST "+repo+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		if in, ok := decode[struct{ Body string }](w, r); ok {
			answer(w, http.StatusCreated, s.giteaComment(s.comment(numberOf(r, "n"), Bot, in.Body)))
		}
	})
	mux.HandleFunc("PATCH "+repo+"/issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[struct{ Body string }](w, r)
		if !ok {
			return
		}
		if c, ok := s.edit(numberOf(r, "id"), in.Body); ok {
			answer(w, http.StatusOK, s.giteaComment(c))
			return
		}
		refuse(w, http.StatusNotFound, "The target couldn't be found.")
	})
	mux.HandleFunc("GET "+repo+"/commits/{sha}/status", func(w http.ResponseWriter, r *http.Request) {
		all := []object{}
		for _, status := range latest(s.statuses[r.PathValue("sha")]) {
			all = append(all, object{"id": status.ID, "context": status.Context, "status": status.State, "description": status.Description, "target_url": status.URL})
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
		s.status(r.PathValue("sha"), Status{0, in.Context, in.State, in.Description, in.TargetURL})
		answer(w, http.StatusCreated, object{"context": in.Context, "status": in.State})
	})
}

func giteaUser(u User) object { return object{"id": u.ID, "login": u.Login} }

func (s *Server) giteaComment(c Comment) object {
	return object{"id": c.ID, "body": c.Body, "user": giteaUser(c.Author), "html_url": fmt.Sprintf("%s/%s/pulls/1#issuecomment-%d", s.URL, Repo, c.ID)}
}

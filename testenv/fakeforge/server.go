// SPDX-License-Identifier: Apache-2.0

package fakeforge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Repo is the repository that a server has.
const Repo = "acme/fleet"

// User is an account.
type User struct {
	ID    int64
	Login string
}

// Bot is the account that the token of a server belongs to.
var Bot = User{101, "fleet-bot"}

// Pull is a pull request.
type Pull struct {
	Head, Merge string
	Target      string
	Branch      string // OWNER:BRANCH that it comes from
	Fork, Draft bool
	Closed      bool // it is in no list of open ones
	Updated     time.Time
}

// home is the ID of the repository, and other that of every fork.
const home, other = 11, 12

// from is the ID of the repository that it comes from.
func (p Pull) from() int {
	if p.Fork {
		return other
	}
	return home
}

// list returns the numbers of the open pull requests, the one first that was updated last.
// Against "" are those against every branch.
func (s *Server) list(against string) (numbers []int64) {
	for number, p := range s.pulls {
		if !p.Closed && (against == "" || p.Target == against) {
			numbers = append(numbers, number)
		}
	}
	slices.SortFunc(numbers, func(a, b int64) int {
		return cmp.Or(s.pulls[b].Updated.Compare(s.pulls[a].Updated), cmp.Compare(b, a))
	})
	return numbers
}

// Comment is a comment on one.
type Comment struct {
	ID     int64
	Author User
	Body   string
}

// Status is a commit status; the latest of its name counts.
type Status struct {
	ID                               int64
	Context, State, Description, URL string
}

// CheckRun is a check run of GitHub.
type CheckRun struct {
	ID                                         int64
	Name, Commit, Key, Status, Conclusion, App string
	Annotations                                []json.RawMessage
	Calls                                      int
}

// Request is one that a server got.
type Request struct{ Method, Path string }

// Answer is what is said instead of an answer.
type Answer struct {
	Code   int
	Header map[string]string
	Body   string
	// After has the request done all the same, as when a proxy fails on the way back.
	After bool
}

// Server is a forge with one repository.
type Server struct {
	*httptest.Server
	kind, token string

	mu       sync.Mutex
	app      bool
	appID    int64
	pageSize int
	next     int64
	branches map[string]string
	pulls    map[int64]Pull
	comments map[int64][]Comment
	statuses map[string][]Status
	checks   []CheckRun
	requests []Request
	fail     func(*http.Request) *Answer
}

// GitHub starts a server that speaks GitHub's API below /api/v3.
func GitHub(token string) *Server { return start("github", token, (*Server).gitHub) }

// GitLab starts a server that speaks GitLab's.
func GitLab(token string) *Server { return start("gitlab", token, (*Server).gitLab) }

// Gitea starts a server that speaks Gitea's.
func Gitea(token string) *Server { return start("gitea", token, (*Server).gitea) }

func start(kind, token string, routes func(*Server, *http.ServeMux)) *Server {
	s := &Server{
		kind: kind, token: token, pageSize: 100, next: 1000,
		branches: map[string]string{}, pulls: map[int64]Pull{}, comments: map[int64][]Comment{}, statuses: map[string][]Status{},
	}
	mux := http.NewServeMux()
	routes(s, mux)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(mux, w, r) }))
	return s
}

func (s *Server) serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path})
	if s.fail != nil {
		if a := s.fail(r); a != nil {
			if a.After {
				mux.ServeHTTP(httptest.NewRecorder(), r)
			}
			for name, value := range a.Header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(a.Code)
			fmt.Fprint(w, a.Body)
			return
		}
	}
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		refuse(w, http.StatusUnauthorized, "Bad credentials")
		return
	}
	mux.ServeHTTP(w, r)
}

// Kind is the name of the forge that the server plays.
func (s *Server) Kind() string { return s.kind }

// SetPull adds a pull request or changes one.
func (s *Server) SetPull(number int64, p Pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulls[number] = p
}

// Pull returns a pull request.
func (s *Server) Pull(number int64) Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pulls[number]
}

// SetBranch says where a branch is.
func (s *Server) SetBranch(name, commit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.branches[name] = commit
}

// SetApp has the token be that of an app, which is no user of GitHub's REST API. The
// other one may tell an ID of it, or 0.
func (s *Server) SetApp(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app, s.appID = true, id
}

// SetPageSize bounds a page of a listing.
func (s *Server) SetPageSize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageSize = n
}

// Fail has requests answered by a function first; nil of it leaves a request alone.
func (s *Server) Fail(f func(*http.Request) *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Say adds a comment by somebody.
func (s *Server) Say(number int64, author User, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.comment(number, author, body)
}

func (s *Server) comment(number int64, author User, body string) Comment {
	s.next++
	c := Comment{s.next, author, body}
	s.comments[number] = append(s.comments[number], c)
	return c
}

// edit replaces the body of a comment.
func (s *Server) edit(id int64, body string) (Comment, bool) {
	for number, all := range s.comments {
		for i := range all {
			if all[i].ID == id {
				s.comments[number][i].Body = body
				return all[i], true
			}
		}
	}
	return Comment{}, false
}

// Comments are those of a pull request, oldest first.
func (s *Server) Comments(number int64) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.comments[number])
}

// Statuses are those of a commit, in the order in which they were set.
func (s *Server) Statuses(commit string) []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses[commit])
}

// Checks are the check runs.
func (s *Server) Checks() []CheckRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.checks)
}

// Requests are those since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

// page returns the part of a listing that is asked for, and the number of the next
// page; 0 if it is the last.
func page[T any](s *Server, r *http.Request, all []T) (some []T, next int) {
	number := max(asked(r, "page"), 1)
	size := s.pageSize
	for _, name := range []string{"per_page", "limit"} {
		if n := asked(r, name); n > 0 {
			size = min(size, n)
		}
	}
	from := min((number-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		next = number + 1
	}
	return all[from:to], next
}

func asked(r *http.Request, name string) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return n
}

// link sets the header with which GitHub and Gitea name the next page.
func (s *Server) link(w http.ResponseWriter, r *http.Request, next int) {
	if next == 0 {
		return
	}
	u := *r.URL
	q := u.Query()
	q.Set("page", strconv.Itoa(next))
	u.RawQuery = q.Encode()
	w.Header().Set("Link", fmt.Sprintf("<%s%s>; rel=\"next\"", s.URL, u.String()))
}

func numberOf(r *http.Request, name string) int64 {
	n, _ := strconv.ParseInt(r.PathValue(name), 10, 64)
	return n
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, code int, message string) {
	answer(w, code, map[string]string{"message": message})
}

func decode[T any](w http.ResponseWriter, r *http.Request) (T, bool) {
	var v T
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
		return v, false
	}
	return v, true
}

type object = map[string]any

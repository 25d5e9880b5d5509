// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// request is a request for a page, with the commit that it is about.
type request struct {
	*http.Request
	server *Server
	writer http.ResponseWriter
	line   *line
	place  int // of the commit in the line
	commit *history.LogCommit
	state  *propagate.State
	links
}

// handler answers with a page, or with the page of its error.
func (s *Server) handler(page func(*request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{Request: r, server: s, writer: w, line: s.line.Load(), links: links{Prefix: s.options.Prefix}}
		if body, ok := s.sent.get(q.key()); ok {
			q.send(http.StatusOK, htmlType, body)
			return
		}
		err := q.resolve()
		if err == nil {
			err = page(q)
		}
		if err != nil {
			q.fail(err)
		}
	})
}

// travelTimeout is how long a request may wait for its turn and its fold.
const travelTimeout = 60 * time.Second

// resolve finds the commit of ?at=, and the state there.
func (q *request) resolve() error {
	if q.line == nil {
		return errBeginning
	}
	at := q.URL.Query().Get("at")
	hash, err := q.commitOf("at", cmp.Or(at, q.line.head))
	if err != nil {
		return err
	}
	commit, place, ok := q.line.log.Commit(hash)
	if !ok || place > q.line.place() {
		return unknown("%s is not a commit of %s: the page shows the states of that branch, and /plan what another one would do", source.Short(hash), q.line.branch)
	}

	q.commit, q.place = commit, place
	if hash == q.line.head {
		q.state = q.line.state
		if at != "" {
			q.At = "" // the head is now
		}
		return nil
	}
	q.At = source.Short(hash)
	ctx, cancel := context.WithTimeout(q.Context(), travelTimeout)
	defer cancel()
	q.state, err = q.server.travel.at(ctx, hash)
	return err
}

// place is that of the head.
func (l *line) place() int {
	_, place, _ := l.log.Commit(l.head)
	return place
}

// commits are those up to the head, oldest first.
func (l *line) commits() []*history.LogCommit { return l.log.Commits()[:l.place()+1] }

var revision = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_./+-]{0,200}([~^][0-9]{0,4}){0,8}$`)

// commitOf returns the commit of a parameter's revision. Full hashes of the line need no
// repository.
func (q *request) commitOf(parameter, text string) (string, error) {
	if !revision.MatchString(text) || strings.Contains(text, "..") {
		return "", malformed("%s=%q is not a revision: use a branch, a tag or a hash, with ~N or ^N", parameter, text)
	}
	if _, _, ok := q.line.log.Commit(text); ok {
		return text, nil
	}
	if hash := q.line.log.Abbreviated(text); hash != "" {
		return hash, nil
	}
	return q.line.repo.Resolve(text)
}

// again is the address of this page with another value of a parameter; "" is none.
func (q *request) again(parameter, value string) string {
	query := q.URL.Query()
	query.Del(parameter)
	if value != "" {
		query.Set(parameter, value)
	}
	u := url.URL{Path: q.URL.Path, RawPath: q.URL.RawPath, RawQuery: query.Encode()}
	return u.String()
}

// isPast reports whether the page is about an earlier commit than the head.
func (q *request) isPast() bool { return q.commit.Hash != q.line.head }

// members are what members have, as far as the page is about the commit that they were
// compared with.
func (q *request) members() *Members { return q.server.membersAt(q.commit.Hash) }

// membersAt returns what members have compared with a commit; nil if nobody knows.
func (s *Server) membersAt(commit string) *Members {
	m := s.seen.Load()
	if s.options.Fleet.Members != nil {
		m = s.options.Fleet.Members()
	}
	if m == nil || m.Head != commit {
		return nil
	}
	return m
}

// one returns the value of a parameter that may be given once, "" if it is not, and
// refuses values of which none is known.
func (q *request) one(parameter string, known ...string) (string, error) {
	values := q.URL.Query()[parameter]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", nil
	case len(values) > 1:
		return "", malformed("%s= is given %d times", parameter, len(values))
	}
	for _, word := range known {
		if values[0] == word {
			return word, nil
		}
	}
	if len(known) > 0 {
		return "", malformed("%s=%q must be one of %s", parameter, values[0], strings.Join(known, ", "))
	}
	return values[0], nil
}

// fail answers with an error. One of a request that was given up is told to nobody.
func (q *request) fail(err error) {
	if errors.Is(err, context.Canceled) && q.Context().Err() != nil {
		return
	}
	code := codeOf(err)
	if seconds := retryAfter(code); seconds > 0 {
		q.writer.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	text := err.Error()
	if code == http.StatusInternalServerError {
		q.server.options.Log(fmt.Sprintf("GET %s: %v", q.URL.Path, err))
	}
	page := &errorPage{Code: code, Status: http.StatusText(code), Text: text}
	if code == http.StatusServiceUnavailable {
		page.Refresh = true
		page.Progress = q.server.progress.Load().text()
		if trouble := q.server.trouble.Load(); trouble != nil && q.line == nil {
			page.Progress = *trouble
		}
	}
	q.answer(code, "error", page.Status, page)
}

// text reads "312 of 10000 commits".
func (p *progress) text() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d commits", p.done, p.all)
}

// errorPage is the page of an error.
type errorPage struct {
	Code     int
	Status   string
	Text     string
	Refresh  bool
	Progress string
}

// noPage answers for paths that are none.
func (s *Server) noPage(q *request) error { return unknown("there is no page %s", q.URL.Path) }

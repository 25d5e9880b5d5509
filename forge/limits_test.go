// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// once answers the first request that a function takes, and leaves the others alone.
func once(a fakeforge.Answer, takes func(*http.Request) bool) func(*http.Request) *fakeforge.Answer {
	done := false
	return func(r *http.Request) *fakeforge.Answer {
		if done || !takes(r) {
			return nil
		}
		done = true
		return &a
	}
}

func posts(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/comments") || strings.HasSuffix(r.URL.Path, "/notes"))
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet && !posts(r) }

func every(*http.Request) bool { return true }

// A forge that limits or fails is asked again, when it says so, and nothing is posted
// twice.
func TestAskedAgain(t *testing.T) {
	soon := fmt.Sprint(time.Now().Add(20 * time.Second).Unix())
	for name, test := range map[string]struct {
		answer fakeforge.Answer
		takes  func(*http.Request) bool
		least  time.Duration
	}{
		"429 with seconds":            {fakeforge.Answer{Code: 429, Header: map[string]string{"Retry-After": "7"}}, every, 7 * time.Second},
		"429 of a post":               {fakeforge.Answer{Code: 429, Header: map[string]string{"Retry-After": "7"}}, posts, 7 * time.Second},
		"429 that says nothing":       {fakeforge.Answer{Code: 429}, every, time.Second},
		"403 with the limit's end":    {fakeforge.Answer{Code: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": soon}}, every, 15 * time.Second},
		"429 with GitLab's headers":   {fakeforge.Answer{Code: 429, Header: map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": soon}}, posts, 15 * time.Second},
		"secondary limit with a wait": {fakeforge.Answer{Code: 403, Header: map[string]string{"Retry-After": "11"}, Body: `{"message":"You have exceeded a secondary rate limit"}`}, posts, 11 * time.Second},
		"502 of a read":               {fakeforge.Answer{Code: 502, Body: "<html>Bad Gateway</html>"}, reads, time.Second},
		"502 of a post":               {fakeforge.Answer{Code: 502}, posts, time.Second},
		"502 of a post that was done": {fakeforge.Answer{Code: 502, After: true}, posts, time.Second},
		"500 of a status": {fakeforge.Answer{Code: 500}, func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/statuses/")
		}, time.Second},
	} {
		for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
			h := newFake(t, start)
			t.Run(name+" on "+h.Kind(), func(t *testing.T) {
				waits := forge.Clock(t)
				p := planOf(h.move(t), h.push(t), cell("update", "web", "eu-1"))
				h.Fail(once(test.answer, test.takes))
				post(t, h.forge(t), p)
				if n := len(h.bodies(t)); n != 1 {
					t.Errorf("there are %d comments", n)
				}
				if len(*waits) != 1 || (*waits)[0] < test.least {
					t.Errorf("waited %v, want at least %s", *waits, test.least)
				}
				if got := h.status(t, h.head); got != "success: 1 now" {
					t.Errorf("the status is %q", got)
				}
			})
		}
	}
}

// What would take longer than there is time for ends at once, and says until when. What
// a forge says is one safe line, without the token (A12).
func TestNotAskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		answer fakeforge.Answer
		want   string
	}{
		"an hour":                  {fakeforge.Answer{Code: 403, Header: map[string]string{"Retry-After": "3600"}}, "rate limit until"},
		"a secondary limit":        {fakeforge.Answer{Code: 403, Body: `{"message":"You have triggered an abuse detection mechanism"}`}, "abuse detection mechanism (rate limit until"},
		"a missing permission":     {fakeforge.Answer{Code: 403, Body: `{"message":"Resource not accessible by personal access token"}`}, "403 Forbidden: Resource not accessible by personal access token"},
		"a bad token":              {fakeforge.Answer{Code: 401, Body: `{"message":"Bad credentials"}`}, "401 Unauthorized: Bad credentials"},
		"nothing there":            {fakeforge.Answer{Code: 404, Body: `{"message":"Not Found"}`}, "404 Not Found: Not Found"},
		"a reflected token":        {fakeforge.Answer{Code: 400, Body: `{"message":"Bearer ` + secret + ` is bad"}`}, "400 Bad Request: Bearer *** is bad"},
		"control characters":       {fakeforge.Answer{Code: 400, Body: `{"message":"a\u001b[31m\nb"}`}, "400 Bad Request: a [31m b"},
		"a page":                   {fakeforge.Answer{Code: 400, Body: "<html>" + secret}, "400 Bad Request"},
		"a redirect to elsewhere":  {fakeforge.Answer{Code: 307, Header: map[string]string{"Location": "http://evil.example.com/"}}, "the forge redirects to evil.example.com: name that with --url"},
		"an answer that is broken": {fakeforge.Answer{Code: 200, Body: `{"number":`}, "unexpected"},
	} {
		for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
			h := newFake(t, start)
			t.Run(name+" on "+h.Kind(), func(t *testing.T) {
				waits := forge.Clock(t)
				p := planOf(h.move(t), h.push(t))
				h.Fail(func(*http.Request) *fakeforge.Answer { return &test.answer })
				_, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Timeout: 30 * time.Second})
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) || strings.ContainsAny(err.Error(), "\n\x1b") {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if len(*waits) > 0 {
					t.Errorf("waited %v", *waits)
				}
			})
		}
	}
}

// A server that only fails ends with the time that there is.
func TestGivesUp(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	waits := forge.Clock(t)
	p := planOf(h.move(t), h.push(t))
	h.Fail(func(*http.Request) *fakeforge.Answer { return &fakeforge.Answer{Code: 503} })
	_, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Timeout: forge.Timeout})
	if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") {
		t.Errorf("got %v", err)
	}
	if want := []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9}; !slices.Equal(*waits, want) {
		t.Errorf("waited %v, want %v", *waits, want)
	}
}

// No redirect takes the token along, and no other host gets it.
func TestTokenStaysAtHome(t *testing.T) {
	elsewhere := fakeforge.GitHub("another")
	defer elsewhere.Close()
	h := newFake(t, fakeforge.GitHub)
	p := planOf(h.move(t), h.push(t))
	h.Fail(func(*http.Request) *fakeforge.Answer {
		return &fakeforge.Answer{Code: http.StatusMovedPermanently, Header: map[string]string{"Location": elsewhere.URL + "/api/v3/user"}}
	})
	if _, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Timeout: forge.Timeout}); err == nil {
		t.Error("it follows")
	}
	if got := elsewhere.Requests(); len(got) > 0 {
		t.Errorf("the other host got %v", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/web/auth"
)

// cluster answers reviews: mara may see shop/web, tim nothing.
type cluster struct {
	mu            sync.Mutex
	tokens, rules int // reviews
	away          error
	audiences     []string // what its tokens are for, nil for an API server that ignores it
	slow          chan struct{}
	asked         authorizationv1.SubjectAccessReviewSpec
}

type tokenReviews struct{ *cluster }

func (c tokenReviews) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	if c.slow != nil {
		select {
		case <-c.slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	if c.away != nil {
		return nil, c.away
	}
	name, ok := strings.CutSuffix(review.Spec.Token, "-token")
	review.Status.Authenticated = ok
	review.Status.Audiences = c.audiences
	review.Status.User = authenticationv1.UserInfo{Username: name, UID: "1", Groups: []string{"people"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	return review, nil
}

type accessReviews struct{ *cluster }

func (c accessReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules++
	if c.away != nil {
		return nil, c.away
	}
	c.asked = review.Spec
	review.Status.Allowed = review.Spec.User == "mara" && review.Spec.ResourceAttributes.Namespace == "shop" || review.Spec.User == "denied"
	review.Status.Denied = review.Spec.User == "denied"
	return review, nil
}

func (c *cluster) guard(o auth.Options) http.Handler {
	o.Tokens, o.Access = tokenReviews{c}, accessReviews{c}
	return auth.New(o).Handler("shop", "web", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "page %q", r.Header.Get("Authorization"))
	}))
}

func get(page http.Handler, authorization ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header["Authorization"] = authorization
	page.ServeHTTP(w, r)
	return w
}

func TestWhoGetsIn(t *testing.T) {
	for name, at := range map[string]struct {
		headers []string
		status  int
		body    string
	}{
		"may":                     {[]string{"Bearer mara-token"}, 200, `page ""`},
		"scheme in lower case":    {[]string{"bearer mara-token"}, 200, `page ""`},
		"may not":                 {[]string{"Bearer tim-token"}, 403, "tim may not get fleets/page in the group fairlead.dev of shop/web"},
		"denied although allowed": {[]string{"Bearer denied-token"}, 403, "denied may not"},
		"unknown token":           {[]string{"Bearer nobody"}, 401, "does not know this token"},
		"nobody's token":          {[]string{"Bearer -token"}, 401, "does not know this token"},
		"no header":               {nil, 401, "Authorization: Bearer TOKEN"},
		"two headers":             {[]string{"Bearer mara-token", "Bearer tim-token"}, 401, "Authorization: Bearer TOKEN"},
		"other scheme":            {[]string{"Basic bWFyYTp4"}, 401, "Authorization: Bearer TOKEN"},
		"no token":                {[]string{"Bearer "}, 401, "Authorization: Bearer TOKEN"},
		"two tokens":              {[]string{"Bearer mara-token tim-token"}, 401, "Authorization: Bearer TOKEN"},
		"control characters":      {[]string{"Bearer mara\n-token"}, 401, "Authorization: Bearer TOKEN"},
		"endless":                 {[]string{"Bearer " + strings.Repeat("a", 20<<10)}, 401, "Authorization: Bearer TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			w := get((&cluster{}).guard(auth.Options{}), at.headers...)
			if w.Code != at.status || !strings.Contains(w.Body.String(), at.body) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, at.status, at.body)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (at.status == 401) {
				t.Errorf("challenge %q", challenge)
			}
			if w.Code != 200 && w.Header().Get("Cache-Control") != "no-store" {
				t.Error("a refusal may be kept")
			}
		})
	}
}

func TestWhatIsAsked(t *testing.T) {
	c := &cluster{}
	get(c.guard(auth.Options{}), "Bearer mara-token")
	want := authorizationv1.ResourceAttributes{Verb: "get", Group: "fairlead.dev", Version: "v1alpha1", Resource: "fleets", Subresource: "page", Namespace: "shop", Name: "web"}
	if *c.asked.ResourceAttributes != want || c.asked.UID != "1" || c.asked.Groups[0] != "people" || c.asked.Extra["k"][0] != "v" {
		t.Errorf("asked %+v %+v", c.asked, *c.asked.ResourceAttributes)
	}
}

// A token for somebody else gets nobody in, nor does an API server that ignores what a
// token is for.
func TestAudiences(t *testing.T) {
	for name, at := range map[string]struct {
		of, wanted []string
		status     int
	}{
		"ours":            {[]string{"fairlead"}, []string{"other", "fairlead"}, 200},
		"somebody else's": {[]string{"vault"}, []string{"fairlead"}, 401},
		"ignored":         {nil, []string{"fairlead"}, 401},
		"not asked for":   {nil, nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if w := get((&cluster{audiences: at.of}).guard(auth.Options{Audiences: at.wanted}), "Bearer mara-token"); w.Code != at.status {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// Nobody gets in while Kubernetes is away, and what it says goes to the log without the
// token.
func TestAway(t *testing.T) {
	c := &cluster{away: errors.New("dial tcp: refused mara-token \x1b[31m")}
	said := ""
	page := c.guard(auth.Options{Log: func(text string) { said += text }})
	w := get(page, "Bearer mara-token")
	if w.Code != 503 || strings.Contains(w.Body.String(), "dial") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(said, "TokenReview: dial tcp: refused") || strings.Contains(said, "mara-token") || strings.Contains(said, "\x1b") {
		t.Errorf("log: %q", said)
	}

	c.away = nil
	if w := get(page, "Bearer mara-token"); w.Code != 200 {
		t.Errorf("after it came back: %d %s", w.Code, w.Body)
	}
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		page := c.guard(auth.Options{Remember: 30 * time.Second})
		for range 5 {
			get(page, "Bearer mara-token")
			get(page, "Bearer tim-token")
		}
		if c.tokens != 2 || c.rules != 2 {
			t.Errorf("%d token reviews, %d access reviews; want 2 and 2", c.tokens, c.rules)
		}

		time.Sleep(3 * time.Second)
		get(page, "Bearer mara-token")
		get(page, "Bearer tim-token") // who was just given the right does not wait long
		if c.tokens != 3 {
			t.Errorf("%d token reviews after 3 s, want 3", c.tokens)
		}

		c.away = errors.New("away")
		if w := get(page, "Bearer mara-token"); w.Code != 200 {
			t.Errorf("while a yes is good: %d", w.Code)
		}
		time.Sleep(27 * time.Second)
		if w := get(page, "Bearer mara-token"); w.Code != 503 {
			t.Errorf("when it is not any more: %d", w.Code)
		}
	})
}

// A yes for one Fleet is none for another.
func TestFleetsAreApart(t *testing.T) {
	c := &cluster{}
	g := auth.New(auth.Options{Tokens: tokenReviews{c}, Access: accessReviews{c}})
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for of, status := range map[[2]string]int{{"shop", "web"}: 200, {"shop", ""}: 200, {"pay", "web"}: 403, {"", ""}: 403} {
		if w := get(g.Handler(of[0], of[1], page), "Bearer mara-token"); w.Code != status {
			t.Errorf("%q: %d %s", of, w.Code, w.Body)
		}
	}
}

// Seven tabs are one question, and the first of them may go away meanwhile.
func TestManyTabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{slow: make(chan struct{})}
		page := c.guard(auth.Options{})
		ctx, leave := context.WithCancel(t.Context())
		var tabs sync.WaitGroup
		for i := range 7 {
			tabs.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				if i == 0 {
					r = r.WithContext(ctx)
				}
				r.Header.Set("Authorization", "Bearer mara-token")
				w := httptest.NewRecorder()
				page.ServeHTTP(w, r)
				if w.Code != 200 && i > 0 {
					t.Errorf("tab %d: %d %s", i, w.Code, w.Body)
				}
			})
			synctest.Wait()
		}
		leave()
		close(c.slow)
		tabs.Wait()
		if c.tokens != 1 {
			t.Errorf("%d token reviews", c.tokens)
		}
	})
}

// A flood of tokens asks a few questions at a time, and is not remembered without end.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{slow: make(chan struct{})}
		page := c.guard(auth.Options{AtOnce: 2, Timeout: time.Second})
		var flood sync.WaitGroup
		codes := make([]int, 100)
		for i := range codes {
			flood.Go(func() { codes[i] = get(page, fmt.Sprintf("Bearer %d-token", i)).Code })
		}
		flood.Wait() // all of them run out of time
		for i, code := range codes {
			if code != 503 {
				t.Errorf("token %d: %d", i, code)
			}
		}

		close(c.slow)
		for i := range 10_000 {
			get(page, fmt.Sprintf("Bearer %d-token", i))
		}
		if w := get(page, "Bearer mara-token"); w.Code != 200 {
			t.Errorf("afterwards: %d %s", w.Code, w.Body)
		}
	})
}

// A stream ends after a while, so that whoever lost the right does not go on reading.
func TestLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		g := auth.New(auth.Options{Tokens: tokenReviews{c}, Access: accessReviews{c}, Lifetime: time.Minute})
		began := time.Now()
		get(g.Handler("shop", "web", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })), "Bearer mara-token")
		if lasted := time.Since(began); lasted != time.Minute {
			t.Errorf("lasted %v", lasted)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/web"
)

const oneCluster = `-- clusters/eu-1.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
-- web.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {a: b}
-- policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
`

// Every answer, errors and files too, forbids what the page does not need.
func TestHeaders(t *testing.T) {
	g := sourcetest.Txtar(t, oneCluster)
	s := open(t, g.Dir)
	s.follow(g)
	for _, path := range []string{"/", "/nothing", "/healthz", "/assets/none", "/?at=nowhere", "/api/v1/none"} {
		h := s.get(path).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Set-Cookie": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestOnlyReads(t *testing.T) {
	g := sourcetest.Txtar(t, oneCluster)
	s := open(t, g.Dir)
	s.follow(g)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow: %q", method, w.Code, w.Header().Get("Allow"))
		}
	}

	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	if w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("ETag") == "" {
		t.Errorf("HEAD: %d, %d bytes, ETag %q", w.Code, w.Body.Len(), w.Header().Get("ETag"))
	}
}

// What a client has is not sent again, and what it takes packed is packed.
func TestSendsLittle(t *testing.T) {
	g := sourcetest.Txtar(t, oneCluster)
	s := open(t, g.Dir)
	s.follow(g)

	plain := s.get("/")
	tag := plain.Header().Get("ETag")
	if again := s.get("/", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("If-None-Match %s: %d, %d bytes", tag, again.Code, again.Body.Len())
	}
	g.Commit("again", map[string]string{"web.yaml": sourcetest.Delete})
	s.follow(g)
	if later := s.get("/", "If-None-Match", tag); later.Code != http.StatusOK {
		t.Errorf("after a commit: %d", later.Code)
	}

	packed := s.get("/", "Accept-Encoding", "br, gzip")
	if packed.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(body(t, packed), "</html>") {
		t.Errorf("Accept-Encoding: %v", packed.Header())
	}
	if refused := s.get("/", "Accept-Encoding", "gzip;q=0"); refused.Header().Get("Content-Encoding") != "" {
		t.Errorf("gzip;q=0: %v", refused.Header())
	}
	for _, line := range strings.Split(body(t, s.get("/")), `"`) {
		if strings.HasPrefix(line, "/assets/") {
			if file := s.get(line); file.Code != http.StatusOK || !strings.Contains(file.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d %q", line, file.Code, file.Header().Get("Cache-Control"))
			}
		}
	}
}

// Before the first fold, there is a page that says so and comes back.
func TestBeginning(t *testing.T) {
	wait := make(chan struct{})
	g := sourcetest.Txtar(t, oneCluster)
	s := open(t, g.Dir, func(o *web.Options) {
		folded := o.Fleet.Open
		o.Fleet.Open = func(ctx context.Context) (*history.States, error) {
			<-wait
			return folded(ctx)
		}
	})
	for _, path := range []string{"/", "/holds", "/healthz"} {
		r := s.get(path)
		if r.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, r.Code)
		}
		if path == "/" && (r.Header().Get("Retry-After") == "" || !strings.Contains(r.Body.String(), `http-equiv="refresh"`)) {
			t.Errorf("it does not come back: %v", r.Header())
		}
	}
	close(wait)
	s.follow(g)
	if r := s.get("/healthz"); r.Code != http.StatusOK {
		t.Errorf("healthz: %d", r.Code)
	}
}

// That a remote repository is not fetched is said on every page, as long as it is so.
func TestFetch(t *testing.T) {
	var mu sync.Mutex
	fails := errors.New("the server said <no>")
	g := sourcetest.Txtar(t, oneCluster)
	s := open(t, g.Dir, func(o *web.Options) {
		o.Fleet.FetchEvery = time.Nanosecond
		o.Now = time.Now
		o.Fleet.Fetch = func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			return fails
		}
	})
	s.follow(g)
	says := func() bool { return strings.Contains(s.get("/holds").Body.String(), "the server said &lt;no&gt;") }
	for !says() {
		s.Nudge()
	}
	mu.Lock()
	fails = nil
	mu.Unlock()
	for says() {
		s.Nudge()
	}
}

// What was rewritten is gone: a pushed branch may have another history.
func TestRewritten(t *testing.T) {
	g := sourcetest.Txtar(t, oneCluster)
	s := open(t, g.Dir)
	s.follow(g)
	lost := g.Commit("lost", map[string]string{"web.yaml": sourcetest.Delete})
	s.follow(g)
	g.Git("reset", "-q", "--hard", "HEAD~1")
	g.Commit("instead", map[string]string{"other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shop}\n"})
	s.follow(g)
	if text := s.get("/").Body.String(); !strings.Contains(text, "instead") || !strings.Contains(text, ">other<") && !strings.Contains(text, " other") {
		t.Errorf("the new head is not shown")
	}
	if r := s.get("/?at=" + lost); r.Code != http.StatusNotFound {
		t.Errorf("the lost commit: %d", r.Code)
	}
}

// htmx is the file of its release.
func TestVendored(t *testing.T) {
	raw, err := os.ReadFile("assets/htmx-4.0.1.min.js")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	if got := hex.EncodeToString(sum[:]); got != "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130" {
		t.Errorf("htmx has the digest %s", got)
	}
	if licence, err := os.ReadFile("assets/htmx-4.0.1.LICENSE.txt"); err != nil || !strings.HasPrefix(string(licence), "Zero-Clause BSD") {
		t.Errorf("its licence: %q, %v", licence, err)
	}
}

// A page without users is not read by the site that a browser has open beside it, under a
// name that leads here.
func TestLocalOnly(t *testing.T) {
	page := web.LocalOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for host, want := range map[string]int{
		"localhost:8088": 200, "127.0.0.1": 200, "127.0.0.1:8088": 200, "[::1]:8088": 200, "fleet.localhost": 200,
		"evil.example.com:8088": 421, "10.0.0.1:8088": 421, "localhost.evil.example.com": 421, "": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}

// The head of a pull request, as a forge has it in the repository, is planned onto the
// branch; of a number without one the page says what to fetch.
func TestPullRequest(t *testing.T) {
	g := sourcetest.Txtar(t, oneCluster)
	g.Git("checkout", "-q", "-b", "change")
	g.Commit("another value", map[string]string{"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {a: c}\n"})
	g.Git("update-ref", "refs/pull/7/head", "HEAD")
	g.Checkout("main")
	s := open(t, g.Dir)
	s.follow(g)

	w := s.get("/plans/7")
	for _, want := range []string{"Plan of #7", "1 now", "ConfigMap shop/web", "eu-1"} {
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, and %q is not in\n%s", w.Code, want, w.Body)
		}
	}
	if w := s.get("/plans/8"); w.Code != http.StatusNotFound {
		t.Errorf("/plans/8: %d", w.Code)
	}
}

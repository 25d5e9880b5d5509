// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/web"
)

// crawl follows every link of the site, and has each page looked at once.
func (s *site) crawl(from []string, look func(path string, r *httptest.ResponseRecorder, text string)) (visited int) {
	const most = 2000
	todo, seen := slices.Clone(from), map[string]bool{}
	for len(todo) > 0 && visited < most {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path], visited = true, visited+1
		r := s.get(path)
		text := body(s.t, r)
		look(path, r, text)
		if strings.HasPrefix(r.Header().Get("Content-Type"), "text/html") {
			todo = append(todo, linksOf(s.t, text)...)
		}
	}
	return visited
}

// linksOf are the addresses that a page leads to on its own site.
func linksOf(t testing.TB, page string) (all []string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key != "href" && a.Key != "src" {
				continue
			}
			u, err := url.Parse(a.Val)
			if err != nil {
				t.Errorf("%q: %v", a.Val, err)
				continue
			}
			if u.Host == "" && u.Path != "" {
				u.Fragment = ""
				all = append(all, u.String())
			}
		}
	}
	return all
}

// isOurs fails the test if there is anything on a page that runs, or leads away.
func isOurs(t testing.TB, path, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if slices.Contains([]string{"iframe", "object", "embed", "base", "img", "style"}, n.Data) {
			t.Errorf("%s has an element %s", path, n.Data)
		}
		src := ""
		for _, a := range n.Attr {
			value := strings.ToLower(strings.TrimSpace(a.Val))
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:") {
				t.Errorf("%s has an attribute %s=%q", path, a.Key, a.Val)
			}
			if a.Key == "src" {
				src = a.Val
			}
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && (strings.HasPrefix(value, "//") || strings.Contains(value, "://")) {
				t.Errorf("%s leads to %q", path, a.Val)
			}
		}
		if n.Data == "script" && (!strings.HasPrefix(src, "/assets/") || n.FirstChild != nil) {
			t.Errorf("%s has a script %q", path, src)
		}
	}
	for _, hidden := range []string{"\u202e", "\u0007", "\u001b", "\u2028", "\u200b"} {
		if strings.Contains(page, hidden) {
			t.Errorf("%s has %q", path, hidden)
		}
	}
}

const evil = `</a></td></title><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "\u202e\x1b[31m\u2028"

// Whatever the names are that git has: nothing of them becomes part of a page, and every
// link of the site leads somewhere.
func TestHostileNames(t *testing.T) {
	g := sourcetest.New(t)
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(`<script>alert(1)</script>"' onload=x`)
	files := map[string]string{
		"clusters/eu-1.yaml":   "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: eu-1}\nspec: {syncMode: Push}\n",
		"fairlead.yaml":        "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nmetadata: {name: acme}\nspec: {waves: [{name: \"" + quoted + "\", clusters: [eu-1]}]}\n",
		`we "<b>ird' #1?.yaml`: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop, labels: {a: b}}\ndata: {a: b}\n",
		"odd.yaml":             "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:odd:<x>\"%2f..'}\n",
		"policy.yaml":          "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata:\n  name: web\n  namespace: shop\n  annotations:\n    fairlead.dev/holds: |\n      eu-1: {by: \"" + quoted + "\", reason: \"" + quoted + "\", ticket: \"" + quoted + "\"}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {clusterAffinity: {clusterNames: [eu-1]}}\n  suspension: {dispatchingOnClusters: {clusterNames: [eu-1]}}\n",
	}
	g.Commit(evil, files)
	g.Git("config", "user.name", `Eve <script>"`)
	g.Commit("second "+evil, map[string]string{"more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: shop}\n"})
	g.Git("checkout", "-q", "-b", `x"onload=1&<b>`)
	g.Commit("third "+evil, map[string]string{"more.yaml": sourcetest.Delete})
	g.Git("checkout", "-q", "-b", "plain")
	g.Git("checkout", "-q", "main")

	s := open(t, g.Dir)
	s.follow(g)
	if r := s.get("/"); !strings.Contains(r.Body.String(), "(no namespace)") {
		t.Fatalf("the fleet is not read: %s", pageText(t, r.Body.String()))
	}
	from := []string{"/", "/plan?head=plain", "/search?q=" + url.QueryEscape(evil), "/nothing/" + url.PathEscape(evil), "/?at=" + url.QueryEscape(evil),
		"/?show=" + url.QueryEscape(evil), "/timeline?cluster=" + url.QueryEscape(evil), "/clusters/" + url.PathEscape(evil)}
	visited := s.crawl(from, func(path string, r *httptest.ResponseRecorder, text string) {
		if !strings.Contains(path, "alert") && r.Code != http.StatusOK && r.Code != http.StatusFound {
			t.Errorf("%s: %d", path, r.Code)
		}
		if strings.HasPrefix(r.Header().Get("Content-Type"), "text/html") {
			isOurs(t, path, text)
		}
	})
	if visited < 40 {
		t.Errorf("%d pages", visited)
	}
}

// No page and no report has the value of a Secret.
func TestSecrets(t *testing.T) {
	const canary, later = "hunter2-canary", "hunter3-canary"
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\nstringData: {password: " + value + "}\ndata: {other: " + base64.StdEncoding.EncodeToString([]byte(value)) + "}\n"
	}
	g := sourcetest.Txtar(t, oneCluster)
	g.Commit("a secret", map[string]string{"key.yaml": secret(canary), "keypolicy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: key, namespace: shop}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n  placement: {clusterAffinity: {clusterNames: [eu-1]}}\n"})
	g.Commit("hold it", map[string]string{"keypolicy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: key, namespace: shop}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n  placement: {clusterAffinity: {clusterNames: [eu-1]}}\n  suspension: {dispatching: true}\n"})
	g.Commit("another value", map[string]string{"key.yaml": secret(later)})
	g.Git("checkout", "-q", "-b", "branch")
	g.Commit("one more", map[string]string{"key.yaml": secret(canary + later)})
	g.Git("checkout", "-q", "main")
	s := open(t, g.Dir)
	s.follow(g)

	from := []string{"/", "/plan?head=branch", "/templates/secret/shop/key"}
	for _, report := range []string{"bindings", "works", "objects", "templates", "policies", "clusters", "holds", "events", "why?of=secret/key", "history?of=secret/key", "plan?head=branch", "objects?at=HEAD~1", "works?at=HEAD~2"} {
		from = append(from, "/api/v1/"+report)
	}
	keys := 0
	s.crawl(from, func(path string, r *httptest.ResponseRecorder, text string) {
		if strings.HasPrefix(path, "/api/") && r.Code != http.StatusOK {
			t.Errorf("%s: %d", path, r.Code)
		}
		keys += strings.Count(text, "key")
		for _, value := range []string{canary, later, canary + later} {
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
				if strings.Contains(text, form) {
					t.Errorf("%s has a value of the Secret", path)
				}
			}
		}
	})
	if keys == 0 {
		t.Error("the Secret is nowhere, so this says nothing")
	}
}

// A visitor cannot have more folded than there is room for: what exceeds it is refused at
// once, and what nobody waits for any more is not folded.
func TestBusy(t *testing.T) {
	g := sourcetest.Txtar(t, oneCluster)
	for range 4 {
		g.Commit("again", nil)
	}
	opened := 0
	folding, let := make(chan struct{}), make(chan struct{})
	s := open(t, g.Dir, func(o *web.Options) {
		o.Waiting = 1
		folded := o.Fleet.Open
		o.Fleet.Open = func(ctx context.Context) (*history.States, error) {
			if opened++; opened == 2 { // the first one follows the branch
				close(folding)
				<-let
			}
			return folded(ctx)
		}
	})
	s.follow(g)

	answers := make(chan int, 2)
	go func() { answers <- s.get("/?at=HEAD~1").Code }()
	<-folding
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	waits := make(chan struct{})
	go func() {
		r := httptest.NewRequest(http.MethodGet, "/?at=HEAD~2", nil).WithContext(ctx)
		s.ServeHTTP(httptest.NewRecorder(), r)
		close(waits)
	}()
	for s.Waiting() < 2 {
		if t.Failed() {
			return
		}
	}

	refused := s.get("/?at=HEAD~3")
	if refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" {
		t.Errorf("with a full queue: %d, Retry-After %q", refused.Code, refused.Header().Get("Retry-After"))
	}
	if api := s.get("/api/v1/works?at=HEAD~3"); api.Code != http.StatusTooManyRequests {
		t.Errorf("the API with a full queue: %d", api.Code)
	}
	if head := s.get("/"); head.Code != http.StatusOK {
		t.Errorf("the head needs no turn: %d", head.Code)
	}
	cancel()
	<-waits // it does not need its turn to be forgotten
	close(let)
	if code := <-answers; code != http.StatusOK {
		t.Errorf("the one whose turn it was: %d", code)
	}
	if r := s.get("/?at=HEAD~3"); r.Code != http.StatusOK {
		t.Errorf("afterwards: %d", r.Code)
	}
}

// FuzzRequests asks for anything: an answer is never an error of the server, and nothing of
// the request becomes part of the page.
func FuzzRequests(f *testing.F) {
	g := sourcetest.Txtar(f, oneCluster)
	g.Commit("again", map[string]string{"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {a: c}\n"})
	s := open(f, g.Dir)
	s.follow(g)
	for _, path := range []string{"/", "/templates/cm/shop/web", "/templates/%2e%2e/a/b", "/policies/PropagationPolicy/shop/web", "/clusters/eu-1", "/holds", "/plans/1", "/plan", "/timeline",
		"/search", "/api/v1/works", "/api/v1/why", "/api/v1/events", "/assets/x", "/events", "/ruler", "/a//b/../c"} {
		for _, query := range []string{"", "at=HEAD~1", "at=main&show=held&open=shop&page=1", "q=web", "of=cm/web&cluster=*", "cluster=eu-1&template=cm/web&pr=1&before=HEAD", "head=HEAD&base=HEAD~1", "selector=a=b&name=web", "wave=1&close=%00"} {
			f.Add(path, query)
		}
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		u := &url.URL{Scheme: "http", Host: "fleet.example", Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: query}
		if strings.HasPrefix(u.Path, "/events") {
			return // it does not end
		}
		r := httptest.NewRequest(http.MethodGet, "http://fleet.example/", nil)
		r.URL, r.RequestURI = u, u.RequestURI()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", u, w.Code, w.Body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			isOurs(t, u.String(), w.Body.String())
		}
		if at := w.Header().Get("Location"); at != "" && (!strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//")) {
			t.Errorf("%s leads to %q", u, at)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/controller/webhook"
)

// hub has one hook of each type, and notes what it is told.
type hub struct {
	http.Handler
	hooks map[string]webhook.Hook
	paths map[webhook.Type]string
	now   time.Time

	looks  []string
	counts map[string]int
}

const token = "It's a Secret to Everybody"

var types = []webhook.Type{webhook.GitHub, webhook.GitLab, webhook.Gitea, webhook.Bitbucket, webhook.Generic, webhook.GenericHMAC, "smoke-signals"}

func newHub() *hub {
	h := &hub{hooks: map[string]webhook.Hook{}, paths: map[webhook.Type]string{}, counts: map[string]int{}, now: time.Unix(1<<30, 0)}
	for _, kind := range types {
		h.add(webhook.Hook{Type: kind, Token: token, Namespace: "acme", Name: string(kind)})
	}
	h.Handler = webhook.New(webhook.Options{
		Hook:  func(digest string) (webhook.Hook, bool) { hook, ok := h.hooks[digest]; return hook, ok },
		Look:  func(namespace, name string) { h.looks = append(h.looks, namespace+"/"+name) },
		Count: func(result string) { h.counts[result]++ },
		Now:   func() time.Time { return h.now },
	})
	return h
}

func (h *hub) add(hook webhook.Hook) {
	path := webhook.Path(hook.Token, hook.Namespace, hook.Name)
	h.hooks[strings.TrimPrefix(path, "/hook/")] = hook
	h.paths[hook.Type] = path
}

// deliver posts a body with headers "Name: value", and returns the status.
func (h *hub) deliver(path, body string, headers ...string) int {
	return h.request(http.MethodPost, path, body, headers...).Code
}

func (h *hub) request(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func sign(newHash func() hash.Hash, token, body string) string {
	mac := hmac.New(newHash, []byte(token))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// The path is the one that Flux's notification-controller shows in status.webhookPath.
func TestPath(t *testing.T) {
	digest := sha256.Sum256([]byte("t0kenfleetacme"))
	if got, want := webhook.Path("t0ken", "acme", "fleet"), "/hook/"+hex.EncodeToString(digest[:]); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

// What each forge sends for a push, as it sends it. That of GitHub has the signature of its
// documentation.
func TestDeliveries(t *testing.T) {
	const hello = "Hello, World!"
	const push = `{"ref":"refs/heads/main","before":"0000000000000000000000000000000000000000","after":"aa218f56b14c9653891f9e74264a383fa43fefbd","repository":{"full_name":"acme/fleet"}}`
	sum := sign(sha256.New, token, push)
	for name, c := range map[string]struct {
		kind    webhook.Type
		body    string
		headers []string
		status  int
		result  string
		looks   int
	}{
		"GitHub": {webhook.GitHub, hello, []string{"X-GitHub-Event: push", "X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958", "User-Agent: GitHub-Hookshot/044aadd",
			"X-Hub-Signature: sha1=0000000000000000000000000000000000000000", "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, 200, webhook.OK, 1},
		"GitHub's ping":       {webhook.GitHub, push, []string{"X-GitHub-Event: ping", "X-Hub-Signature-256: sha256=" + sum}, 200, webhook.OK, 0},
		"GitHub's form":       {webhook.GitHub, "payload=%7B%7D", []string{"X-GitHub-Event: push", "Content-Type: application/x-www-form-urlencoded", "X-Hub-Signature-256: sha256=" + sign(sha256.New, token, "payload=%7B%7D")}, 200, webhook.OK, 1},
		"GitHub, forged":      {webhook.GitHub, push, []string{"X-GitHub-Event: push", "X-Hub-Signature-256: sha256=" + sign(sha256.New, "guess", push)}, 401, webhook.BadSignature, 0},
		"GitHub, forged ping": {webhook.GitHub, push, []string{"X-GitHub-Event: ping"}, 401, webhook.BadSignature, 0},
		"GitHub, changed":     {webhook.GitHub, push + " ", []string{"X-Hub-Signature-256: sha256=" + sum}, 401, webhook.BadSignature, 0},
		"GitHub, SHA-1 only":  {webhook.GitHub, push, []string{"X-Hub-Signature: sha1=" + sign(sha256.New, token, push)[:40]}, 401, webhook.BadSignature, 0},
		"GitHub, no prefix":   {webhook.GitHub, push, []string{"X-Hub-Signature-256: " + sum}, 401, webhook.BadSignature, 0},
		"GitHub, cut":         {webhook.GitHub, push, []string{"X-Hub-Signature-256: sha256=" + sum[:62]}, 401, webhook.BadSignature, 0},
		"GitHub, no hex":      {webhook.GitHub, push, []string{"X-Hub-Signature-256: sha256=" + sum[:62] + "zz"}, 401, webhook.BadSignature, 0},
		"GitHub, empty":       {webhook.GitHub, push, []string{"X-Hub-Signature-256: sha256="}, 401, webhook.BadSignature, 0},
		"GitLab":              {webhook.GitLab, push, []string{"X-Gitlab-Event: Push Hook", "X-Gitlab-Token: " + token}, 200, webhook.OK, 1},
		"GitLab, guessed":     {webhook.GitLab, push, []string{"X-Gitlab-Token: " + token + "!"}, 401, webhook.BadSignature, 0},
		"GitLab, no token":    {webhook.GitLab, push, nil, 401, webhook.BadSignature, 0},
		"Gitea":               {webhook.Gitea, push, []string{"X-Gitea-Event: push", "X-Gogs-Signature: " + sum, "X-Gitea-Signature: " + sum, "X-Hub-Signature-256: sha256=" + sum}, 200, webhook.OK, 1},
		"Forgejo":             {webhook.Gitea, push, []string{"X-Forgejo-Event: push", "X-Forgejo-Signature: " + sum}, 200, webhook.OK, 1},
		"Gitea, forged":       {webhook.Gitea, push, []string{"X-Gitea-Signature: " + strings.Repeat("0", 64)}, 401, webhook.BadSignature, 0},
		"Bitbucket":           {webhook.Bitbucket, push, []string{"X-Event-Key: repo:push", "X-Hub-Signature: sha256=" + sum}, 200, webhook.OK, 1},
		"Bitbucket's ping":    {webhook.Bitbucket, push, []string{"X-Event-Key: diagnostics:ping", "X-Hub-Signature: sha256=" + sum}, 200, webhook.OK, 0},
		"Bitbucket, forged":   {webhook.Bitbucket, push, []string{"X-Hub-Signature: sha256=" + strings.Repeat("0", 64)}, 401, webhook.BadSignature, 0},
		"generic":             {webhook.Generic, "", nil, 200, webhook.OK, 1},
		"generic-hmac":        {webhook.GenericHMAC, push, []string{"X-Signature: sha256=" + sum}, 200, webhook.OK, 1},
		"with SHA-512":        {webhook.GenericHMAC, push, []string{"X-Signature: sha512=" + sign(sha512.New, token, push)}, 200, webhook.OK, 1},
		"with SHA-384":        {webhook.GenericHMAC, push, []string{"X-Signature: sha384=" + sign(sha512.New384, token, push)}, 200, webhook.OK, 1},
		"called another":      {webhook.GenericHMAC, push, []string{"X-Signature: sha512=" + sum}, 401, webhook.BadSignature, 0},
		"with no known hash":  {webhook.GenericHMAC, push, []string{"X-Signature: md5=" + sum}, 401, webhook.BadSignature, 0},
		"unsigned":            {webhook.GenericHMAC, push, nil, 401, webhook.BadSignature, 0},
		"of no known type":    {"smoke-signals", push, nil, 401, webhook.BadSignature, 0},
		"too large":           {webhook.GitHub, strings.Repeat("x", 1<<20+1), nil, 413, webhook.TooLarge, 0},
		"generic, too large":  {webhook.Generic, strings.Repeat("x", 1<<20+1), nil, 413, webhook.TooLarge, 0},
	} {
		h := newHub()
		status := h.deliver(h.paths[c.kind], c.body, c.headers...)
		if status != c.status || h.counts[c.result] != 1 || len(h.counts) != 1 || len(h.looks) != c.looks {
			t.Errorf("%s: %d, counted %v, %d looks; want %d", name, status, h.counts, len(h.looks), c.status)
		}
		if len(h.looks) == 1 && h.looks[0] != "acme/"+string(c.kind) {
			t.Errorf("%s: it looks at %s", name, h.looks[0])
		}
	}
}

// Nothing but the path of a hook is there, and nothing is said of what is.
func TestOtherRequests(t *testing.T) {
	h := newHub()
	path := h.paths[webhook.Generic]
	empty := webhook.Hook{Type: webhook.Generic, Namespace: "acme", Name: "no-token"}
	h.add(empty)
	for name, c := range map[string]struct {
		method, path string
		status       int
	}{
		"look":                {http.MethodGet, path, 405},
		"replace":             {http.MethodPut, path, 405},
		"unknown hook":        {http.MethodPost, "/hook/" + strings.Repeat("0", 64), 404},
		"without its token":   {http.MethodPost, webhook.Path("", "acme", "no-token"), 404},
		"in capitals":         {http.MethodPost, strings.ToUpper(path), 404},
		"below it":            {http.MethodPost, path + "/x", 404},
		"with a slash":        {http.MethodPost, path + "/", 404},
		"cut":                 {http.MethodPost, path[:len(path)-1], 404},
		"the root":            {http.MethodGet, "/", 404},
		"metrics elsewhere":   {http.MethodGet, "/metrics", 404},
		"the directory of it": {http.MethodGet, "/hook/", 404},
	} {
		w := h.request(c.method, c.path, "")
		if w.Code != c.status || w.Body.Len() > 0 {
			t.Errorf("%s: %d %q, want %d", name, w.Code, w.Body, c.status)
		}
	}
	if len(h.looks) > 0 {
		t.Errorf("it looks at %v", h.looks)
	}
}

// A delivery that is sent again does what it did the first time: have somebody look. Who
// sends it very often is told to wait, and only that.
func TestRepeatedDeliveries(t *testing.T) {
	h := newHub()
	for range 30 {
		if status := h.deliver(h.paths[webhook.Generic], ""); status != 200 {
			t.Fatalf("%d after %d looks", status, len(h.looks))
		}
	}
	w := h.request(http.MethodPost, h.paths[webhook.Generic], "")
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || len(h.looks) != 30 {
		t.Errorf("%d after %d looks", w.Code, len(h.looks))
	}
	if status := h.deliver(h.paths[webhook.GitLab], "", "X-Gitlab-Token: "+token); status != 200 {
		t.Errorf("another hook: %d", status)
	}

	h.now = h.now.Add(time.Second)
	if status := h.deliver(h.paths[webhook.Generic], ""); status != 200 {
		t.Errorf("a second later: %d", status)
	}
}

// Who guesses is slowed down, all guessers together, and good deliveries are not.
func TestGuesses(t *testing.T) {
	h := newHub()
	for i := range 100 {
		if status := h.deliver(fmt.Sprintf("/hook/%064x", i), ""); status != 404 {
			t.Fatalf("guess %d: %d", i, status)
		}
	}
	for _, path := range []string{"/hook/" + strings.Repeat("f", 64), "/admin"} {
		if status := h.deliver(path, ""); status != 429 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status := h.deliver(h.paths[webhook.GitHub], "", "X-Hub-Signature-256: sha256=00"); status != 429 {
		t.Errorf("a bad signature: %d", status)
	}
	if status := h.deliver(h.paths[webhook.GitLab], "", "X-Gitlab-Token: "+token); status != 200 {
		t.Errorf("a good delivery: %d", status)
	}
	if h.counts[webhook.NotFound] != 100 || h.counts[webhook.Limited] != 3 || h.counts[webhook.OK] != 1 {
		t.Errorf("counted %v", h.counts)
	}
}

// What is remembered of hooks is bounded, however many there were.
func TestLimitsAreForgotten(t *testing.T) {
	h := newHub()
	for i := range 10000 {
		name := fmt.Sprint("fleet-", i)
		h.add(webhook.Hook{Type: webhook.Generic, Token: token, Namespace: "acme", Name: name})
		if i%1000 == 0 {
			h.now = h.now.Add(time.Minute)
		}
		if status := h.deliver(h.paths[webhook.Generic], ""); status != 200 {
			t.Fatalf("%s: %d", name, status)
		}
		if n := webhook.Remembered(h.Handler); n > 4096 {
			t.Fatalf("%d limits", n)
		}
	}
	if n := webhook.Remembered(h.Handler); n == 0 {
		t.Error("nothing is remembered")
	}
}

func TestServe(t *testing.T) {
	h := newHub()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- webhook.Serve(ctx, l, h) }()

	resp, err := http.Post("http://"+l.Addr().String()+h.paths[webhook.Generic], "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}

	s := webhook.Server(h)
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= s.ReadTimeout || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("a client can occupy it: %+v", s)
	}
}

// Whatever is sent, nobody looks unless it is signed with the token.
func FuzzReceiver(f *testing.F) {
	f.Add(uint8(0), "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "Hello, World!")
	f.Add(uint8(1), token, "{}")
	f.Add(uint8(2), sign(sha256.New, token, "{}"), "{}")
	f.Add(uint8(3), "sha256=", "")
	f.Add(uint8(5), "sha512="+sign(sha512.New, token, "x"), "x")
	f.Add(uint8(6), "sha256=00", "\x00")
	headers := []string{"X-Hub-Signature-256", "X-Gitlab-Token", "X-Gitea-Signature", "X-Hub-Signature", "X-Nothing", "X-Signature", "X-Signature"}
	f.Fuzz(func(t *testing.T, which uint8, signature, body string) {
		i := int(which) % len(types)
		h := newHub()
		r := httptest.NewRequest(http.MethodPost, h.paths[types[i]], strings.NewReader(body))
		r.Header[headers[i]] = []string{signature}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)

		signed := map[webhook.Type]bool{
			webhook.GitHub:    strings.EqualFold(signature, "sha256="+sign(sha256.New, token, body)),
			webhook.Bitbucket: strings.EqualFold(signature, "sha256="+sign(sha256.New, token, body)),
			webhook.Gitea:     strings.EqualFold(signature, sign(sha256.New, token, body)),
			webhook.GitLab:    signature == token,
			webhook.Generic:   true,
			webhook.GenericHMAC: strings.EqualFold(signature, "sha256="+sign(sha256.New, token, body)) || strings.EqualFold(signature, "sha384="+sign(sha512.New384, token, body)) ||
				strings.EqualFold(signature, "sha512="+sign(sha512.New, token, body)),
		}
		if looked := len(h.looks) == 1; looked != (w.Code == 200) || looked && !signed[types[i]] {
			t.Errorf("%s with %q: %d, %v", types[i], signature, w.Code, h.looks)
		}
	})
}

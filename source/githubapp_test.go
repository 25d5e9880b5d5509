// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// github is a server with a repository, and the part of GitHub's API that gives an App
// the tokens for it.
type github struct {
	*httptest.Server
	key *rsa.PrivateKey
	ca  []byte
	dir string

	mu    sync.Mutex
	lasts time.Duration   // how long a token is valid
	given int             // tokens
	valid map[string]bool // of these
	asked []string        // requests to the API
}

func serveGitHub(t *testing.T, dir string) *github {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}

	g := &github{key: key, dir: dir, lasts: time.Hour, valid: map[string]bool{}}
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v3/") {
			g.api(w, r)
			return
		}
		user, token, _ := r.BasicAuth()
		g.mu.Lock()
		ok := user == "x-access-token" && g.valid[token]
		g.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	g.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	return g
}

func (g *github) api(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()

	assertion := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	g.asked = append(g.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v3"))
	switch {
	case !g.signed(assertion):
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message": "not signed: %s"}`, assertion)
	case r.URL.Path == "/api/v3/users/ada/installation":
		fmt.Fprint(w, `{"id": 34}`)
	case r.Method == http.MethodPost && r.URL.Path == "/api/v3/app/installations/34/access_tokens":
		g.given++
		token := fmt.Sprintf("ghs_s3cret%d", g.given)
		g.valid[token] = true
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": %q, "expires_at": %q}`, token, time.Now().Add(g.lasts).UTC().Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// signed checks a JSON Web Token as GitHub does.
func (g *github) signed(assertion string) bool {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return false
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, digest[:], signature) != nil {
		return false
	}

	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
		Exp    int64  `json:"exp"`
		Iat    int64  `json:"iat"`
	}
	now := time.Now().Unix()
	return err == nil && json.Unmarshal(raw, &claims) == nil && claims.Issuer == "12" &&
		claims.Iat <= now && claims.Exp > now && claims.Exp-claims.Iat <= 600
}

func (g *github) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.valid)
}

func (g *github) auth() source.Auth {
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)})
	return source.Auth{CA: g.ca, App: &source.GitHubApp{ID: "12", InstallationID: "34", PrivateKey: key, BaseURL: g.URL + "/api/v3/"}}
}

func (g *github) address() string { return g.URL + "/" + filepath.Base(g.dir) }

// A token is used while it is valid, and renewed before it ends or when it is rejected.
func TestGitHubApp(t *testing.T) {
	ctx := context.Background()
	repo := sourcetest.New(t)
	repo.Commit("one", nil)
	g := serveGitHub(t, repo.Bare())
	r, err := source.Clone(ctx, filepath.Join(t.TempDir(), "m"), g.address(), g.auth())
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(when string, given int) {
		t.Helper()
		if err := r.Fetch(ctx); err != nil || g.given != given {
			t.Errorf("%s: %d tokens, %v; want %d", when, g.given, err, given)
		}
	}
	fetch("at once", 1)

	r.SetAuth(g.auth())
	fetch("with the same App again", 1)

	g.revoke()
	if err := r.Fetch(ctx); !errors.Is(err, source.ErrAuthentication) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("revoked: %v", err)
	}
	g.lasts = 4 * time.Minute
	fetch("after that", 2)
	fetch("near its end", 3)

	auth := g.auth()
	auth.App.InstallationID, auth.App.Owner = "", "ada"
	r.SetAuth(auth)
	g.asked = nil
	fetch("of an owner", 4)
	want := "GET /orgs/ada/installation, GET /users/ada/installation, POST /app/installations/34/access_tokens"
	if got := strings.Join(g.asked, ", "); got != want {
		t.Errorf("it was asked %s, want %s", got, want)
	}
}

// Neither the key nor a token nor what was signed stands in an error.
func TestGitHubAppRefused(t *testing.T) {
	repo := sourcetest.New(t)
	repo.Commit("one", nil)
	g := serveGitHub(t, repo.Bare())
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})

	for name, c := range map[string]struct {
		change func(*source.GitHubApp)
		want   string
	}{
		"another key":             {func(a *source.GitHubApp) { a.PrivateKey = other }, "Unauthorized: its ID or private key is rejected"},
		"no key":                  {func(a *source.GitHubApp) { a.PrivateKey = []byte("hunter2") }, "the private key is not PEM"},
		"another installation":    {func(a *source.GitHubApp) { a.InstallationID = "35" }, "Not Found: it is not installed there"},
		"a path for an ID":        {func(a *source.GitHubApp) { a.InstallationID = "../../users/ada/installation?" }, "Not Found: it is not installed there"},
		"an owner without it":     {func(a *source.GitHubApp) { a.InstallationID, a.Owner = "", "bob" }, "Not Found: it is not installed there"},
		"an API without TLS":      {func(a *source.GitHubApp) { a.BaseURL = "http://example.com" }, "must be https://"},
		"an API with credentials": {func(a *source.GitHubApp) { a.BaseURL = "https://ada:hunter2@example.com" }, "is not a URL such as"},
	} {
		auth := g.auth()
		c.change(auth.App)
		_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), g.address(), auth)
		if !errors.Is(err, source.ErrAuthentication) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if g.given != 0 {
		t.Errorf("%d tokens were given", g.given)
	}
}

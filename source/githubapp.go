// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
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
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// GitHubApp is an installation of a GitHub App. It authenticates with a token that lasts an
// hour, for which its key signs.
type GitHubApp struct {
	ID string // of the App, or its client ID
	// InstallationID is the number of the installation, or else Owner the organization or
	// user that has it.
	InstallationID, Owner string
	PrivateKey            []byte // PEM, RSA
	BaseURL               string // of the API; default https://api.github.com
}

// key parses the private key. No error quotes it.
func (a *GitHubApp) key() (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(a.PrivateKey)
	if block == nil {
		return nil, errors.New("the private key is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if rsaKey, ok := key.(*rsa.PrivateKey); ok {
			return rsaKey, nil
		}
	}
	return nil, errors.New("the private key is not an RSA key")
}

// Check reports what is wrong with the values, without any request.
func (a *GitHubApp) Check() error {
	if a.ID == "" {
		return errors.New("the App has no ID")
	}
	if (a.InstallationID == "") == (a.Owner == "") {
		return errors.New("specify exactly one of the installation's ID and its owner")
	}
	if _, err := a.base(); err != nil {
		return err
	}
	_, err := a.key()
	return err
}

func (a *GitHubApp) base() (*url.URL, error) {
	u, err := url.Parse(cmp.Or(a.BaseURL, "https://api.github.com"))
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the base URL of the API is not a URL such as https://github.example.com/api/v3")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, errors.New("the base URL of the API must be https://")
	}
	return u, nil
}

// assertion is a JSON Web Token that says to GitHub that we are the App.
func (a *GitHubApp) assertion(now time.Time) (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": a.ID,
		"iat": now.Add(-time.Minute).Unix(), // their clock may be behind ours
		"exp": now.Add(9 * time.Minute).Unix(),
	})
	if err != nil {
		return "", err
	}

	b64 := base64.RawURLEncoding
	text := b64.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + b64.EncodeToString(claims)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", err
	}
	return text + "." + b64.EncodeToString(signature), nil
}

// tokens keeps the token of an installation until shortly before its end.
type tokens struct {
	mu    sync.Mutex
	app   GitHubApp
	token string
	until time.Time
}

// renewBefore is how long before its end a token is not used any more: a fetch takes time.
const renewBefore = 5 * time.Minute

// get returns a token that is valid for a while.
func (t *tokens) get(ctx context.Context, client *http.Client, app *GitHubApp) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.token != "" && same(&t.app, app) && time.Until(t.until) > renewBefore {
		return t.token, nil
	}
	token, until, err := app.exchange(ctx, client)
	if err != nil {
		return "", fmt.Errorf("GitHub App %s: %w", app.ID, err)
	}

	t.app, t.token, t.until = *app, token, until
	return token, nil
}

// forget has the next session get another token.
func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = ""
}

func same(a, b *GitHubApp) bool {
	return a.ID == b.ID && a.InstallationID == b.InstallationID && a.Owner == b.Owner && a.BaseURL == b.BaseURL &&
		bytes.Equal(a.PrivateKey, b.PrivateKey)
}

// exchange gets a token for the installation.
func (a *GitHubApp) exchange(ctx context.Context, client *http.Client) (token string, until time.Time, err error) {
	if err := a.Check(); err != nil {
		return "", until, &fault{ErrAuthentication, err}
	}
	assertion, err := a.assertion(time.Now())
	if err != nil {
		return "", until, &fault{ErrAuthentication, err}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()

	api := &appAPI{client: client, app: a, assertion: assertion}
	id := a.InstallationID
	if id == "" {
		if id, err = api.installation(ctx); err != nil {
			return "", until, err
		}
	}

	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := api.ask(ctx, http.MethodPost, &answer, "app", "installations", id, "access_tokens"); err != nil {
		return "", until, err
	}
	if answer.Token == "" {
		return "", until, errors.New("the answer has no token")
	}
	return answer.Token, answer.ExpiresAt, nil
}

// appAPI is what an App can ask before it has a token.
type appAPI struct {
	client    *http.Client
	app       *GitHubApp
	assertion string
}

// installation finds the installation of an organization, or else of a user.
func (p *appAPI) installation(ctx context.Context) (id string, err error) {
	var answer struct {
		ID json.Number `json:"id"`
	}
	for _, kind := range []string{"orgs", "users"} {
		err = p.ask(ctx, http.MethodGet, &answer, kind, p.app.Owner, "installation")
		if missing := (*notFound)(nil); !errors.As(err, &missing) {
			return answer.ID.String(), err
		}
	}
	return "", err
}

// notFound is an answer 404.
type notFound struct{ error }

func (p *appAPI) ask(ctx context.Context, method string, into any, path ...string) error {
	base, err := p.app.base()
	if err != nil {
		return err
	}
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base.String(), "/")+"/"+strings.Join(path, "/"), nil)
	if err != nil {
		return errors.New("the request cannot be made")
	}
	req.Header.Set("Authorization", "Bearer "+p.assertion)
	req.Header.Set("Accept", "application/vnd.github+json")

	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	// The server's words are left out: they may quote what was sent.
	said := fmt.Errorf("%s %s: %s", method, req.URL.Redacted(), http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		return &fault{ErrAuthentication, &notFound{fmt.Errorf("%w: it is not installed there", said)}}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &fault{ErrAuthentication, fmt.Errorf("%w: its ID or private key is rejected, or it is suspended", said)}
	case code >= http.StatusInternalServerError:
		return &fault{ErrUnreachable, said}
	case code != http.StatusOK && code != http.StatusCreated:
		return said
	}

	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAppAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%s %s: the answer cannot be read", method, req.URL.Redacted())
	}
	return nil
}

// maxAppAnswer limits an answer of the API.
const maxAppAnswer = 1 << 20

// renewingSession forgets a token that the server rejects, so that the next session gets
// another.
type renewingSession struct {
	session
	remote *remote
}

// AdvertisedReferencesContext implements session.
func (s *renewingSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.session.AdvertisedReferencesContext(ctx)
	s.remote.rejected(err)
	return refs, err
}

// renewingPush is the same for a push.
type renewingPush struct {
	pushSession
	remote *remote
}

// AdvertisedReferencesContext implements pushSession.
func (s *renewingPush) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.pushSession.AdvertisedReferencesContext(ctx)
	s.remote.rejected(err)
	return refs, err
}

// rejected takes notice of an answer to the credentials.
func (r *remote) rejected(err error) {
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) {
		r.tokens.forget()
	}
}

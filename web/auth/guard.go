// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenReviews asks whose a token is; client-go's client of that name does.
type TokenReviews interface {
	Create(context.Context, *authenticationv1.TokenReview, metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// AccessReviews asks what a user may do; client-go's client of SubjectAccessReviews
// does.
type AccessReviews interface {
	Create(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Options are what a Guard is made of. Zero values are the defaults.
type Options struct {
	Tokens TokenReviews
	Access AccessReviews
	// Audiences are those of which a token has to have one. None is that of the API
	// server.
	Audiences []string
	// Remember is how long a yes is good for; a no is good for a tenth of it. 0 is 30 s.
	Remember time.Duration
	// Lifetime is how long one request may last, streams included: whoever comes back is
	// checked again. 0 is 10 minutes.
	Lifetime time.Duration
	// Timeout is that of one check. 0 is 10 s.
	Timeout time.Duration
	// AtOnce is how many checks may run at one time; eight times as many may wait. 0 is 32.
	AtOnce int
	// Log is told why Kubernetes could not be asked. Nil tells nobody.
	Log func(text string)
}

// Guard checks requests.
type Guard struct {
	Options
	memory  *memory
	waiting chan struct{}
	turn    chan struct{}
}

// New returns a guard.
func New(o Options) *Guard {
	if o.Remember == 0 {
		o.Remember = 30 * time.Second
	}
	if o.Lifetime == 0 {
		o.Lifetime = 10 * time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.AtOnce == 0 {
		o.AtOnce = 32
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return &Guard{Options: o, memory: newMemory(), waiting: make(chan struct{}, 8*o.AtOnce), turn: make(chan struct{}, o.AtOnce)}
}

// Handler passes on the requests of those who may see the page of a Fleet. An empty name
// is every Fleet of a namespace, and an empty namespace every namespace.
func (g *Guard) Handler(namespace, name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := bearer(r)
		if !ok {
			refuse(w, answer{status: http.StatusUnauthorized, text: "send a token of Kubernetes as \"Authorization: Bearer TOKEN\""})
			return
		}

		said := g.ask(r.Context(), question{token: token, namespace: namespace, name: name})
		if said.status != http.StatusOK {
			refuse(w, said)
			return
		}

		ctx, cancel := context.WithTimeout(r.Context(), g.Lifetime)
		defer cancel()
		passed := r.Clone(ctx)
		passed.Header.Del("Authorization")
		next.ServeHTTP(w, passed)
	})
}

// longest is how long a token may be; those of Kubernetes have some 1,000 bytes.
const longest = 16 << 10

// bearer returns the token of a request.
func bearer(r *http.Request) (token string, ok bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", false // nobody can say which one is meant
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > longest || strings.ContainsFunc(token, unlikely) {
		return "", false
	}
	return token, true
}

// unlikely reports whether no token has a character (RFC 6750, b64token).
func unlikely(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
}

// refuse answers a request that is not passed on.
func refuse(w http.ResponseWriter, said answer) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch said.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, said.text, said.status)
}

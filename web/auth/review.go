// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/printable"
)

// question is whether whoever has a token may see the page of a Fleet.
type question struct{ token, namespace, name string }

// answer is 200, or what a request is refused with.
type answer struct {
	status int
	text   string
}

var unavailable = answer{http.StatusServiceUnavailable, "Kubernetes cannot be asked who may see this page; try again later"}

// ask answers a question, from memory if it was asked a moment ago. Requests that ask
// the same at one time wait for one answer.
func (g *Guard) ask(ctx context.Context, q question) answer {
	kept, mine := g.memory.find(q)
	if !mine {
		select {
		case <-kept.known:
			return kept.answer
		case <-ctx.Done():
			return unavailable
		}
	}

	said := unavailable
	defer func() { g.memory.keep(q, said, g.goodFor(said)) }()

	// Others may wait for it: it does not end with the request that happened to be first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Timeout)
	defer cancel()
	found, err := g.review(ctx, q)
	if err != nil {
		g.Log("the page: " + printable.Line(strings.ReplaceAll(err.Error(), q.token, "…")))
		return said
	}
	said = found
	return said
}

// goodFor is how long an answer is remembered.
func (g *Guard) goodFor(said answer) time.Duration {
	switch said.status {
	case http.StatusOK:
		return g.Remember
	case http.StatusServiceUnavailable:
		return 0
	}
	return g.Remember / 10
}

// review asks Kubernetes.
func (g *Guard) review(ctx context.Context, q question) (answer, error) {
	leave, err := g.enter(ctx)
	if err != nil {
		return answer{}, err
	}
	defer leave()

	user, err := g.user(ctx, q.token)
	if err != nil {
		return answer{}, fmt.Errorf("TokenReview: %w", err)
	}
	if user == nil {
		return answer{http.StatusUnauthorized, "Kubernetes does not know this token, or it has expired"}, nil
	}

	may, err := g.may(ctx, user, q)
	if err != nil {
		return answer{}, fmt.Errorf("SubjectAccessReview: %w", err)
	}
	if !may {
		return answer{http.StatusForbidden, printable.Line(user.Username) + " may not get fleets/page in the group fairlead.dev of " + q.text()}, nil
	}
	return answer{status: http.StatusOK}, nil
}

var errBusy = errors.New("too many tokens are checked at one time")

// enter waits for its turn, unless too many wait already.
func (g *Guard) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.waiting <- struct{}{}:
		defer func() { <-g.waiting }()
	default:
		return nil, errBusy
	}

	select {
	case g.turn <- struct{}{}:
		return func() { <-g.turn }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// user returns whose a token is; nil if it is nobody's, or for somebody else.
func (g *Guard) user(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review, err := g.Tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: g.Audiences},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return nil, err
	case !review.Status.Authenticated || review.Status.User.Username == "":
		return nil, nil
	case len(g.Audiences) > 0 && !slices.ContainsFunc(review.Status.Audiences, func(a string) bool { return slices.Contains(g.Audiences, a) }):
		return nil, nil // who reviews tokens and ignores audiences answers for its own
	}
	return &review.Status.User, nil
}

// may reports whether a user may see the page.
func (g *Guard) may(ctx context.Context, user *authenticationv1.UserInfo, q question) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := g.Access.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Group: "fairlead.dev", Version: "v1alpha1", Resource: "fleets", Subresource: "page",
				Namespace: q.namespace, Name: q.name,
			},
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// text reads "shop/web", "every Fleet in shop", "every Fleet".
func (q question) text() string {
	switch {
	case q.name != "":
		return q.namespace + "/" + q.name
	case q.namespace != "":
		return "every Fleet in " + q.namespace
	}
	return "every Fleet"
}

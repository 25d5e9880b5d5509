// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// session is one session with a server: list its refs, then fetch a pack.
type session interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	io.Closer
}

// pushSession is a session that lists the server's refs, then sends a pack.
type pushSession interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	ReceivePack(context.Context, *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
	io.Closer
}

func (r *remote) dial(ctx context.Context) (session, error) {
	if r.endpoint.Protocol == "ssh" {
		return dialSSH(ctx, r, "git-upload-pack")
	}
	client, endpoint, auth, err := dialHTTP(ctx, r)
	if err != nil {
		return nil, err
	}
	s, err := client.NewUploadPackSession(endpoint, auth)
	return &renewingSession{s, r}, err
}

func (r *remote) dialPush(ctx context.Context) (pushSession, error) {
	if r.endpoint.Protocol == "ssh" {
		return dialSSH(ctx, r, "git-receive-pack")
	}
	client, endpoint, auth, err := dialHTTP(ctx, r)
	if err != nil {
		return nil, err
	}
	s, err := client.NewReceivePackSession(endpoint, auth)
	return &renewingPush{s, r}, err
}

const dialTimeout = 30 * time.Second

func dialHTTP(ctx context.Context, r *remote) (transport.Transport, *transport.Endpoint, transport.AuthMethod, error) {
	client, err := r.links.client(&r.auth)
	if err != nil {
		return nil, nil, nil, err
	}

	var auth transport.AuthMethod // nil means anonymous
	switch {
	case r.auth.App != nil:
		token, err := r.tokens.get(ctx, client, r.auth.App)
		if err != nil {
			return nil, nil, nil, err
		}
		auth = &githttp.BasicAuth{Username: "x-access-token", Password: token}
	case r.auth.BearerToken != "":
		auth = &githttp.TokenAuth{Token: r.auth.BearerToken}
	case r.auth.Username != "" || r.auth.Password != "":
		auth = &githttp.BasicAuth{Username: r.auth.Username, Password: r.auth.Password}
	}

	endpoint := *r.endpoint // a redirect within the host edits it
	c := githttp.NewClientWithOptions(client, &githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects})
	return c, &endpoint, auth, nil
}

// sameHost refuses redirects to another host: credentials must not leak, and
// its content is not what the operator configured.
func sameHost(next *http.Request, via []*http.Request) error {
	if from := via[0].URL; next.URL.Host != from.Host || next.URL.Scheme != from.Scheme {
		return fmt.Errorf("redirect to another host refused: %s://%s", next.URL.Scheme, next.URL.Host)
	}
	if len(via) > 5 {
		return errors.New("more than five redirects")
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// links are the connections to an https server. The next poll uses the last one's, so
// that it is one round trip without a handshake.
type links struct {
	mu   sync.Mutex
	auth Auth         // that kept was made with
	kept *http.Client // nil before the first session
}

// client speaks HTTP as the credentials say, and sends none of them by itself. Another
// certificate, authority or proxy needs other connections.
func (l *links) client(auth *Auth) (*http.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil && l.auth.sameLink(auth) {
		return l.kept, nil
	}

	client, err := auth.client()
	if err != nil {
		return nil, err
	}
	if l.kept != nil {
		l.kept.CloseIdleConnections()
	}
	l.auth, l.kept = *auth, client
	return client, nil
}

// sameLink reports whether a connection that was made with one may serve the other.
func (a *Auth) sameLink(b *Auth) bool {
	return bytes.Equal(a.CA, b.CA) && bytes.Equal(a.Certificate, b.Certificate) && bytes.Equal(a.Key, b.Key) &&
		(a.Proxy == b.Proxy || a.Proxy != nil && b.Proxy != nil && *a.Proxy == *b.Proxy)
}

// idleLink is how long a connection is kept that nothing uses: less than what is between
// us and a server keeps it in mind, such as load balancers and address translation.
const idleLink = time.Minute

func (a *Auth) client() (*http.Client, error) {
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	proxy, err := a.proxyOf()
	if err != nil {
		return nil, err
	}

	return &http.Client{
		Transport: drained{&http.Transport{
			Proxy: proxy,
			OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
				return proxyFault(answer.StatusCode)
			},
			DialContext:           dialServer,
			TLSClientConfig:       config,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: maxSilence,
			ForceAttemptHTTP2:     true,
			// A server that is gone is noticed before it is asked.
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
			MaxIdleConnsPerHost: maxSessions,
			IdleConnTimeout:     idleLink,
		}},
		CheckRedirect: sameHost,
	}, nil
}

// drained reads the rest of an answer when it is closed: a list of refs is read up to its
// last line, and HTTP/1 closes a connection of which something was left unread.
type drained struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (d drained) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = &drainedBody{resp.Body}
	}
	return resp, err
}

type drainedBody struct{ io.ReadCloser }

// maxDrained is how much is read for the sake of a connection.
const maxDrained = 4 << 10

// Close implements io.Closer.
func (b *drainedBody) Close() error {
	_, _ = io.CopyN(io.Discard, b.ReadCloser, maxDrained)
	return b.ReadCloser.Close()
}

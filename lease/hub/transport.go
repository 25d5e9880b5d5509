// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/lease"
)

// Transport sends requests to a member while a gate lets them pass. Whatever may
// write is checked at the moment at which it goes out: the gate must be open, and
// permit the commit that the request is part of. It is given so long as the Lease
// leaves it, by the client and by the server. Reads always pass.
func Transport(next http.RoundTripper, gate *lease.Gate) http.RoundTripper {
	return &transport{next: next, gate: gate, now: now, deadline: lease.DefaultRules().WriteDeadline}
}

type commitKey struct{}

// WithCommit says which commit the requests of a context are part of. A request that
// writes and has none is refused.
func WithCommit(ctx context.Context, commit string) context.Context {
	return context.WithValue(ctx, commitKey{}, commit)
}

type transport struct {
	next     http.RoundTripper
	gate     *lease.Gate
	now      func() time.Duration
	deadline time.Duration
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !writes(req) {
		return t.next.RoundTrip(req)
	}

	commit, _ := req.Context().Value(commitKey{}).(string)
	ctx, cancel := context.WithTimeout(req.Context(), t.deadline)
	bounded := req.Clone(ctx)
	bounded.URL.RawQuery = withTimeout(req, t.deadline)

	err := t.gate.Permit(commit)
	if err == nil {
		err = t.gate.Open(t.now())
	}
	if err != nil {
		cancel()
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}

	resp, err := t.next.RoundTrip(bounded)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &body{resp.Body, cancel}
	return resp, nil
}

// writes reports whether a request may change anything: all but plain reads. A
// connection that becomes another protocol can do whatever that protocol can.
func writes(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return req.Header.Get("Upgrade") != ""
	}
	return true
}

// withTimeout has the API server give up as well: a request may wait there when its
// client is gone.
func withTimeout(req *http.Request, most time.Duration) string {
	query := req.URL.Query()
	if given, err := time.ParseDuration(query.Get("timeout")); err != nil || given <= 0 || given > most {
		query.Set("timeout", most.String())
	}
	return query.Encode()
}

// body ends the deadline when the answer is read.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

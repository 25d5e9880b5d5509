// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/lease"
)

// gatedTransport sends requests to a member while a gate lets them pass. Whatever may
// write is checked at the moment at which it goes out: the gate must be open, and
// permit the commit that the request is part of. It is given so long as the Lease
// leaves it, by the client and by the server. Reads always pass.
func gatedTransport(next http.RoundTripper, gate *lease.Gate, deadline time.Duration) http.RoundTripper {
	return &transport{next: next, gate: gate, now: now, deadline: deadline}
}

type commitKey struct{}

// withCommit says which commit the requests of a context are part of. A request that
// writes and has none is refused.
func withCommit(ctx context.Context, commit string) context.Context {
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

	t.guardBody(bounded)
	resp, err := t.next.RoundTrip(bounded)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &body{resp.Body, cancel}
	return resp, nil
}

// guardBody has the gate asked again where the body goes out. Until then the request may
// have waited for a connection, and the whole process for its processor. What has begun to
// go out by then is no whole request, and no API server does what such a one says.
func (t *transport) guardBody(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}

	req.Body = &guardedBody{req.Body, t}
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			content, err := again()
			if err != nil {
				return nil, err
			}
			return &guardedBody{content, t}, nil
		}
	}
}

// guardedBody is the body of a request that writes.
type guardedBody struct {
	io.ReadCloser
	transport *transport
}

func (b *guardedBody) Read(p []byte) (int, error) {
	if err := b.transport.gate.Open(b.transport.now()); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// WrappedRoundTripper is the transport inside, for who closes its idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// writes reports whether a request may change anything: all but plain reads, questions
// and dry runs. A connection that becomes another protocol can do whatever that protocol
// can.
func writes(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return req.Header.Get("Upgrade") != ""
	case http.MethodPost:
		return !asks(req.URL.Path) && !isDryRun(req)
	}
	return !isDryRun(req)
}

// questions are resources that are created to be answered, and never stored.
var questions = map[string]bool{
	"selfsubjectaccessreviews": true, "selfsubjectrulesreviews": true, "subjectaccessreviews": true, "localsubjectaccessreviews": true,
	"selfsubjectreviews": true, "tokenreviews": true,
}

// asks reports whether a path is of such a resource: the last of it, below its group.
func asks(at string) bool {
	group := strings.Contains(at, "/apis/authorization.k8s.io/") || strings.Contains(at, "/apis/authentication.k8s.io/")
	return group && questions[path.Base(at)]
}

// isDryRun reports whether the API server is told to store nothing.
func isDryRun(req *http.Request) bool {
	values := req.URL.Query()["dryRun"]
	return len(values) == 1 && values[0] == metav1.DryRunAll
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

// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/lease"
)

// openGate is a gate that closes 25 seconds after 0, and permits c1.
func openGate(t *testing.T) *lease.Gate {
	t.Helper()
	m := lease.New(lease.Config{
		Fleet: "acme", Pod: "fairlead-0", Process: "a", Shards: 1,
		Rules: lease.DefaultRules(), Random: func() float64 { return 0.5 },
	})
	m.Folded(0, 0, line{"c1", "c2"})
	stored := map[string]lease.Record{}
	for version := int64(1); version < 20; version++ {
		out := m.Step(0)
		for _, req := range append([]lease.Request(nil), out.Requests...) {
			if req.Verb == lease.List {
				m.Listed(0, req.ID, version, slices.Collect(maps.Values(stored)))
				continue
			}
			rec := req.Record
			rec.Version = version
			stored[rec.Name] = rec
			m.Answered(0, lease.Answer{Request: req, Record: rec})
		}
		m.Advance(0, 0, "c1")
	}
	return m.Gate(0)
}

func TestTransport(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.RequestURI())
		_, _ = io.WriteString(w, "answer")
	}))
	defer server.Close()

	at := time.Duration(0)
	guard := &transport{next: http.DefaultTransport, gate: openGate(t), now: func() time.Duration { return at }, deadline: 10 * time.Second}
	shut := &transport{next: http.DefaultTransport, gate: &lease.Gate{}, now: guard.now, deadline: guard.deadline}
	for _, test := range []struct {
		guard          *transport
		at             time.Duration
		method, commit string
		path, header   string
		want           string
		reason         lease.Reason
	}{
		{guard, 0, "PATCH", "c1", "/a?fieldManager=x", "", "PATCH /a?fieldManager=x&timeout=10s", ""},
		{guard, 0, "PATCH", "c1", "/a?timeout=3s", "", "PATCH /a?timeout=3s", ""},
		{guard, 0, "PATCH", "c1", "/a?timeout=1h", "", "PATCH /a?timeout=10s", ""},
		{guard, 24 * time.Second, "DELETE", "c1", "/a", "", "DELETE /a?timeout=10s", ""},
		{guard, 25 * time.Second, "DELETE", "c1", "/a", "", "", lease.Lapsed},
		{guard, 25 * time.Second, "GET", "", "/a?watch=1", "", "GET /a?watch=1", ""},
		{guard, 0, "POST", "c2", "/a", "", "", lease.Position},
		{guard, 0, "POST", "", "/a", "", "", lease.Position},
		{shut, 0, "PUT", "c1", "/a", "", "", lease.NotHeld},
		{shut, 0, "GET", "c1", "/exec", "SPDY/3.1", "", lease.NotHeld},
		{shut, 0, "HEAD", "", "/a", "", "HEAD /a", ""},
		{shut, 0, "POST", "", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ""},
		{shut, 0, "POST", "", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "", "POST /apis/authentication.k8s.io/v1/selfsubjectreviews", ""},
		{shut, 0, "POST", "c1", "/apis/example.com/v1/selfsubjectreviews", "", "", lease.NotHeld},
		{shut, 0, "POST", "c1", "/apis/authorization.k8s.io/v1/others", "", "", lease.NotHeld},
		{shut, 0, "PATCH", "", "/a?dryRun=All", "", "PATCH /a?dryRun=All", ""},
		{shut, 0, "PATCH", "c1", "/a?dryRun=None", "", "", lease.NotHeld},
		{shut, 0, "DELETE", "c1", "/a?dryRun=All&dryRun=None", "", "", lease.NotHeld},
	} {
		at, seen = test.at, nil
		req, err := http.NewRequestWithContext(withCommit(t.Context(), test.commit), test.method, server.URL+test.path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		if test.header != "" {
			req.Header.Set("Upgrade", test.header)
		}

		resp, err := test.guard.RoundTrip(req)
		if test.reason != "" {
			closed := (*lease.ClosedError)(nil)
			if !errors.As(err, &closed) || closed.Reason != test.reason || len(seen) > 0 {
				t.Errorf("%s %s at %v: %v, sent %v", test.method, test.path, test.at, err, seen)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s at %v: %v", test.method, test.path, test.at, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || test.method != "HEAD" && string(text) != "answer" || len(seen) != 1 || seen[0] != test.want {
			t.Errorf("%s %s: sent %v, answer %q, %v", test.method, test.path, seen, text, err)
		}
		resp.Body.Close()
	}
}

// A process may be stopped after the gate was asked. What it sends when it goes on is no
// whole request.
func TestTransportStopped(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var whole atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				whole.Add(1)
			}
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()

		var at atomic.Int64
		stopped := roundTripper(func(req *http.Request) (*http.Response, error) {
			at.Store(int64(25 * time.Second))
			if again, err := req.GetBody(); err != nil {
				t.Error(err)
			} else if _, err := io.ReadAll(again); err == nil {
				t.Error("what is sent again is not guarded")
			}
			return server.Client().Transport.RoundTrip(req)
		})
		guard := &transport{next: stopped, gate: openGate(t), now: func() time.Duration { return time.Duration(at.Load()) }, deadline: 10 * time.Second}
		for _, content := range []string{"body", strings.Repeat("a long body ", 10_000)} {
			at.Store(0)
			req, err := http.NewRequestWithContext(withCommit(t.Context(), "c1"), http.MethodPatch, server.URL, strings.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}

			_, err = guard.RoundTrip(req) //nolint:bodyclose // there is no answer
			closed := (*lease.ClosedError)(nil)
			if !errors.As(err, &closed) || closed.Reason != lease.Lapsed {
				t.Errorf("HTTP/2 %v: %v", http2, err)
			}
		}
		server.Close() // waits for what has arrived
		if n := whole.Load(); n > 0 {
			t.Errorf("HTTP/2 %v: %d requests arrived", http2, n)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

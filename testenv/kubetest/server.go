// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/testenv/kube"
)

// Server is a real API server that ends with the test.
type Server struct {
	server *kube.Server

	mu       sync.Mutex
	requests []Request
}

// Request is one that a client of Config sent.
type Request struct {
	Method, Path, Query, ContentType string
	At                               time.Time
}

// Start starts n servers that end with the test, each with these flags more.
func Start(t testing.TB, n int, flags ...string) []*Server {
	t.Helper()
	binaries, err := kube.Binaries()
	if err != nil && os.Getenv("FAIRLEAD_REAL") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("left out: %v", err)
	}
	servers := make([]*Server, n)
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i := range servers {
		servers[i] = &Server{}
		starting.Go(func() { servers[i].server, errs[i] = kube.Start(binaries, flags...) })
	}
	starting.Wait()
	for i, s := range servers {
		if errs[i] != nil {
			t.Errorf("API server %d: %v", i, errs[i])
			continue
		}
		t.Cleanup(func() { s.end(t) })
	}
	if t.Failed() {
		t.FailNow()
	}
	return servers
}

func (s *Server) end(t testing.TB) {
	if err := s.server.Stop(); err != nil {
		t.Errorf("stop of an API server: %v", err)
	}
}

// Config is how to reach the server as its administrator. What clients of it
// send is counted.
func (s *Server) Config() *rest.Config {
	cfg := s.server.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{s, next} })
	return cfg
}

// Kubeconfig is the same as Config for other programs; those are not counted.
func (s *Server) Kubeconfig() []byte { return s.server.Kubeconfig() }

type counting struct {
	s    *Server
	next http.RoundTripper
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.s.mu.Lock()
	c.s.requests = append(c.s.requests, Request{
		Method:      r.Method,
		Path:        r.URL.Path,
		Query:       r.URL.RawQuery,
		ContentType: r.Header.Get("Content-Type"),
		At:          time.Now(),
	})
	c.s.mu.Unlock()
	return c.next.RoundTrip(r)
}

// Requests are those sent since the last ResetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ResetRequests forgets them.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Stop ends the API server; its etcd goes on.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.server.Pause(); err != nil {
		t.Fatalf("stop of the API server: %v", err)
	}
}

// Restart starts it again on the same port with the same data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.server.Resume(); err != nil {
		t.Fatalf("restart of the API server: %v", err)
	}
}

// Backup remembers what the server holds. What it returns puts that back. Both
// have the server stopped for a moment.
func (s *Server) Backup(t testing.TB) (restore func()) {
	t.Helper()
	backup, err := s.server.Backup()
	if err != nil {
		t.Fatalf("backup of an API server: %v", err)
	}
	return func() {
		t.Helper()
		if err := s.server.Restore(backup); err != nil {
			t.Fatalf("restoring an API server: %v", err)
		}
	}
}

// NoSpace has the server refuse every write, as one does whose disk is full.
func (s *Server) NoSpace(t testing.TB, on bool) {
	t.Helper()
	if err := s.server.NoSpace(on); err != nil {
		t.Fatalf("alarm of etcd: %v", err)
	}
}

// WithControllers runs kube-controller-manager until the test ends.
func (s *Server) WithControllers(t testing.TB) {
	t.Helper()
	if err := s.server.Controllers(); err != nil {
		t.Fatal(err)
	}
}

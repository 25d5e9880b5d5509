// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Server is a real API server with an etcd of its own.
type Server struct {
	env        *envtest.Environment
	bin        string
	config     *rest.Config
	controller *exec.Cmd

	mu       sync.Mutex
	requests []Request
}

// Request is one that a client of Config sent.
type Request struct {
	Method, Path, Query, ContentType string
	At                               time.Time
}

// Start starts n servers that end with the test.
func Start(t testing.TB, n int) []*Server {
	t.Helper()
	bin := binaries(t)
	// controller-runtime complains of a logger that nobody set.
	log.SetLogger(logr.Discard())
	servers := make([]*Server, n)
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i := range servers {
		certs := t.TempDir()
		starting.Go(func() { servers[i], errs[i] = start(bin, certs) })
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

func start(bin, certs string) (*Server, error) {
	env := &envtest.Environment{
		BinaryAssetsDirectory:    bin,
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	api := env.ControlPlane.GetAPIServer()
	// A directory of our own outlives a restart, and so do the certificates.
	api.CertDir = certs
	api.Configure().Set("max-requests-inflight", "4000").Set("max-mutating-requests-inflight", "2000")
	s := &Server{env: env, bin: bin}
	cfg, err := env.Start()
	if err != nil {
		return nil, err
	}
	s.config = rest.CopyConfig(cfg)
	s.config.QPS = -1
	return s, nil
}

func (s *Server) end(t testing.TB) {
	if s.controller != nil {
		_ = s.controller.Process.Kill()
		_ = s.controller.Wait()
	}
	if err := s.env.Stop(); err != nil {
		t.Errorf("stop of an API server: %v", err)
	}
}

// Config is how to reach the server as its administrator. What clients of it
// send is counted.
func (s *Server) Config() *rest.Config {
	cfg := rest.CopyConfig(s.config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{s, next} })
	return cfg
}

// Kubeconfig is the same as Config for other programs; those are not counted.
func (s *Server) Kubeconfig() []byte { return s.env.KubeConfig }

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
	if err := s.env.ControlPlane.APIServer.Stop(); err != nil {
		t.Fatalf("stop of the API server: %v", err)
	}
}

// Restart starts it again on the same port with the same data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.env.ControlPlane.APIServer.Start(); err != nil {
		t.Fatalf("restart of the API server: %v", err)
	}
}

// WithControllers runs kube-controller-manager until the test ends.
func (s *Server) WithControllers(t testing.TB) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, s.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.controller = exec.Command(filepath.Join(s.bin, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers=*,-serviceaccount-token-controller,-nodeipam,-nodelifecycle",
	)
	if err := s.controller.Start(); err != nil {
		t.Fatalf("kube-controller-manager: %v", err)
	}
}

// binaries is the directory of the binaries, or the end of the test.
func binaries(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		dir = filepath.Join(root(t), "hack", "kube", "bin")
	}
	_, err := os.Stat(filepath.Join(dir, "kube-apiserver"))
	if _, etcdErr := os.Stat(filepath.Join(dir, "etcd")); err == nil {
		err = etcdErr
	}
	if err == nil {
		return dir
	}
	if os.Getenv("FAIRLEAD_REAL") == "1" {
		t.Fatalf("no API server binaries: %v", err)
	}
	t.Skip("left out: this needs a real API server, which `make test` builds")
	return ""
}

// root is the directory of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above the working directory")
		}
	}
}

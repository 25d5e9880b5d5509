// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Server is a real API server with an etcd of its own.
type Server struct {
	env         *envtest.Environment
	binaries    string
	dir         string // everything it writes
	config      *rest.Config
	controllers *exec.Cmd
	words       bytes.Buffer // of the controllers
}

// Start starts one from the binaries of a directory, with more flags of the
// form "runtime-config=api/all=true", and waits until it answers. Stop ends it.
func Start(binaries string, flags ...string) (*Server, error) {
	// controller-runtime complains of a logger that nobody set.
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "fairlead-kube-")
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    binaries,
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	// Directories of our own outlive a pause, and go even if nothing starts.
	env.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(dir, "etcd")}
	api := env.ControlPlane.GetAPIServer()
	api.CertDir = filepath.Join(dir, "certs")
	api.Configure().Set("max-requests-inflight", "4000").Set("max-mutating-requests-inflight", "2000").
		Set("shutdown-watch-termination-grace-period", "1s") // or whoever watches keeps it from ending
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		api.Configure().Set(name, value)
	}
	s := &Server{env: env, binaries: binaries, dir: dir}
	for _, own := range []string{env.ControlPlane.Etcd.DataDir, api.CertDir} {
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	cfg, err := env.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("API server: %w", err), s.Stop())
	}
	s.config = rest.CopyConfig(cfg)
	s.config.QPS = -1
	return s, nil
}

// Stop ends everything that was started and removes its files.
func (s *Server) Stop() error {
	return errors.Join(s.stopControllers(), s.env.Stop(), os.RemoveAll(s.dir))
}

// stopControllers says so when they ended before they were told to.
func (s *Server) stopControllers() error {
	if s.controllers == nil {
		return nil
	}
	_ = s.controllers.Process.Kill()
	_ = s.controllers.Wait()
	if !s.controllers.ProcessState.Exited() {
		return nil // by our signal
	}
	said := s.words.Bytes()
	return fmt.Errorf("kube-controller-manager ended by itself: …%s", said[max(0, len(said)-1000):])
}

// Config is how to reach the server as its administrator.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Kubeconfig is the same for other programs.
func (s *Server) Kubeconfig() []byte { return s.env.KubeConfig }

// Pause ends the API server; its etcd goes on.
func (s *Server) Pause() error { return s.env.ControlPlane.APIServer.Stop() }

// Resume starts it again on the same port with the same data.
func (s *Server) Resume() error { return s.env.ControlPlane.APIServer.Start() }

// Backup copies the data of etcd, while nothing runs, to a directory that
// Restore takes. It goes with the server.
func (s *Server) Backup() (string, error) {
	to, err := os.MkdirTemp(s.dir, "backup-")
	if err != nil {
		return "", err
	}
	return to, s.atRest(func() error { return os.CopyFS(to, os.DirFS(s.env.ControlPlane.Etcd.DataDir)) })
}

// Restore has etcd go on from a Backup: what was written since is gone, and
// versions begin again there.
func (s *Server) Restore(backup string) error {
	return s.atRest(func() error {
		data := s.env.ControlPlane.Etcd.DataDir
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.CopyFS(data, os.DirFS(backup))
	})
}

// NoSpace has etcd refuse every write, as one does whose disk is full.
func (s *Server) NoSpace(on bool) error {
	action := "DEACTIVATE"
	if on {
		action = "ACTIVATE"
	}
	answer, err := http.Post(s.env.ControlPlane.Etcd.URL.String()+"/v3/maintenance/alarm", "application/json",
		strings.NewReader(`{"action": "`+action+`", "alarm": "NOSPACE"}`))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s", answer.Status)
	}
	return nil
}

// atRest does something while neither the API server nor etcd runs.
func (s *Server) atRest(do func() error) error {
	etcd := s.env.ControlPlane.Etcd
	if err := errors.Join(s.Pause(), etcd.Stop()); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := etcd.Start(); err != nil {
		return err
	}
	return s.Resume()
}

// Controllers runs kube-controller-manager until Stop.
func (s *Server) Controllers() error {
	kubeconfig := filepath.Join(s.dir, "controllers.yaml")
	if err := os.WriteFile(kubeconfig, s.Kubeconfig(), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.binaries, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers=*,-serviceaccount-token-controller,-nodeipam,-nodelifecycle",
	)
	cmd.Stderr = &s.words
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	s.controllers = cmd
	return nil
}

// SPDX-License-Identifier: Apache-2.0

// Package flux runs Flux's own controllers on this machine against a real API server, for
// tests of what fairlead is beside them.
//
// Without FAIRLEAD_REAL=1 a test is skipped and says so. With it, a controller that is not
// built fails the test.
package flux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/testenv/process"
)

// Controller is one that runs.
type Controller struct {
	*process.Process
	// URL is what it serves: artifacts (source-controller), or where events are posted
	// (notification-controller).
	URL string
}

// StartSource starts source-controller, whose artifacts are below a directory of the test.
func StartSource(t testing.TB, kubeconfig []byte) *Controller {
	return start(t, "source-controller", kubeconfig, func(address, dir string) []string {
		return []string{"--storage-addr=" + address, "--storage-adv-addr=" + address, "--storage-path=" + dir}
	})
}

// StartNotification starts notification-controller.
func StartNotification(t testing.TB, kubeconfig []byte) *Controller {
	return start(t, "notification-controller", kubeconfig, func(address, _ string) []string {
		return []string{"--events-addr=" + address, "--receiverAddr=127.0.0.1:0"}
	})
}

// CRDs are the files of the definitions that a controller asks for, by the group that they
// are of: source or notification.
func CRDs(t testing.TB, group string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(binaries(t), "crds", group+".toolkit.fluxcd.io_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no CRDs of %s: 'make flux' builds them (%v)", group, err)
	}
	return files
}

func start(t testing.TB, name string, kubeconfig []byte, flags func(address, dir string) []string) *Controller {
	t.Helper()
	program := filepath.Join(binaries(t), name)
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	serves, health := freeAddress(t), freeAddress(t)

	cmd := exec.Command(program, append(flags(serves, dir),
		"--metrics-addr=127.0.0.1:0", "--health-addr="+health, "--watch-all-namespaces", "--enable-leader-election=false")...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "KUBECONFIG=" + config, "RUNTIME_NAMESPACE=flux-system"}
	p, err := process.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, p.Output())
		}
	})
	if err := p.Await("http://" + health + "/healthz"); err != nil {
		t.Fatal(err)
	}
	return &Controller{p, "http://" + serves}
}

func binaries(t testing.TB) string {
	t.Helper()
	if os.Getenv("FAIRLEAD_REAL") != "1" {
		t.Skip("left out: Flux's controllers are started with FAIRLEAD_REAL=1")
	}
	root, err := process.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "hack", "flux", "bin")
	if _, err := os.Stat(filepath.Join(bin, ".built")); err != nil {
		t.Fatal(fmt.Errorf("there are no controllers of Flux: 'make flux' builds them: %w", err))
	}
	return bin
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

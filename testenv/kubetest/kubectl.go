// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/testenv/kube"
)

// Kubectl is the kubectl of the same version as the servers, with a kubeconfig.
type Kubectl struct{ path, dir string }

// NewKubectl is a kubectl for a kubeconfig. Without the binary a test is skipped, or
// fails, as in Start.
func NewKubectl(t testing.TB, kubeconfig []byte) *Kubectl {
	t.Helper()
	path, err := kube.Kubectl()
	if err != nil && os.Getenv("FAIRLEAD_REAL") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("left out: %v", err)
	}

	k := &Kubectl{path, t.TempDir()}
	if err := os.WriteFile(k.Kubeconfig(), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// Kubeconfig is the path of its kubeconfig.
func (k *Kubectl) Kubeconfig() string { return filepath.Join(k.dir, "config") }

// Try runs it with a standard input, and returns what it prints, errors included.
func (k *Kubectl) Try(stdin string, args ...string) (string, error) {
	cmd := exec.Command(k.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.Kubeconfig(), "HOME="+k.dir)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Run runs it with arguments that have no blanks, and must succeed. It returns the
// standard output.
func (k *Kubectl) Run(t testing.TB, args string) string {
	t.Helper()
	cmd := exec.Command(k.path, strings.Fields(args)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.Kubeconfig(), "HOME="+k.dir)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = append(out, exit.Stderr...)
		}
		t.Fatalf("kubectl %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/testenv/kube"
)

func TestBinariesThatAreNotThere(t *testing.T) {
	checkout := t.TempDir()
	if err := os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module example.com/m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]struct{ assets, directory string }{
		"in the named directory": {assets: t.TempDir(), directory: checkout},
		"not built":              {directory: checkout},
		"outside of any module":  {directory: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBEBUILDER_ASSETS", at.assets)
			t.Chdir(at.directory)
			dir, err := kube.Binaries()
			if err == nil || !strings.Contains(err.Error(), "make kube") {
				t.Errorf("%q, %v", dir, err)
			}
			if _, err := kube.Kubectl(); err == nil || !strings.Contains(err.Error(), "make kube") {
				t.Errorf("kubectl: %v", err)
			}
		})
	}
}

func TestBinariesOfTheCheckout(t *testing.T) {
	checkout := t.TempDir()
	binaries := filepath.Join(checkout, "hack", "kube", "bin")
	below := filepath.Join(checkout, "docs", "design")
	for _, dir := range []string{binaries, below} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "hack/kube/bin/kube-apiserver", "hack/kube/bin/etcd", "hack/kube/bin/kubectl"} {
		if err := os.WriteFile(filepath.Join(checkout, file), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Chdir(below)
	if dir, err := kube.Binaries(); dir != binaries || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
	if kubectl, err := kube.Kubectl(); kubectl != filepath.Join(binaries, "kubectl") || err != nil {
		t.Errorf("%q, %v", kubectl, err)
	}
}

// A server that cannot start leaves no files.
func TestStartFails(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("KUBEBUILDER_ASSETS", "") // envtest prefers it to what it is given
	if s, err := kube.Start(t.TempDir()); err == nil {
		_ = s.Stop()
		t.Fatal("it started without binaries")
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

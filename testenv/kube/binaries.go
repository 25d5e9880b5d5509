// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/testenv/process"
)

// Binaries is the directory of kube-apiserver and etcd: KUBEBUILDER_ASSETS
// where that is set, else hack/kube/bin of the module that we stand in.
func Binaries() (string, error) { return directoryOf("kube-apiserver", "etcd") }

// Kubectl is the path of the kubectl that is built beside them.
func Kubectl() (string, error) {
	dir, err := directoryOf("kubectl")
	return filepath.Join(dir, "kubectl"), err
}

// directoryOf is the directory of binaries, which must be there.
func directoryOf(binaries ...string) (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		root, err := process.Checkout()
		if err != nil {
			return "", fmt.Errorf("there are no API server binaries at hand: %w: stand in a checkout of fairlead where 'make kube' has built them, or set KUBEBUILDER_ASSETS to their directory", err)
		}
		dir = filepath.Join(root, "hack", "kube", "bin")
	}
	for _, name := range binaries {
		_, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("there is no %s in %s: 'make kube' in a checkout of fairlead builds it", name, dir)
		}
		if err != nil {
			return "", fmt.Errorf("binaries of an API server: %w", err)
		}
	}
	return dir, nil
}

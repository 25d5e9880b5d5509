// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"strings"
	"testing"
)

// A new version of kustomize may render the same tree differently. When you
// update it, check whether it does, raise render.Version if so, and edit this
// line.
func TestVersionIsOfThisKustomize(t *testing.T) {
	const kustomize = "sigs.k8s.io/kustomize/api v0.21.2"
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), kustomize) {
		t.Errorf("go.mod does not have %s: is render.Version still of what is made now?", kustomize)
	}
}

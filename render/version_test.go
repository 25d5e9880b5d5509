// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"strings"
	"testing"
)

// Another kustomize may make something else of the same tree. Who brings one
// looks whether it does, raises render.Version if so, and edits this line.
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

// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/dispatch/push"
)

// What SOPS has encrypted is decrypted on the way, with the keys of spec.decryption. With
// other keys it is a failure of that object, and with the right ones again it is mended.
func TestDecryption(t *testing.T) {
	h := newHub(t)
	h.run()
	h.secret("sops", map[string]string{"fleet.agekey": h.key("other.agekey")})
	files := map[string]string{"apps/db/db.yaml": h.key("age.yaml"),
		"policies/db.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: db, namespace: shop}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n"}
	h.commit("db", files)
	h.create(h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Decryption = &v1alpha1.DecryptionSpec{Provider: "sops", SecretRef: meta.LocalObjectReference{Name: "sops"}}
	}))
	h.waitFor("acme", "none of the given keys can open it")
	if got := h.image("eu-1"); got != "1.0" {
		t.Errorf("another object is held up: eu-1 runs %q", got)
	}

	h.secret("sops", map[string]string{"fleet.agekey": h.key("fleet.agekey")})
	h.waitFor("acme", "Ready=True")
	objects, err := push.Live(context.Background(), h.members["eu-1"].Config(), schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "shop")
	h.must(err)
	want := base64.StdEncoding.EncodeToString([]byte("sops-canary-1"))
	if len(objects) != 1 {
		t.Fatalf("eu-1 has %d Secrets", len(objects))
	}
	if got, _, _ := unstructured.NestedString(objects[0], "data", "password"); got != want {
		t.Errorf("eu-1 has the password %q, want %q", got, want)
	}
}

// key reads a file that is encrypted, or a key to it.
func (h *hub) key(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "decrypt", "testdata", name))
	h.must(err)
	return string(b)
}

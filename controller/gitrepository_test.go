// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
)

// A Fleet takes the address, the branch and the Secret from a GitRepository, and looks when
// its artifact has another revision. Without Flux it says so, and goes on once Flux is
// there; of what cannot be followed it says why.
func TestSourceRef(t *testing.T) {
	h := newHub(t)
	h.run()
	h.create(h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		f.Spec.RetryInterval = &metav1.Duration{Duration: 100 * time.Millisecond}
		f.Spec.Git, f.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: "GitRepository", Name: "acme"}
	}))
	h.waitFor("acme", "spec.sourceRef: this cluster has no GitRepository: install Flux's source-controller, or use spec.git")

	h.installCRD("testdata/gitrepositories.yaml")
	h.waitFor("acme", "GitRepository team/acme: not found")

	repo := h.gitRepository(map[string]any{"tag": "v1"})
	h.waitFor("acme", "Stalled=True InvalidSpec: GitRepository team/acme follows the tag v1: a fleet is the history of a branch, so set spec.ref.branch alone")

	edit(h, repo, func(u *unstructured.Unstructured) {
		h.must(unstructured.SetNestedMap(u.Object, map[string]any{"branch": "main"}, "spec", "ref"))
	})
	h.waitFor("acme", "Ready=True ReconciliationSucceeded: Applied revision: main@sha1:"+h.repo.Head())

	h.release("2.0")
	edit(h, repo, func(u *unstructured.Unstructured) {
		h.must(unstructured.SetNestedField(u.Object, "main@sha1:"+h.repo.Head(), "status", "artifact", "revision"))
	})
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())
}

// With --no-cross-namespace-refs a Fleet names no source of another namespace.
func TestNoCrossNamespaceRefs(t *testing.T) {
	h := newHub(t)
	h.run(func(o *controller.Options) { o.ACL.NoCrossNamespaceRefs = true })
	h.create(h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Git, f.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: "GitRepository", Name: "acme", Namespace: "other"}
	}))
	h.waitFor("acme", "Stalled=True AccessDenied: spec.sourceRef names GitRepository other/acme in another namespace")
}

// gitRepository creates a GitRepository of the fleet.
func (h *hub) gitRepository(ref map[string]any) *unstructured.Unstructured {
	h.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"name": "acme", "namespace": namespace},
		"spec":     map[string]any{"interval": "1s", "url": h.git.url(), "secretRef": map[string]any{"name": "git"}, "ref": ref},
	}}
	h.must(client.IgnoreAlreadyExists(h.client.Create(context.Background(), u)))
	return u
}

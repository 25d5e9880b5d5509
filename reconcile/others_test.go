// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

type metaManagedFields = metav1.ManagedFieldsEntry

// client is somebody else's: what it does is not counted as ours.
func client(t *testing.T, w *world, cluster string) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(w.members[cluster].config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create is `kubectl create configmap`.
func create(t *testing.T, w *world, cluster, name string, data map[string]any) {
	t.Helper()
	_, err := client(t, w, cluster).Resource(configMaps).Namespace("shop").Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}, "data": data,
	}}, metav1.CreateOptions{FieldManager: "kubectl-create"})
	if err != nil {
		t.Fatal(err)
	}
}

// annotate is `kubectl annotate` on web.
func annotate(t *testing.T, w *world, cluster string) {
	t.Helper()
	_, err := client(t, w, cluster).Resource(deployments).Namespace("shop").Patch(context.Background(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"example.com/on-call":"ann"}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	if err != nil {
		t.Fatal(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// An update leaves the replicas to an autoscaler where the fleet has one, or
// where the template says so, and nowhere else.
func TestReplicasOfAnAutoscaler(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	files := quickstart(t)
	files["apps/autoscaler.yaml"] = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: other, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}
  maxReplicas: 20
`
	files["policies/autoscaler.yaml"] = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web-autoscaler, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: web}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: other-autoscaler, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: other}]
  placement: {clusterAffinity: {clusterNames: [us-1]}}
`
	w.repo.Commit("first release", files)
	w.settle()
	w.wantReplicas("ap-1=3 eu-1=6 us-1=3")

	for _, name := range names {
		w.scale(name, 9)
	}
	for _, m := range w.members {
		m.reset()
	}
	const kustomization = "apps/web/kustomization.yaml"
	w.repo.Commit("2.0", map[string]string{kustomization: strings.Replace(files[kustomization], `"1.0"`, `"2.0"`, 1)})
	w.settle()
	w.wantImages("ap-1=2.0 eu-1=2.0 us-1=2.0")
	w.wantReplicas("ap-1=3 eu-1=9 us-1=3")
	for _, name := range names {
		reads := 0
		for _, r := range w.members[name].taken() {
			if r == "GET /apis/apps/v1/namespaces/shop/deployments/web" {
				reads++
			}
		}
		if want := map[string]int{"eu-1": 1}[name]; reads != want {
			t.Errorf("%s was asked %d times for its Deployment, want %d", name, reads, want)
		}
	}

	for _, name := range names {
		w.scale(name, 7)
	}
	const deployment = "apps/web/deployment.yaml"
	labelled := strings.Replace(files[deployment], "  name: web\n", "  name: web\n  labels: {resourcetemplate.karmada.io/retain-replicas: \"true\"}\n", 1)
	w.repo.Commit("leave the replicas alone", map[string]string{deployment: labelled})
	w.settle()
	w.wantReplicas("ap-1=7 eu-1=7 us-1=7")
	w.scale("us-1", 8)
	w.repo.Commit("16 replicas", map[string]string{deployment: strings.Replace(labelled, "replicas: 12", "replicas: 16", 1)})
	w.settle()
	w.wantReplicas("ap-1=7 eu-1=7 us-1=8")
}

// scale is what an autoscaler does.
func (w *world) scale(cluster string, replicas int) {
	w.t.Helper()
	_, err := client(w.t, w, cluster).Resource(deployments).Namespace("shop").Patch(context.Background(), "web", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale")
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantReplicas(want string) {
	w.t.Helper()
	var all []string
	for _, name := range names {
		n, _, _ := unstructured.NestedInt64(w.get(name, deployments, "shop", "web").Object, "spec", "replicas")
		all = append(all, fmt.Sprintf("%s=%d", name, n))
	}
	if got := strings.Join(all, " "); got != want {
		w.t.Errorf("members run %s replicas, want %s\n%s", got, want, w.said())
	}
}

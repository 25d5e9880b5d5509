// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// Without controllers a Deployment stays a document; with them it gets a
// ReplicaSet.
func TestWithControllers(t *testing.T) {
	s := kubetest.Start(t, 1)[0]
	s.WithControllers(t)
	member, err := push.New(s.Config(), push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{})
	d.SetMember("eu-1", member)
	fleet := dispatchtest.Fleet(dispatchtest.Works{"eu-1": {{Verb: dispatch.Apply, Object: dispatchtest.Object(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web:1}]}
`)}}})
	if err := d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, o := range d.Wait(ctx) {
		t.Fatal(o.Err)
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(s.Config())
	for {
		sets, err := client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			t.Fatalf("no ReplicaSet in time: %v", err)
		}
		if len(sets.Items) == 1 && *sets.Items[0].Spec.Replicas == 2 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// What was written survives a restart, and the credentials go on working.
func TestRestart(t *testing.T) {
	s := kubetest.Start(t, 1)[0]
	client := kubernetes.NewForConfigOrDie(s.Config())
	ctx := context.Background()
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, want, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	if _, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err == nil {
		t.Fatal("a stopped server answers")
	}
	s.Restart(t)
	if _, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Requests()); n != 3 {
		t.Errorf("counted %d requests, want 3", n)
	}
}

// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

func start(t *testing.T) (*embedded.Server, kubernetes.Interface) {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Name: "eu-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, kubernetes.NewForConfigOrDie(s.Config())
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}}
}

func TestPages(t *testing.T) {
	_, client := start(t)
	maps := client.CoreV1().ConfigMaps("default")
	ctx := context.Background()
	for i := range 7 {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("c%d", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	pages := 0
	for next := ""; ; pages++ {
		page, err := maps.List(ctx, metav1.ListOptions{Limit: 3, Continue: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "c0 c1 c2 c3 c4 c5 c6" || pages != 2 {
		t.Errorf("%s on %d pages", got, pages+1)
	}
	one, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app in (c3)", FieldSelector: "metadata.name!=c4"})
	if err != nil || len(one.Items) != 1 {
		t.Errorf("selected %v, %v", one, err)
	}
}

func TestWatch(t *testing.T) {
	_, client := start(t)
	maps := client.CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := maps.Create(ctx, configMap("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(ctx, "b", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		select {
		case e := <-w.ResultChan():
			if o, ok := e.Object.(*corev1.ConfigMap); e.Type != want || !ok || o.Name != "b" {
				t.Errorf("event %s %v, want %s of b", e.Type, e.Object, want)
			}
		case <-ctx.Done():
			t.Fatalf("no event, want %s", want)
		}
	}
}

func TestPreconditions(t *testing.T) {
	_, client := start(t)
	maps := client.CoreV1().ConfigMaps("default")
	ctx := context.Background()
	made, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second create: %v", err)
	}
	made.Data = map[string]string{"a": "b"}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	if _, err := client.CoreV1().ConfigMaps("nowhere").Create(ctx, configMap("a"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a create without its namespace: %v", err)
	}
	if _, err := maps.Create(ctx, configMap("A_b"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a bad name: %v", err)
	}
	if _, err := maps.Create(ctx, configMap("dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Get(ctx, "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run was stored: %v", err)
	}
}

// kubectl is the client that people will use on the demo.
func TestKubectl(t *testing.T) {
	s, _ := start(t)
	kubectl := kubetest.NewKubectl(t, s.Kubeconfig())
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(manifest, []byte(web), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ args, says string }{
		{"create namespace shop", "namespace/shop created"},
		{"apply -f " + manifest, "deployment.apps/web created"},
		{"apply -f " + manifest, "deployment.apps/web unchanged"},
		{"get deployments -n shop", "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    0/1"},
		{"get all -A", "deployment.apps/web"},
		{"describe deployment web -n shop", "app=web"},
		{"scale deployment web -n shop --replicas=3", "deployment.apps/web scaled"},
		{"get deployment web -n shop -o jsonpath={.spec.replicas}", "3"},
		{"apply --server-side --force-conflicts -f " + manifest, "deployment.apps/web serverside-applied"},
		{"create configmap a --from-literal=a=b", "configmap/a created"},
		{"label configmap a app=a", "configmap/a labeled"},
		{"get configmaps -l app=a -o name", "configmap/a"},
		{"delete namespace shop", `namespace "shop" deleted`},
		{"get deployments -A", "No resources found"},
	} {
		out, err := kubectl.Try("", strings.Fields(step.args)...)
		if err != nil || !strings.Contains(out, step.says) {
			t.Errorf("kubectl %s: %v\n%s\nwant %q", step.args, err, out, step.says)
		}
	}
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
`

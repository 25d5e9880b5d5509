// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead/fairlead/dispatch/kubetest"
)

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

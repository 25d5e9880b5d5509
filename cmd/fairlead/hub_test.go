// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/testenv/kube"
)

// startHub starts a real API server that is empty, to which kubectl and KUBECONFIG lead. It
// has no nodes: a StatefulSet is reported ready as soon as it is there, and the script runs
// what its Pod would.
func startHub(ts *testscript.TestScript, _ bool, _ []string) {
	binaries, err := kube.Binaries()
	ts.Check(err)
	s, err := kube.Start(binaries)
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Stop()) })
	config := ts.MkAbs("hub.yaml")
	ts.Check(os.WriteFile(config, s.Kubeconfig(), 0o600))
	ts.Setenv("KUBECONFIG", config)
	kubectl, err := kube.Kubectl()
	ts.Check(err)
	ts.Setenv("PATH", filepath.Dir(kubectl)+string(os.PathListSeparator)+ts.Getenv("PATH"))

	client, err := kubernetes.NewForConfig(s.Config())
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	ts.Defer(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			reportReady(ctx, client)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
}

// reportReady writes the status that a StatefulSet has when its Pods are ready.
func reportReady(ctx context.Context, client kubernetes.Interface) {
	all, err := client.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return // the server has not begun, or has ended
	}
	for _, set := range all.Items {
		if set.Status.ObservedGeneration == set.Generation {
			continue
		}
		n := *set.Spec.Replicas
		status, err := json.Marshal(map[string]any{"status": appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}})
		if err == nil {
			_, _ = client.AppsV1().StatefulSets(set.Namespace).Patch(ctx, set.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
		}
	}
}

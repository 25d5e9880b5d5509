// SPDX-License-Identifier: Apache-2.0

// Package kube runs a real Kubernetes control plane on this machine:
// kube-apiserver and etcd, and kube-controller-manager where controllers are
// wanted. `make kube` builds the binaries.
//
//	binaries, err := kube.Binaries()
//	server, err := kube.Start(binaries)
//	defer server.Stop()
//	member, err := dispatch.Push(server.Config(), dispatch.PushOptions{})
//
// The demo shows the main job on such servers; kubetest gives them to tests.
package kube

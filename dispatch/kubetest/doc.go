// SPDX-License-Identifier: Apache-2.0

// Package kubetest starts real API servers for tests: kube-apiserver and etcd,
// built by hack/kube/build.sh, and kube-controller-manager where a test needs
// controllers.
//
//	servers := kubetest.Start(t, 3)
//	member, err := dispatch.Push(servers[0].Config())
//
// Without the binaries a test is skipped and says so; with FAIRLEAD_REAL=1 it
// fails.
package kubetest

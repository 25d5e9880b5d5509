// SPDX-License-Identifier: Apache-2.0

// Package kubetest gives the real API servers of package kube to tests, and
// counts what they are sent.
//
//	servers := kubetest.Start(t, 3)
//	member, err := dispatch.Push(servers[0].Config(), dispatch.PushOptions{})
//
// Without the binaries a test is skipped and says so; with FAIRLEAD_REAL=1 it
// fails.
package kubetest

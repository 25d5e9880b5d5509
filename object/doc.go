// SPDX-License-Identifier: Apache-2.0

// Package object defines what a Kubernetes object is to fairlead, once for
// every other package: its ID, the digest of its content, the marks that make
// it ours, whether its kind is namespaced, and which fields servers and
// controllers fill in.
//
// It imports no other package of fairlead. Start with id.go and marks.go.
package object

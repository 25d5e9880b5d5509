// SPDX-License-Identifier: Apache-2.0

// Package fleet is what git says: the documents of one commit, defaulted,
// validated and grouped by kind, each with its file and line.
//
// render makes a Snapshot of a tree; the fold compares two of them. A Snapshot
// is immutable once it is made, so the snapshots of neighbouring commits share
// what did not change.
//
// Every kind of document has a file: cluster.go, policy.go, override.go,
// interpreter.go, rebalancer.go, settings.go, and template.go for everything
// that is sent to clusters. A file says how its documents are called,
// defaulted, validated and compared; kinds.go lists the kinds, and the rest,
// which is the same for all, is in kind.go, source.go and builder.go. A mistake in a document is a Problem and refuses
// the commit; anything else a reviewer should know is a Finding.
package fleet

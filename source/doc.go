// SPDX-License-Identifier: Apache-2.0

// Package source reads git. Its promise: a commit is complete and read-only,
// history is walked along first parents, and a fleet is never read from a work
// tree.
//
// Files are read from the object store, so nothing is ever checked out: no
// symlink is followed, no attribute or filter runs, no path of a tree becomes
// a path on disk. Begin with Open for a repository on this machine, or with
// Clone for a mirror of one elsewhere; then History gives commits and
// Commit.Tree their files.
//
// An edit is a commit: Apply writes one on a branch, Draft one that Push sends
// to a branch of the remote, WorkTree.Commit one on the branch that somebody
// has checked out, whose files and index go along. Nothing is forced.
//
// The package owns go-git, of which it uses the object storage and the wire
// protocol, but none of the parts that keep state outside the values here.
package source

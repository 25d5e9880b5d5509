// SPDX-License-Identifier: Apache-2.0

// Package source reads git. A commit is complete and read-only, history follows
// first parents, and a fleet is never read from a work tree.
//
// Files are read from the object store and nothing is checked out: no symlink
// is followed, no attribute or filter runs, no path of a tree becomes a path on
// disk. Start with Open for a repository on this machine, or with Clone for a
// mirror of a remote one; then History returns commits and Commit.Tree their
// files.
//
// An edit is a commit: Apply commits to a branch, Draft makes a commit that
// Push sends to a remote branch, WorkTree.Commit commits to the checked-out
// branch and updates its files and index. Nothing is ever forced.
//
// The package owns go-git. It uses its object storage and wire protocol, but
// none of the parts with state outside the values here.
package source

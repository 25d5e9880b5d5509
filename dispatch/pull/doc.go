// SPDX-License-Identifier: Apache-2.0

// Package pull writes what a cluster should run where its own Flux or Argo CD
// fetches it: a branch of a git repository, or a directory.
//
// An object is a file. Those tools delete what disappears, so what is left running
// keeps its file with the marks that spare the object, and what others need goes
// along.
package pull

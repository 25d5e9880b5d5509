// SPDX-License-Identifier: Apache-2.0

package render

// Version is the version of what this package makes of a tree. Raise it when
// the same tree gives another snapshot, by a change here or of kustomize:
// earlier results are then rendered again, which does not count as an update
// (fold rule 7).
const Version = 3

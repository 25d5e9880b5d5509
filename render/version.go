// SPDX-License-Identifier: Apache-2.0

package render

// Version is of what this package makes of a tree. It is raised when the same
// tree gives another snapshot, by a change here or of kustomize: what was made
// before is then made again, which counts as no update (fold rule 7).
const Version = 1

// SPDX-License-Identifier: Apache-2.0

// Package history folds the commits of a repository.
//
// [History] reads commits and hands them to the fold one after the other:
// the walk of fold rule 1, from the commit that carries the trailer
// Fairlead-Begin, or from the root. [States] opens a fleet for the look commands:
// it folds the state at any revision, starting from the nearest one in [Cache],
// and previews a merge. [Timeline] records what the walk shows and the state at
// its end does not: which commit changed a document last, and what happened to an
// object. [Past] is as much of that, for all objects, as is kept beside each state.
//
// Nothing here depends on a member or on the clock. A lost cache costs time and
// changes no result.
package history

// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the loop: fetch, fold each new commit, keep the state,
// bring the members to it.
//
//	fetch → read → propagate.Step → checkpoint → dispatch
//
// History reads commits and folds them, for the loop and for the look
// commands alike. Checkpoint keeps the state in one file, a transaction per
// commit; it is a cache, and without it the history is folded again. Loop
// puts them together. Whatever step it is killed between, the next run ends
// in the same fleet: what is owed to a member is what the state wants and the
// inventory does not hold.
package reconcile

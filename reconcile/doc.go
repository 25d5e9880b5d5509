// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the loop: fetch, fold each new commit, save the state, and
// reconcile the members with it.
//
//	fetch → read → propagate.Step → checkpoint → dispatch
//
// [Loop] puts the steps together. Package look/history reads and folds the commits,
// for the loop and for the look commands alike. Package checkpoint keeps the state in
// one file, with a transaction per commit; it is a cache, and without it the history
// is folded again. Whenever the loop is killed, the next run leads to the same fleet:
// the work left for a member is what the state wants and the inventory does not have.
package reconcile

// SPDX-License-Identifier: Apache-2.0

// Package review shows a fleet on its forge while a loop follows it: a plan on every open
// pull request against the branch, and on each commit of the branch how far it is.
//
// A [Reviewer] is told each Result of the loop, and works in a goroutine of its own. It
// plans on the state that the loop has folded, and from what clusters have acknowledged.
// What goes wrong here is reported, and concerns the loop in no way.
package review

// SPDX-License-Identifier: Apache-2.0

// Package web is the page of a fleet: read-only handlers over package look.
//
// It has no state of its own that is not a cache of git. A door gives it a [Fleet]: where
// the history is, how to fetch, and what members have if anybody has asked them. [Server]
// follows the branch in Run, and answers every page as of any commit of the branch: the
// state at the head is in memory, others are folded when somebody asks, a few at a time.
//
// Pages are Go templates around the values of package look. They are whole without
// script; with it, what has changed is redrawn in place.
package web

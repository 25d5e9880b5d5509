// SPDX-License-Identifier: Apache-2.0

// Package change edits the fleet in git: suspend and resume, promote, roll back,
// activate, adopt, taint and cordon, each a value.
//
// A [Session] is opened on the commit that the edit goes on top of. A [Change]
// prepares an [Edit] in it, [Session.Preview] plans its effect on every cluster, and
// [Session.Write] writes it to the work tree or commits it on a branch. The rest of
// a document stays as it is, including comments and layout. An edit that would not
// take effect, or would change something else, too, is refused.
package change

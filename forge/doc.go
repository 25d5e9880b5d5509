// SPDX-License-Identifier: Apache-2.0

// Package forge is what fairlead says to a forge: GitHub, GitLab, Gitea and Forgejo.
//
// [Post] brings a pull request to what a plan says: one comment, a commit status and,
// where the forge has them, annotations. What there is to write is decided from what is
// there already (post.go), so a second run with the same plan writes nothing. [Forge] is
// the contract that the implementations fulfil, each over its well-kept client library;
// a transport of our own carries the token, waits for rate limits and words the errors.
//
// A plan is untrusted input: a job that builds a fork may have made it. Nothing in it is
// followed, and what is sent of it is escaped.
package forge

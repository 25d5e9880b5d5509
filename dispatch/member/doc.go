// SPDX-License-Identifier: Apache-2.0

// Package member says what dispatch asks of a cluster, as little as possible.
//
// A Member reads and changes objects one at a time. What it can do besides is a
// capability: being observed, watched or listed again, taking many changes as one,
// having an identity. Ask for one with As, which finds it through wrappers;
// dryrun, counting and ratelimit are such wrappers. Errors are of type *Error, with
// a Reason to branch on.
package member

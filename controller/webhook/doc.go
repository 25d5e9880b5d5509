// SPDX-License-Identifier: Apache-2.0

// Package webhook receives what a forge says of a push, so that it is looked at
// immediately.
//
// A delivery says nothing but that there is something to look at: its content is hashed for
// the signature and dropped. So a replay does no more than a poll, and whoever guesses a
// path learns nothing of the fleet behind it.
package webhook

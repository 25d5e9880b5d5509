// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Fleet resources: each one has a reconcile.Loop of its
// own, and gets its conditions, counts, events and metrics from the loop's Result.
//
//	Fleet, Secrets → settings → follower → reconcile.Loop → members
//	                                ↓ Result
//	                    conditions, events, metrics
//
// A follower is one goroutine. It goes on while the API server of the Fleets is away,
// with what it knows; the reconciler starts, changes and drains followers, and writes
// what they report. Nothing that a Fleet decides is decided here: that is the fold's.
package controller

// SPDX-License-Identifier: Apache-2.0

// Package dispatch is the only package that changes a member cluster.
//
// A Dispatcher is given a Fleet, which says at any moment what one object on
// one cluster should be, and brings members there:
//
//	d := dispatch.New(inventory, dispatch.Options{})
//	d.SetMember("eu-1", member)
//	err := d.Sync(fleet, changed, dispatch.SyncOptions{})
//	left := d.Wait(ctx)
//
// It promises: one request for a changed object and none for an unchanged
// one; nothing that is not ours is touched; nothing is deleted because it, or
// the wish for it, could not be read; one member's failure stays its own.
//
// It is level-based: what is sent is what the fleet wants at the moment of
// sending, never a recorded change.
//
// Read worker.go first, which brings one member there; its parts have a file
// each. The members themselves are packages below: push is one behind a
// Kubernetes API, pull one that fetches a branch or a directory, and member is
// what both promise.
package dispatch

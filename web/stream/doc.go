// SPDX-License-Identifier: Apache-2.0

// Package stream tells browsers which parts of a page have changed, as server-sent
// events. It knows nothing of pages: a part is an id with a digest of what is shown
// there.
//
//	hub := stream.New(stream.Options{Limits: stream.NewLimits(0, 0)})
//	go hub.Run(ctx)
//	hub.Publish(stream.Snapshot{Version: head, Parts: digests}) // whenever something moved
//	mux.Handle("GET /events", hub)
//
// A stream has these events, each with the version as its id and a [Message] as its
// data:
//
//	ready    the first one: this is the version that is shown now
//	changed  these parts are others since the last event
//	resync   more is different than was kept: ask for everything that is shown
//
// Whoever comes back with Last-Event-ID, or comes with the version that its page was
// made of as ?since=, is told what it missed: what changed, if that is still known,
// else one resync. A client that reads too slowly gets one resync too, and goes on.
// Changes are collected, and go out at most once in Options.Every.
//
// EventSource comes back by itself after an interrupted stream, but not after an
// answer other than 200: a page that was told 429 has to try again itself.
package stream

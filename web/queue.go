// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
)

// errBusy is the error of work that is refused because too much of it waits.
var errBusy = errors.New("too many requests wait for the history to be folded")

// queue does work that costs time one after another. It refuses what would wait behind
// too much, and forgets what nobody waits for any more.
type queue struct {
	turn    chan struct{}
	waiting chan struct{}
}

func newQueue(atOnce, waiting int) *queue {
	return &queue{make(chan struct{}, atOnce), make(chan struct{}, atOnce+waiting)}
}

// do does work when it is its turn, unless ctx ends before.
func (q *queue) do(ctx context.Context, work func() error) error {
	select {
	case q.waiting <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-q.waiting }()

	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-q.turn }()

	return work()
}

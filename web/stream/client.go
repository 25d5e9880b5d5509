// SPDX-License-Identifier: Apache-2.0

package stream

import "sync"

// client is the queue of one stream.
type client struct {
	most int
	wake chan struct{} // something waits

	mu      sync.Mutex
	queue   []message
	lagging bool // too much waited, and was dropped
}

func newClient(most int) *client { return &client{most: most, wake: make(chan struct{}, 1)} }

// push queues a message, and never waits. A client that lags forgets all that waits for
// it, as it is to ask for everything.
func (c *client) push(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lagging:
		return
	case len(c.queue) >= c.most:
		c.queue, c.lagging = nil, true
	default:
		c.queue = append(c.queue, m)
	}

	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// beat queues a comment, unless something waits anyway.
func (c *client) beat() {
	c.mu.Lock()
	idle := len(c.queue) == 0 && !c.lagging
	c.mu.Unlock()
	if idle {
		c.push(heartbeat)
	}
}

// take returns what waits, and whether the client lagged; then there is nothing else.
func (c *client) take() (waiting []message, lagged bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, lagged = c.queue, c.lagging
	c.queue, c.lagging = nil, false
	return waiting, lagged
}

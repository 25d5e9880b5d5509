// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"k8s.io/client-go/rest"
)

// PushListening is Push with other times than usual.
func PushListening(cfg *rest.Config, dial, ping, pong time.Duration) (Member, error) {
	return newPush(cfg, silence{dial, ping, pong}, allSockets)
}

// Sockets are connections of which there may be no more than so many.
type Sockets struct{ all *sockets }

// NewSockets counts from the beginning.
func NewSockets(most int) Sockets { return Sockets{&sockets{most: func() int { return most }}} }

// Push is Push within these.
func (s Sockets) Push(cfg *rest.Config) (Member, error) { return newPush(cfg, usualSilence, s.all) }

// Open is how many there are.
func (s Sockets) Open() int {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.all.open
}

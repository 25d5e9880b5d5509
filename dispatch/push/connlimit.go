// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
	"weak"
)

// ConnLimit counts the connections of a process to its members, which may have no
// more than there are file descriptors for. When there are too few, connections
// that are idle are closed first, and then watches are told to end, the longest
// first: they last as long as they are let, and all others are over soon.
type ConnLimit struct {
	most func() int // 0: no limit

	mu         sync.Mutex
	open       int
	waiting    []chan struct{}
	transports []weak.Pointer[http.Transport]
	watches    []*turn // in the order of their beginning
}

// turn is a watch that may be told to end.
type turn struct{ end func() }

// processLimit is that of the process.
var processLimit = &ConnLimit{most: sync.OnceValue(func() int {
	files := mostFiles()
	// The rest is for the repository, the checkpoint and what we were given.
	return files - min(files/4, 256)
})}

// hurry is how often a connection that is waited for is looked for.
const hurry = 100 * time.Millisecond

// NewConnLimit allows so many connections at once.
func NewConnLimit(most int) *ConnLimit {
	return &ConnLimit{most: func() int { return most }}
}

// Open is how many connections there are.
func (s *ConnLimit) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// know has the idle connections of a transport closed when they are needed.
func (s *ConnLimit) know(t *http.Transport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.transports) == cap(s.transports) {
		s.transports = s.living() // of thousands of members, each is looked at once more
	}
	s.transports = append(s.transports, weak.Make(t))
}

func (s *ConnLimit) living() (left []weak.Pointer[http.Transport]) {
	for _, t := range s.transports {
		if t.Value() != nil {
			left = append(left, t)
		}
	}
	return left
}

// dial is how to connect.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// dialing has a dialer wait, no longer than atMost, until there may be another connection.
func (s *ConnLimit) dialing(to dial, atMost time.Duration) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := s.take(ctx, atMost); err != nil {
			return nil, err
		}
		conn, err := to(ctx, network, address)
		if err != nil {
			s.give()
			return nil, err
		}
		return &limitedConn{Conn: conn, give: sync.OnceFunc(s.give)}, nil
	}
}

type limitedConn struct {
	net.Conn
	give func()
}

func (s *limitedConn) Close() error {
	defer s.give()
	return s.Conn.Close()
}

// take waits until there may be one more.
func (s *ConnLimit) take(ctx context.Context, atMost time.Duration) error {
	most := s.most()
	s.mu.Lock()
	if most <= 0 || s.open < most {
		s.open++
		s.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	again := time.NewTicker(hurry)
	defer again.Stop()
	for i := 0; ; i++ {
		s.closeIdle()
		if i%10 == 0 {
			s.endWatch()
		}
		select {
		case <-mine:
			return nil
		case <-again.C:
		case <-ctx.Done():
			if !s.leave(mine) {
				s.give() // it came at the same moment
			}
			return fmt.Errorf("out of file descriptors: %d connections are open: %w", most, ctx.Err())
		}
	}
}

// give hands a connection's place to whoever waits longest.
func (s *ConnLimit) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.open--
		return
	}
	close(s.waiting[0])
	s.waiting = s.waiting[1:]
}

// leave ends waiting, and reports false when it was over.
func (s *ConnLimit) leave(mine chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.waiting {
		if c == mine {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (s *ConnLimit) closeIdle() {
	s.mu.Lock()
	s.transports = s.living()
	transports := s.transports
	s.mu.Unlock()
	for _, t := range transports {
		if t := t.Value(); t != nil {
			t.CloseIdleConnections()
		}
	}
}

// watching notes that a watch has begun, and returns what to call at its end.
func (s *ConnLimit) watching(end func()) (over func()) {
	t := &turn{end}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, t)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, other := range s.watches {
			if other == t {
				s.watches = append(s.watches[:i], s.watches[i+1:]...)
				return
			}
		}
	}
}

func (s *ConnLimit) endWatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watches) == 0 {
		return
	}
	s.watches[0].end()
	s.watches = s.watches[1:]
}

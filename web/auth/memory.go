// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// most is how many answers are remembered.
const most = 4096

// memory has what was answered a short time ago.
type memory struct {
	secret []byte // of this process: nobody who reads its memory can try out tokens elsewhere

	mu      sync.Mutex
	answers map[key]*remembered
}

// key is a question without its token.
type key struct {
	token           [sha256.Size]byte
	namespace, name string
}

// remembered is an answer, or the wait for one.
type remembered struct {
	known chan struct{} // closed when answer is there
	until time.Time     // zero while it is not
	answer
}

func newMemory() *memory {
	m := &memory{secret: make([]byte, sha256.Size), answers: map[key]*remembered{}}
	_, _ = rand.Read(m.secret) // never fails
	return m
}

func (m *memory) keyOf(q question) key {
	mac := hmac.New(sha256.New, m.secret)
	mac.Write([]byte(q.token))
	return key{token: [sha256.Size]byte(mac.Sum(nil)), namespace: q.namespace, name: q.name}
}

// find returns the answer to a question, or the wait for it. It reports whether nobody
// else looks for it: then the caller has to, and to keep it.
func (m *memory) find(q question) (r *remembered, mine bool) {
	k := m.keyOf(q)
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.answers[k]; r != nil && (r.until.IsZero() || time.Now().Before(r.until)) {
		return r, false
	}
	m.shrink()
	r = &remembered{known: make(chan struct{})}
	m.answers[k] = r
	return r, true
}

// keep tells an answer to whoever waits for it, and remembers it for a time.
func (m *memory) keep(q question, said answer, d time.Duration) {
	k := m.keyOf(q)
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.answers[k]
	r.answer, r.until = said, time.Now().Add(d)
	if d == 0 {
		delete(m.answers, k)
	}
	close(r.known)
}

// shrink makes room for many at once: what has expired goes first, then any answer.
// Whoever is looked for stays, and those are few.
func (m *memory) shrink() {
	if len(m.answers) < most {
		return
	}
	for k, r := range m.answers {
		if !r.until.IsZero() && time.Now().After(r.until) {
			delete(m.answers, k)
		}
	}
	for k, r := range m.answers {
		if len(m.answers) < most*3/4 {
			return
		}
		if !r.until.IsZero() {
			delete(m.answers, k)
		}
	}
}

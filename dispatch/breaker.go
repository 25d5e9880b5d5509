// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
)

// breaker decides how many requests a member may have in flight. A failure of
// the member as a whole trips it: nothing is sent for a while, then one probe
// request. It is told the time. Its owner holds the lock.
type breaker struct {
	parallel int
	backoff  Backoff

	limit    int // requests in flight, while it is closed
	failures int // in a row
	until    time.Time
	err      *member.Error // that tripped it last; nil while the member answers
	// generation counts the trips, so that requests that were in flight together
	// trip it once.
	generation int
}

// breakerState is what the breaker allows.
type breakerState string

// closed lets as many requests pass as the member may have, open none, and
// halfOpen a single probe.
const (
	closed   breakerState = "closed"
	open     breakerState = "open"
	halfOpen breakerState = "half-open"
)

// newBreaker is half-open: nothing is known of the member.
func newBreaker(parallel int, b Backoff) breaker {
	return breaker{parallel: parallel, backoff: b, limit: 1}
}

func (b *breaker) state(now time.Time) breakerState {
	switch {
	case b.wait(now) > 0:
		return open
	case b.limit == 1 && b.parallel > 1:
		return halfOpen
	}
	return closed
}

// allowed is how many requests may be in flight.
func (b *breaker) allowed(now time.Time) int {
	switch b.state(now) {
	case open:
		return 0
	case halfOpen:
		return 1
	}
	return b.limit
}

// wait is how long the breaker stays open.
func (b *breaker) wait(now time.Time) time.Duration { return b.until.Sub(now) }

// forget is for another member: what is in flight to the old one says nothing
// about it.
func (b *breaker) forget() {
	*b = breaker{parallel: b.parallel, backoff: b.backoff, limit: 1, generation: b.generation + 1}
}

// reset notes that the member answers. After it has asked to slow down, its limit
// grows by one with each answer.
func (b *breaker) reset(generation int) {
	if generation != b.generation {
		return
	}

	slowly := b.err != nil && b.err.Reason == member.Throttled || b.limit > 1
	b.failures, b.err = 0, nil
	if slowly {
		b.limit = min(b.limit+1, b.parallel)
		return
	}
	b.limit = b.parallel
}

// trip opens the breaker, and reports whether it did: a request of an earlier
// generation has been answered for.
func (b *breaker) trip(err *member.Error, generation int, now time.Time) bool {
	if generation != b.generation {
		return false
	}

	b.generation++
	b.failures++
	b.err = err
	pause := max(err.RetryAfter, b.backoff.afterError(err, b.failures))
	switch err.Reason {
	case member.Throttled:
		b.limit = max(1, b.limit/2)
	case member.Unauthorized, member.Forbidden, member.Replaced:
		pause, b.limit = b.backoff.Max, 1
	default:
		b.limit = 1
	}
	b.until = now.Add(pause)
	return true
}

// retryNow ends the pause after a failure that waiting does not mend.
func (b *breaker) retryNow() {
	if b.err != nil && b.err.Reason.Final() {
		b.until = time.Time{}
	}
}

// isFinal reports whether waiting does not mend what tripped the breaker.
func (b *breaker) isFinal() bool { return b.err != nil && b.err.Reason.Final() }

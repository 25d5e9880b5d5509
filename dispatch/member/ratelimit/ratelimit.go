// SPDX-License-Identifier: Apache-2.0

// Package ratelimit wraps a member so that it gets no more than so many requests a
// second:
//
//	dispatcher.SetMember("eu-1", ratelimit.Wrap(m, ratelimit.Limit{PerSecond: 20, Burst: 40}))
//
// Each request waits for its turn. A watch takes one turn as it begins, and so does a
// list, however many pages it has.
package ratelimit

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/intercept"
)

// Limit is how many requests a member gets. The zero value is no limit.
type Limit struct {
	PerSecond float64
	// Burst is how many may go at once after a pause. Default one second's worth,
	// at least 1.
	Burst int
}

// Wrap is m with a limit, which all of its requests share. What m is capable of
// shows through.
func Wrap(m member.Member, l Limit) member.Member {
	limiter := l.limiter()
	return intercept.Wrap(m, func(ctx context.Context, _ intercept.Verb, do func() error) error {
		if err := limiter.Wait(ctx); err != nil {
			return tooLate(ctx, err)
		}
		return do()
	})
}

func (l Limit) limiter() *rate.Limiter {
	if l.PerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	burst := l.Burst
	if burst <= 0 {
		burst = max(1, int(l.PerSecond))
	}
	return rate.NewLimiter(rate.Limit(l.PerSecond), burst)
}

// tooLate is the error of a request that was not made: its context ended, or ends
// before its turn comes. The member is not to blame.
func tooLate(ctx context.Context, err error) *member.Error {
	if ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return &member.Error{Reason: member.Throttled, Err: fmt.Errorf("rate limit: %w", err)}
}

// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/membertest"
	"github.com/fairlead/fairlead/dispatch/member/ratelimit"
)

// When each of several requests is made that are asked for one after the other.
func TestPace(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		limit ratelimit.Limit
		want  []time.Duration
	}{
		{"without a limit", ratelimit.Limit{}, []time.Duration{0, 0, 0, 0, 0}},
		{"a burst means nothing without one", ratelimit.Limit{Burst: 1}, []time.Duration{0, 0, 0, 0, 0}},
		{"one at a time", ratelimit.Limit{PerSecond: 10, Burst: 1}, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms}},
		{"a burst goes first", ratelimit.Limit{PerSecond: 10, Burst: 3}, []time.Duration{0, 0, 0, 100 * ms, 200 * ms}},
		{"a second's worth is the default", ratelimit.Limit{PerSecond: 4}, []time.Duration{0, 0, 0, 0, 250 * ms}},
		{"and one at least", ratelimit.Limit{PerSecond: 0.5}, []time.Duration{0, 2000 * ms, 4000 * ms, 6000 * ms, 8000 * ms}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := ratelimit.Wrap(&membertest.Bare{}, test.limit)
				began := time.Now()
				var got []time.Duration
				for _, call := range membertest.Calls()[:len(test.want)] {
					if right, err := call.Do(t.Context(), m); !right || err != nil {
						t.Fatalf("%s: %v, %v", call.Asked, right, err)
					}
					got = append(got, time.Since(began))
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("got  %v\nwant %v", got, test.want)
				}
			})
		})
	}
}

// What a member is capable of shares its limit, but for what is no request.
func TestCapabilitiesShareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ratelimit.Wrap(&membertest.Capable{}, ratelimit.Limit{PerSecond: 1, Burst: 1})
		began := time.Now()
		requests := 0
		for _, call := range append(membertest.Calls(), membertest.Capabilities()...) {
			if right, err := call.Do(t.Context(), m); !right || err != nil {
				t.Fatalf("%s: %v, %v", call.Asked, right, err)
			}
			if call.Verb != "" {
				requests++
			}
		}
		if took, want := time.Since(began), time.Duration(requests-1)*time.Second; took != want {
			t.Errorf("%d requests took %s, want %s", requests, took, want)
		}
	})
}

// A request whose context ends before its turn comes is not made, and does not wait
// in vain.
func TestContextEnds(t *testing.T) {
	for _, test := range []struct {
		name   string
		within func(context.Context) (context.Context, context.CancelFunc)
		want   error
		after  time.Duration
	}{
		{
			"it has ended",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			},
			context.Canceled, 0,
		},
		{
			"it ends while the request waits",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
			context.Canceled, time.Second,
		},
		{
			"its end is known to come first",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 9*time.Second)
			},
			context.DeadlineExceeded, 0,
		},
		{
			"its end is known to come later",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 11*time.Second)
			},
			nil, 10 * time.Second,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &membertest.Bare{}
				m := ratelimit.Wrap(inner, ratelimit.Limit{PerSecond: 0.1, Burst: 1})
				get := membertest.Calls()[1]
				if _, err := get.Do(t.Context(), m); err != nil {
					t.Fatal(err)
				}

				ctx, cancel := test.within(t.Context())
				defer cancel()
				began := time.Now()
				_, err := get.Do(ctx, m)
				if took := time.Since(began); !errors.Is(err, test.want) || took != test.after {
					t.Errorf("error %v after %s, want %v after %s", err, took, test.want, test.after)
				}
				made := len(inner.Asked()) == 2
				if made != (test.want == nil) || errors.Is(err, member.Throttled) == made {
					t.Errorf("it was made: %v, error %v", made, err)
				}
			})
		})
	}
}

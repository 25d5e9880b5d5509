// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
)

// noon is when the tests of the parts begin.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// steady is a Backoff without chance: 1s, 2s, 4s and so on up to 30s, and up to 5s
// while a member is silent.
var steady = Backoff{Base: time.Second, Max: 30 * time.Second, Silent: 5 * time.Second, Jitter: func() float64 { return 0 }}

func failure(r member.Reason) *member.Error { return &member.Error{Reason: r} }

// seenBreaker is what a worker can see of a breaker.
type seenBreaker struct {
	State     breakerState
	Allowed   int
	Wait      time.Duration // 0: it is not open
	Final     bool
	Reporting bool // it has an error to report
}

func seeBreaker(b *breaker, now time.Time) seenBreaker {
	return seenBreaker{State: b.state(now), Allowed: b.allowed(now), Wait: max(0, b.wait(now)), Final: b.isFinal(), Reporting: b.err != nil}
}

// A script changes a breaker at noon, and returns when it is looked at.
type breakerScript func(b *breaker) (look time.Time)

func TestBreaker(t *testing.T) {
	silent := &member.Error{Reason: member.Unreachable, Silent: true}
	asked := &member.Error{Reason: member.Throttled, RetryAfter: 7 * time.Second}

	// trips has it fail so many times in a row, each probe as soon as it may be
	// sent, and looks right after the last one.
	trips := func(b *breaker, err *member.Error, times int) time.Time {
		now := noon
		for i := range times {
			if i > 0 {
				now = b.until
			}
			b.trip(err, b.generation, now)
		}
		return now
	}
	answers := func(b *breaker, times int) {
		for range times {
			b.reset(b.generation)
		}
	}

	for _, test := range []struct {
		name   string
		script breakerScript
		want   seenBreaker
	}{
		{
			"nothing is known of a new member, so one request goes first",
			func(*breaker) time.Time { return noon },
			seenBreaker{State: halfOpen, Allowed: 1},
		},
		{
			"the first answer closes it",
			func(b *breaker) time.Time { answers(b, 1); return noon },
			seenBreaker{State: closed, Allowed: 16},
		},
		{
			"a failure of the member opens it",
			func(b *breaker) time.Time { answers(b, 1); return trips(b, failure(member.Unreachable), 1) },
			seenBreaker{State: open, Wait: time.Second, Reporting: true},
		},
		{
			"it is open until the pause is over",
			func(b *breaker) time.Time {
				return trips(b, failure(member.Unreachable), 1).Add(time.Second - 1)
			},
			seenBreaker{State: open, Wait: 1, Reporting: true},
		},
		{
			"then one probe is sent",
			func(b *breaker) time.Time {
				answers(b, 1)
				return trips(b, failure(member.Unreachable), 1).Add(time.Second)
			},
			seenBreaker{State: halfOpen, Allowed: 1, Reporting: true},
		},
		{
			"the probe's answer closes it, with the whole limit at once",
			func(b *breaker) time.Time {
				trips(b, failure(member.Unreachable), 1)
				answers(b, 1)
				return noon.Add(time.Second)
			},
			seenBreaker{State: closed, Allowed: 16},
		},
		{
			"the probe's failure opens it for twice as long",
			func(b *breaker) time.Time { return trips(b, failure(member.Unreachable), 2) },
			seenBreaker{State: open, Wait: 2 * time.Second, Reporting: true},
		},
		{
			"an answer in between begins the pauses anew",
			func(b *breaker) time.Time {
				trips(b, failure(member.Unreachable), 4)
				answers(b, 1)
				return trips(b, failure(member.Unreachable), 1)
			},
			seenBreaker{State: open, Wait: time.Second, Reporting: true},
		},
		{
			"pauses have an end",
			func(b *breaker) time.Time { return trips(b, failure(member.Unreachable), 40) },
			seenBreaker{State: open, Wait: 30 * time.Second, Reporting: true},
		},
		{
			"a member that does not answer at all is asked more often",
			func(b *breaker) time.Time { return trips(b, silent, 40) },
			seenBreaker{State: open, Wait: 5 * time.Second, Reporting: true},
		},
		{
			"requests that were in flight together trip it once",
			func(b *breaker) time.Time {
				for range 3 {
					b.trip(failure(member.Unreachable), 0, noon)
				}
				return noon
			},
			seenBreaker{State: open, Wait: time.Second, Reporting: true},
		},
		{
			"an answer to a request of an earlier generation does not reset it",
			func(b *breaker) time.Time {
				b.trip(failure(member.Unreachable), 0, noon)
				b.reset(0)
				return noon.Add(time.Second)
			},
			seenBreaker{State: halfOpen, Allowed: 1, Reporting: true},
		},

		{
			"a member that asks to slow down gets half as many requests",
			func(b *breaker) time.Time {
				answers(b, 1)
				return trips(b, failure(member.Throttled), 1).Add(time.Second)
			},
			seenBreaker{State: closed, Allowed: 8, Reporting: true},
		},
		{
			"and nothing for as long as it asks",
			func(b *breaker) time.Time { answers(b, 1); return trips(b, asked, 1) },
			seenBreaker{State: open, Wait: 7 * time.Second, Reporting: true},
		},
		{
			"or for longer, when it asked often enough",
			func(b *breaker) time.Time { return trips(b, asked, 4) },
			seenBreaker{State: open, Wait: 8 * time.Second, Reporting: true},
		},
		{
			"then each answer adds one",
			func(b *breaker) time.Time {
				answers(b, 1)
				trips(b, failure(member.Throttled), 1)
				answers(b, 3)
				return noon.Add(time.Second)
			},
			seenBreaker{State: closed, Allowed: 11},
		},
		{
			"up to the limit",
			func(b *breaker) time.Time {
				answers(b, 1)
				trips(b, failure(member.Throttled), 1)
				answers(b, 30)
				return noon.Add(time.Second)
			},
			seenBreaker{State: closed, Allowed: 16},
		},
		{
			"half of one is one",
			func(b *breaker) time.Time {
				answers(b, 1)
				return trips(b, failure(member.Throttled), 6).Add(time.Minute)
			},
			seenBreaker{State: halfOpen, Allowed: 1, Reporting: true},
		},
		{
			"and one grows by one too",
			func(b *breaker) time.Time {
				answers(b, 1)
				trips(b, failure(member.Throttled), 6)
				answers(b, 1)
				return noon.Add(time.Hour)
			},
			seenBreaker{State: closed, Allowed: 2},
		},

		{
			"credentials that are not accepted are tried again after the longest pause",
			func(b *breaker) time.Time { return trips(b, failure(member.Unauthorized), 1) },
			seenBreaker{State: open, Wait: 30 * time.Second, Final: true, Reporting: true},
		},
		{
			"so are credentials that may not",
			func(b *breaker) time.Time { return trips(b, failure(member.Forbidden), 1) },
			seenBreaker{State: open, Wait: 30 * time.Second, Final: true, Reporting: true},
		},
		{
			"and another cluster, whatever it asks",
			func(b *breaker) time.Time {
				return trips(b, &member.Error{Reason: member.Replaced, RetryAfter: time.Hour}, 1)
			},
			seenBreaker{State: open, Wait: 30 * time.Second, Final: true, Reporting: true},
		},
		{
			"with one probe",
			func(b *breaker) time.Time {
				answers(b, 1)
				return trips(b, failure(member.Unauthorized), 1).Add(30 * time.Second)
			},
			seenBreaker{State: halfOpen, Allowed: 1, Final: true, Reporting: true},
		},
		{
			"somebody who wants it now ends the pause after what waiting does not mend",
			func(b *breaker) time.Time { trips(b, failure(member.Unauthorized), 1); b.retryNow(); return noon },
			seenBreaker{State: halfOpen, Allowed: 1, Final: true, Reporting: true},
		},
		{
			"and no other",
			func(b *breaker) time.Time { trips(b, failure(member.Unreachable), 1); b.retryNow(); return noon },
			seenBreaker{State: open, Wait: time.Second, Reporting: true},
		},

		{
			"another member begins anew",
			func(b *breaker) time.Time { trips(b, failure(member.Unauthorized), 3); b.forget(); return noon },
			seenBreaker{State: halfOpen, Allowed: 1},
		},
		{
			"with one request, however many the one before had",
			func(b *breaker) time.Time { answers(b, 1); b.forget(); return noon },
			seenBreaker{State: halfOpen, Allowed: 1},
		},
		{
			"what the one before answers says nothing about it",
			func(b *breaker) time.Time {
				before := b.generation
				b.forget()
				b.reset(before)
				b.trip(failure(member.Unreachable), before, noon)
				return noon
			},
			seenBreaker{State: halfOpen, Allowed: 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBreaker(16, steady)
			now := test.script(&b)
			if got := seeBreaker(&b, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// Of one request at a time none is a probe.
func TestBreakerOfOneAtATime(t *testing.T) {
	b := newBreaker(1, steady)
	if got, want := seeBreaker(&b, noon), (seenBreaker{State: closed, Allowed: 1}); got != want {
		t.Errorf("at first %+v, want %+v", got, want)
	}

	b.trip(failure(member.Throttled), 0, noon)
	if got, want := seeBreaker(&b, noon.Add(time.Second)), (seenBreaker{State: closed, Allowed: 1, Reporting: true}); got != want {
		t.Errorf("after the pause %+v, want %+v", got, want)
	}

	b.reset(b.generation)
	b.reset(b.generation)
	if got, want := seeBreaker(&b, noon.Add(time.Second)), (seenBreaker{State: closed, Allowed: 1}); got != want {
		t.Errorf("after answers %+v, want %+v", got, want)
	}
}

// Whoever tripped it is told so: only then is it doubted who the member is.
func TestBreakerTellsWhoTripped(t *testing.T) {
	b := newBreaker(16, steady)
	if !b.trip(failure(member.Unreachable), 0, noon) {
		t.Error("the first failure did not trip it")
	}
	if b.trip(failure(member.Unreachable), 0, noon) {
		t.Error("the second of the same generation tripped it again")
	}
}

// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"github.com/fairlead/fairlead/propagate"
)

// Clock is the source of time for a loop. The zero value is the machine's clock.
type Clock struct {
	// Now is the time of day, for people to read. It may jump.
	Now func() time.Time
	// Elapsed is how much time has passed since some moment, even if the time of day
	// jumps. It defaults to the difference of Now, by the machine's monotonic clock.
	Elapsed func() time.Duration
}

func (c Clock) withDefaults() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Elapsed == nil {
		now, began := c.Now, c.Now()
		c.Elapsed = func() time.Duration { return now().Sub(began) }
	}
	return c
}

// moments returns the clock, in seconds since 1970, by which tolerations and grace
// periods expire. It starts at the time of day, but not before what an earlier process
// has seen, and then follows Elapsed, even if the time of day is changed.
func (c Clock) moments(state *propagate.State) func() int64 {
	began, before := max(c.Now().Unix(), lastMoment(state)), c.Elapsed()
	return func() int64 { return began + int64((c.Elapsed()-before)/time.Second) }
}

// lastMoment returns the last moment in a state; 0 without one.
func lastMoment(s *propagate.State) (moment int64) {
	if s.Seen != nil {
		for _, c := range s.Seen.Clusters {
			for _, since := range c.Taints {
				moment = max(moment, since)
			}
		}
		for _, places := range s.Seen.Works {
			for _, w := range places {
				moment = max(moment, w.Since)
			}
		}
	}

	if s.Evictions > 0 {
		for b := range s.Bindings.Values() {
			for _, e := range b.Evictions {
				moment = max(moment, e.Since)
			}
		}
	}

	return moment
}

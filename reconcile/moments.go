// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"github.com/fairlead/fairlead/propagate"
)

// moments is the clock by which tolerations and graces run out. It begins with
// the machine's, and not before what was seen by an earlier process; from then on
// it goes as time passes, wherever the machine's clock is turned to.
type moments struct {
	began   int64
	elapsed func() time.Duration
}

func newMoments(now time.Time, elapsed func() time.Duration, state *propagate.State) moments {
	before := elapsed()
	return moments{max(now.Unix(), latest(state)), func() time.Duration { return elapsed() - before }}
}

func (m moments) now() int64 { return m.began + int64(m.elapsed()/time.Second) }

// latest is the last moment that a state knows of; 0 without one.
func latest(s *propagate.State) (moment int64) {
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

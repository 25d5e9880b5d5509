// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
)

// Backoff is how long to wait between attempts: Base, twice that, and so on
// up to Max, each shortened by up to half. The zero value works.
type Backoff struct {
	Base time.Duration // default 500ms
	Max  time.Duration // default 30s
	// Silent is what Max is for a member that does not answer at all: there is
	// nobody whom asking burdens, and it is to be served soon when it is back.
	// Default 5s, and no more than Max.
	Silent time.Duration
	// Jitter returns a number in [0,1); default is random.
	Jitter func() float64
}

func (b Backoff) withDefaults() Backoff {
	if b.Base <= 0 {
		b.Base = 500 * time.Millisecond
	}
	if b.Max < b.Base {
		b.Max = max(30*time.Second, b.Base)
	}
	if b.Silent <= 0 {
		b.Silent = 5 * time.Second
	}
	b.Silent = min(b.Silent, b.Max)
	if b.Jitter == nil {
		b.Jitter = rand.Float64
	}
	return b
}

// after is the pause after so many failures in a row.
func (b Backoff) after(failures int) time.Duration { return b.upTo(b.Max, failures) }

// afterError is the pause after so many failures in a row, the last of which
// was err.
func (b Backoff) afterError(err error, failures int) time.Duration {
	if e := (*member.Error)(nil); errors.As(err, &e) && e.Silent {
		return b.upTo(b.Silent, failures)
	}
	return b.after(failures)
}

func (b Backoff) upTo(d time.Duration, failures int) time.Duration {
	// The end is halved, for a long base that is doubled so often overflows.
	if shift := failures - 1; shift < 30 && b.Base < d>>shift {
		d = b.Base << shift
	}
	return d - time.Duration(b.Jitter()*float64(d)/2)
}

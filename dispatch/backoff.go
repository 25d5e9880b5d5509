// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to wait between attempts: Base, twice that, and so on
// up to Max, each shortened by up to half. The zero value works.
type Backoff struct {
	Base time.Duration // default 500ms
	Max  time.Duration // default 30s
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
	if b.Jitter == nil {
		b.Jitter = rand.Float64
	}
	return b
}

// after is the pause after so many failures in a row.
func (b Backoff) after(failures int) time.Duration {
	d := b.Max
	if shift := failures - 1; shift < 30 && b.Base<<shift < b.Max {
		d = b.Base << shift
	}
	return d - time.Duration(b.Jitter()*float64(d)/2)
}

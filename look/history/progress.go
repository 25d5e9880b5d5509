// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// HowToBegin is the way out of a history that takes too long, or whose first commits are
// not meant for a fleet.
const HowToBegin = "a commit whose message ends with \"" + TrailerBegin + ": true\" begins the fold there, without those before it"

// Progress shows how far a long fold is, in one line of a terminal that is erased when
// the fold ends.
type Progress struct {
	out   io.Writer
	now   func() time.Time
	began time.Time
	told  time.Time // zero if nothing is shown
}

// A fold is shown when it takes this long, and then this often.
const (
	progressAfter = 2 * time.Second
	progressEvery = 200 * time.Millisecond
)

// NewProgress returns what writes to a terminal. now is the clock.
func NewProgress(out io.Writer, now func() time.Time) *Progress {
	return &Progress{out: out, now: now, began: now()}
}

// Begin begins a fold.
func (p *Progress) Begin() {
	if p != nil {
		p.began = p.now()
	}
}

// Folded tells that some commits of all were folded.
func (p *Progress) Folded(done, all int) {
	if p == nil {
		return
	}
	now := p.now()
	if now.Sub(p.began) < progressAfter || now.Sub(p.told) < progressEvery {
		return
	}
	p.told = now
	fmt.Fprintf(p.out, "\rfolding %s of %s commits", grouped(done), grouped(all))
}

// grouped is a number with a comma between thousands.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// End erases the line.
func (p *Progress) End() {
	if p == nil || p.told.IsZero() {
		return
	}
	p.told = time.Time{}
	fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", len("folding 1,000,000 of 1,000,000 commits")))
}

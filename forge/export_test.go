// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"testing"
	"time"
)

// Clock replaces the clock until the test ends: a wait is over at once, and written down.
func Clock(t *testing.T) (waits *[]time.Duration) {
	t.Helper()
	at := time.Now()
	waits = &[]time.Duration{}
	now = func() time.Time { return at }
	wait = func(_ context.Context, d time.Duration) error {
		at = at.Add(d)
		*waits = append(*waits, d)
		return nil
	}
	t.Cleanup(func() { now, wait = time.Now, sleep })
	return waits
}

// Marker, Verdict and CodeSpan are what a comment is made of.
var (
	Marker      = marker
	CodeSpan    = codeSpan
	VerdictText = verdictText
)

// Remembered is what a body remembers, as a body; "" if nothing.
func Remembered(body string) string {
	r, ok := readRecord(body)
	if !ok {
		return ""
	}
	return r.String()
}

// Base is the URL that the requests of a target begin with.
func Base(t Target) (string, error) {
	u, err := t.base()
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

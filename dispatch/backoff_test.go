// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
)

func TestBackoff(t *testing.T) {
	half := steady
	half.Jitter = func() float64 { return 0.5 }
	silent := fmt.Errorf("list: %w", &member.Error{Reason: member.Unreachable, Silent: true})

	for _, test := range []struct {
		name     string
		b        Backoff
		err      error
		failures int
		want     time.Duration
	}{
		{"the first pause is the base", steady, nil, 1, time.Second},
		{"the second is twice that", steady, nil, 2, 2 * time.Second},
		{"the third twice that", steady, nil, 3, 4 * time.Second},
		{"the last below the end", steady, nil, 5, 16 * time.Second},
		{"there is an end", steady, nil, 6, 30 * time.Second},
		{"however often", steady, nil, 1000, 30 * time.Second},
		{"chance shortens it by up to half", half, nil, 3, 3 * time.Second},
		{"and the longest too", half, nil, 1000, 22500 * time.Millisecond},
		{"a silent member has the same base", steady, silent, 1, time.Second},
		{"and an end of its own", steady, silent, 4, 5 * time.Second},
		{"one that answers has not", steady, failure(member.Unreachable), 4, 8 * time.Second},
		{"nor has any other error", steady, errors.New("no space left"), 4, 8 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.b.afterError(test.err, test.failures); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A long base, doubled thirty times, does not fit into a Duration.
func TestBackoffNeverShrinks(t *testing.T) {
	b := Backoff{Base: time.Minute, Max: time.Hour, Jitter: steady.Jitter}.withDefaults()
	last := time.Duration(0)
	for failures := 1; failures <= 100; failures++ {
		pause := b.after(failures)
		if pause < last || pause > b.Max {
			t.Fatalf("the pause after %d failures is %s, and was %s before", failures, pause, last)
		}
		last = pause
	}
}

func TestBackoffDefaults(t *testing.T) {
	type durations struct{ Base, Max, Silent time.Duration }
	for _, test := range []struct {
		name    string
		b, want durations
	}{
		{"nothing is set", durations{}, durations{500 * time.Millisecond, 30 * time.Second, 5 * time.Second}},
		{"all is set", durations{1, 3, 2}, durations{1, 3, 2}},
		{"a base above the default end", durations{Base: time.Minute}, durations{time.Minute, time.Minute, 5 * time.Second}},
		{"an end below the base", durations{Base: time.Second, Max: 1}, durations{time.Second, 30 * time.Second, 5 * time.Second}},
		{"an end below what silence has", durations{Base: 1, Max: time.Second}, durations{1, time.Second, time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := Backoff{Base: test.b.Base, Max: test.b.Max, Silent: test.b.Silent}.withDefaults()
			if got := (durations{b.Base, b.Max, b.Silent}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			for range 100 {
				if j := b.Jitter(); j < 0 || j >= 1 {
					t.Fatalf("jitter is %v", j)
				}
			}
		})
	}
}

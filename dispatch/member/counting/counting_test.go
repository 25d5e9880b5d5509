// SPDX-License-Identifier: Apache-2.0

package counting_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/counting"
	"github.com/fairlead/fairlead/dispatch/member/intercept"
	"github.com/fairlead/fairlead/dispatch/member/membertest"
)

func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"it went well", nil, counting.OK},
		{"it failed for a reason", &member.Error{Reason: member.Foreign}, "Foreign"},
		{"the reason is inside", fmt.Errorf("apply: %w", &member.Error{Reason: member.Throttled}), "Throttled"},
		{"it failed for no reason", errors.New("no space left"), counting.Unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := &membertest.Capable{}
			inner.Err = test.err
			m := counting.Wrap(inner)
			want := map[counting.Request]int{}
			for _, call := range append(membertest.Calls(), membertest.Capabilities()...) {
				if _, err := call.Do(context.Background(), m); !errors.Is(err, test.err) {
					t.Errorf("%s: error %v, want %v", call.Asked, err, test.err)
				}
				if call.Verb != "" {
					want[counting.Request{Verb: intercept.Verb(call.Verb), Outcome: test.want}]++
				}
			}
			if got := m.Snapshot(); !maps.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// A list is one request, and none before it was read. What is done to a snapshot
// changes nothing.
func TestSnapshot(t *testing.T) {
	m := counting.Wrap(&membertest.Bare{})
	if got := m.Snapshot(); len(got) != 0 {
		t.Errorf("at first %v", got)
	}

	calls := membertest.Calls()
	for range 2 {
		if _, err := calls[0].Do(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	want := map[counting.Request]int{{Verb: intercept.List, Outcome: counting.OK}: 2}
	got := m.Snapshot()
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	clear(got)
	if got := m.Snapshot(); !maps.Equal(got, want) {
		t.Errorf("after a snapshot was changed: %v, want %v", got, want)
	}
}

func TestCountedAtOnce(t *testing.T) {
	m := counting.Wrap(&membertest.Capable{})
	var all sync.WaitGroup
	for range 100 {
		for _, call := range membertest.Calls() {
			all.Go(func() {
				if _, err := call.Do(context.Background(), m); err != nil {
					t.Error(err)
				}
				m.Snapshot()
			})
		}
	}
	all.Wait()

	for request, n := range m.Snapshot() {
		if n != 100 {
			t.Errorf("%d times %v, want 100", n, request)
		}
	}
}

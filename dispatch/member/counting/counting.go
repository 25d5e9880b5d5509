// SPDX-License-Identifier: Apache-2.0

// Package counting wraps a member so that its requests are counted, by what they do
// and by what became of them:
//
//	counted := counting.Wrap(m)
//	dispatcher.SetMember("eu-1", counted)
//	counted.Snapshot()[counting.Request{Verb: intercept.Apply, Outcome: counting.OK}]
//
// A list is one request, however many pages it has, and is counted once it was
// read; a watch is, once it has ended.
package counting

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/intercept"
)

// What becomes of a request besides the Reason of its error.
const (
	OK = "OK"
	// Unknown is an error without a Reason.
	Unknown = "Unknown"
)

// Request is what is counted.
type Request struct {
	Verb    intercept.Verb
	Outcome string // OK, the Reason of a *member.Error, or Unknown
}

// Member is a member whose requests are counted.
type Member struct {
	member.Member

	mu     sync.Mutex
	counts map[Request]int
}

// Wrap is m, counted from now on. What m is capable of shows through.
func Wrap(m member.Member) *Member {
	c := &Member{counts: map[Request]int{}}
	c.Member = intercept.Wrap(m, c.count)
	return c
}

// Unwrap is the member inside.
func (c *Member) Unwrap() member.Member { return c.Member }

// Snapshot is how many requests there were so far. The caller may change it.
func (c *Member) Snapshot() map[Request]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *Member) count(_ context.Context, verb intercept.Verb, do func() error) error {
	err := do()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[Request{verb, outcome(err)}]++
	return err
}

func outcome(err error) string {
	if err == nil {
		return OK
	}
	if e := (*member.Error)(nil); errors.As(err, &e) {
		return string(e.Reason)
	}
	return Unknown
}

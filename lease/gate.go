// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Gate says whether this replica may write to the clusters of a shard, at this
// moment. It is asked right before each write, from any goroutine; what it says of a
// moment never depends on how late the machine was stepped.
type Gate struct {
	name  string
	state atomic.Pointer[gateState]
}

type gateState struct {
	held          bool
	opens, closes time.Duration
	sent          string
	epoch         int32
	any           bool // permits every commit: a rule that a test took out
}

// Reason is why a gate refuses.
type Reason string

// The reasons.
const (
	NotHeld  Reason = "not held" // another replica has the shard, or nobody
	Lapsed   Reason = "lapsed"   // held, but not renewed in time, or not for long enough after its last holder
	Position Reason = "position" // the commit is not the newest that may be sent
)

// ClosedError says why a gate refuses.
type ClosedError struct {
	Lease  string
	Reason Reason
	Commit string // of Position: what was to be written,
	Sent   string // and what the Lease says
}

func (e *ClosedError) Error() string {
	switch e.Reason {
	case Lapsed:
		return fmt.Sprintf("lease %s: not renewed in time: nothing is written until it is", e.Lease)
	case Position:
		return fmt.Sprintf("lease %s: says that commit %s was sent: commit %s is not written", e.Lease, orNone(e.Sent), orNone(e.Commit))
	}
	return fmt.Sprintf("lease %s: not held by this replica: nothing is written", e.Lease)
}

func orNone(commit string) string {
	if commit == "" {
		return "(none)"
	}
	return commit
}

// Open reports whether anything may be written at this moment of the replica's own
// clock. The error is a *ClosedError.
func (g *Gate) Open(now time.Duration) error {
	s := g.state.Load()
	if s == nil || !s.held {
		return &ClosedError{Lease: g.name, Reason: NotHeld}
	}
	if now < s.opens || now >= s.closes {
		return &ClosedError{Lease: g.name, Reason: Lapsed}
	}
	return nil
}

// Permit reports whether this commit is the one that the Lease says is being sent.
// Machine.Advance puts a newer one there; an older one is never written again.
func (g *Gate) Permit(commit string) error {
	s := g.state.Load()
	if s == nil || !s.held {
		return &ClosedError{Lease: g.name, Reason: NotHeld}
	}
	if commit == "" || commit != s.sent && !s.any {
		return &ClosedError{Lease: g.name, Reason: Position, Commit: commit, Sent: s.sent}
	}
	return nil
}

// Epoch counts the holders of the Lease, this one included; 0 if it is not held.
func (g *Gate) Epoch() int32 {
	if s := g.state.Load(); s != nil && s.held {
		return s.epoch
	}
	return 0
}

func (g *Gate) shut() { g.state.Store(nil) }

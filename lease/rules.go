// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// Rules are the timings. Every replica of a fleet has the same; all are counted on
// the replica's own clock. See the package comment for why they are safe.
type Rules struct {
	Duration      time.Duration // a Lease that nobody changed for so long has expired
	Renew         time.Duration // a holder renews so often
	Jitter        float64       // give or take this part of it
	GateCloses    time.Duration // after the start of the last successful renewal
	WriteDeadline time.Duration // what a write to a member has
	Settle        time.Duration // what follows Duration before the gate of an expired Lease opens
	Reserve       time.Duration // a Lease that was given back waits so long for its next holder
	Fallback      time.Duration // a Lease that nobody holds is anybody's after that
	Stagger       time.Duration // but in the order of rank, so far apart
	Keep          time.Duration // whoever took it then keeps it for so long, if the replicas stay the same
	Stable        time.Duration // replicas that did not change for so long may make shards move
	Moves         int           // so many at most,
	MoveWindow    time.Duration // in so long
	Drain         time.Duration // what is in flight ends in that
	Request       time.Duration // what a request about a Lease has
	Retry         time.Duration // and what passes after one that failed
	Relist        time.Duration // all Leases are listed so often, whatever the watch says

	ReplicaDuration time.Duration // a replica whose Lease nobody changed for so long is dead
	ReplicaRenew    time.Duration

	broken broken
}

// broken are rules that a test takes out, to see that the simulation notices.
type broken struct {
	gateFromEnd, unconditional, forgetsPosition, takesUnfolded, ignoresReservation bool
	ignoresOthers, confirmsNothing, leavesExpired, noFallback, returnsAtOnce       bool
}

// DefaultRules are those of docs/design/0031-shards.md.
func DefaultRules() Rules {
	return Rules{
		Duration:      40 * time.Second,
		Renew:         10 * time.Second,
		Jitter:        0.2,
		GateCloses:    25 * time.Second,
		WriteDeadline: 10 * time.Second,
		Settle:        3 * time.Second,
		Reserve:       5 * time.Second,
		Fallback:      60 * time.Second,
		Stagger:       100 * time.Millisecond,
		Keep:          5 * time.Minute,
		Stable:        15 * time.Second,
		Moves:         4,
		MoveWindow:    10 * time.Second,
		Drain:         10 * time.Second,
		Request:       5 * time.Second,
		Retry:         2 * time.Second,
		Relist:        60 * time.Second,

		ReplicaDuration: 20 * time.Second,
		ReplicaRenew:    5 * time.Second,
	}
}

// Scaled are the rules with times that are longer or shorter by a factor, such as those of
// a test. What a request about a Lease has, and how often all are listed, stays.
func (r Rules) Scaled(factor float64) Rules {
	for _, d := range []*time.Duration{
		&r.Duration, &r.Renew, &r.GateCloses, &r.WriteDeadline, &r.Settle, &r.Reserve, &r.Fallback, &r.Stagger, &r.Keep,
		&r.Stable, &r.MoveWindow, &r.Drain, &r.Retry, &r.ReplicaDuration, &r.ReplicaRenew,
	} {
		*d = time.Duration(float64(*d) * factor)
	}
	return r
}

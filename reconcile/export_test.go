// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"testing"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
)

// SetEngine makes this another version of the engine, as an upgrade would.
func SetEngine(t testing.TB, version string) {
	before := history.Engine
	history.Engine = version
	t.Cleanup(func() { history.Engine = before })
}

// FleetOf is a state as dispatch asks about it.
func FleetOf(state *propagate.State) dispatch.Fleet { return newDesired(state) }

// CountWorks counts the works of the last state, having followed all of them.
func CountWorks(states ...propagate.State) map[string]Works {
	l := &Loop{}
	for _, s := range states {
		l.state = s
		l.countWorks()
	}
	return l.countWorks()
}

// RoundOf is a round of a loop that waits for what is observed of the members.
func RoundOf(ctx context.Context, l *Loop) error { return l.round(ctx, true) }

// StateOf is what a loop has folded.
func StateOf(l *Loop) propagate.State { return l.state }

// Counting has counted the works of a state. What it returns follows another one.
func Counting(state propagate.State) (follow func(propagate.State)) {
	l := &Loop{state: state}
	l.countWorks()
	return l.counts.follow
}

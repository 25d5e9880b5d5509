// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Result is the result of a round. Conditions, events and metrics derive from it.
type Result struct {
	// Fleet is the name of the fleet, "" before a commit is accepted.
	Fleet string
	// Head is the commit that the branch is at, and Accepted the last one that was
	// accepted. If they differ, Refusal has the reason.
	Head, Accepted string
	Refusal        *propagate.Refusal
	// State is what was folded. Nobody changes it, so it may be read at any time.
	State propagate.State
	// Known is the state with what it was rendered to, for another fold of the process to
	// share it; nil if that is not at hand.
	Known *history.Known
	// Fetched is when the repository was last read; zero if this process never has.
	Fetched time.Time
	// Frozen are the parts of the fleet that are broken in the accepted commit,
	// and stay as they were (fold rule 3).
	Frozen  []fleet.Finding
	Members []MemberStatus
	// Round counts the rounds of the loop, from 1.
	Round int64
	// Changes are what the commits folded since the last Result have decided.
	Changes []propagate.Change
	// Err is why the round ended early; nil if it did not.
	Err error
	// Folding is how long commits were folded since the last Result.
	Folding time.Duration
	// Holds are what policies hold, in no order.
	Holds []Hold
	// Works counts the works of every cluster, by what keeps them back.
	Works map[string]Works
	// Acts are those since the last Result, in the order in which the members answered.
	// A round does not wait for its own.
	Acts []Act
}

// MemberStatus is the state of one member, compared with what the fleet wants.
type MemberStatus struct {
	Cluster string
	// Ready is the last observed readiness, under the gate Failover; "" if it was not
	// observed.
	Ready metav1.ConditionStatus
	// Err is why the member as a whole cannot be reconciled; nil if it can.
	Err error
	// Waiting is how many objects wait because of Err.
	Waiting int
	// Contacted reports whether it is known what the member holds, and Pending is how many
	// objects are to be sent to it or deleted there, and have not failed.
	Contacted bool
	Pending   int
	// Failures are the objects that the member does not have as wanted, sorted
	// by object.
	Failures []dispatch.Outcome
}

// Converged reports whether the member has what the fleet wants, as far as is known.
// Requests may be in flight.
func (m MemberStatus) Converged() bool { return m.Err == nil && len(m.Failures) == 0 }

// Status returns the status of every member, sorted by name. It may be called at any
// time, even during a round.
func (l *Loop) Status() []MemberStatus {
	by := map[string]*MemberStatus{}
	of := func(cluster string) *MemberStatus {
		if by[cluster] == nil {
			by[cluster] = &MemberStatus{Cluster: cluster}
		}
		return by[cluster]
	}

	l.mu.Lock()
	for cluster := range l.members {
		of(cluster)
	}

	for cluster, err := range l.unreached {
		of(cluster).Err = err
	}

	for cluster, m := range by {
		m.Ready = l.ready[cluster].status
	}

	l.mu.Unlock()

	for cluster, p := range l.dispatcher.Progress() {
		m := of(cluster)
		m.Contacted, m.Pending = p.Contacted, p.Pending
	}

	for _, o := range l.dispatcher.Outcomes() {
		switch m := of(o.Cluster); {
		case o.Err == nil:
		case o.ID == (object.ID{}):
			m.Err, m.Waiting = o.Err, o.Waiting
		default:
			m.Failures = append(m.Failures, o)
		}
	}

	all := make([]MemberStatus, 0, len(by))
	for _, cluster := range slices.Sorted(maps.Keys(by)) {
		m := by[cluster]
		slices.SortFunc(m.Failures, func(a, b dispatch.Outcome) int { return compare(a.ID, b.ID) })
		all = append(all, *m)
	}

	return all
}

// result returns the result of a round, and clears the acts.
func (l *Loop) result() Result {
	r := Result{Head: l.state.Commit, Accepted: l.state.Accepted, Refusal: l.state.Refusal, State: l.state, Fetched: l.fetched, Frozen: l.state.Broken(), Members: l.Status()}
	if l.state.Snapshot != nil {
		r.Fleet = l.state.Name()
	}
	r.Round, r.Works, r.Holds = l.rounds.Load(), l.countWorks(), l.followHolds()
	r.Known = l.history.Known(l.state)
	r.Folding, l.folds = l.folds, 0
	if l.told.Snapshot != nil { // otherwise everything is a change
		r.Changes = propagate.Changes(&l.told, &l.state)
	}
	l.told = l.state
	r.Acts = l.takeActs()
	return r
}

// takeActs returns the acts since the last call.
func (l *Loop) takeActs() []Act {
	l.telling.Lock()
	defer l.telling.Unlock()
	acts := l.acts
	l.acts = nil
	return acts
}

// mostActs is how many acts are kept for the next Result, so that memory stays bounded
// if nobody takes it. The record of events has them all.
const mostActs = 1 << 16

// note keeps an act for the next Result.
func (l *Loop) note(a Act) {
	l.telling.Lock()
	defer l.telling.Unlock()
	if len(l.acts) < mostActs {
		l.acts = append(l.acts, a)
	}
}

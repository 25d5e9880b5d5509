// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"

	"github.com/fairlead/fairlead/dispatch/member"
)

// ClusterState is the state of a cluster as a whole, as far as the loop knows. Conditions,
// metrics and the page show it.
type ClusterState string

// The states, worst first. A cluster is in the first that it is in.
const (
	ClusterUnknown    ClusterState = "unknown"     // it does not answer
	ClusterFailed     ClusterState = "failed"      // it refuses something, or cannot be told
	ClusterInProgress ClusterState = "in-progress" // it is being sent what it lacks
	ClusterPending    ClusterState = "pending"     // it was never reached
	ClusterHeld       ClusterState = "held"        // it has everything but what a suspension keeps back
	ClusterCurrent    ClusterState = "current"     // it has everything
)

// ClusterStates are all of them.
func ClusterStates() []ClusterState {
	return []ClusterState{ClusterUnknown, ClusterFailed, ClusterInProgress, ClusterPending, ClusterHeld, ClusterCurrent}
}

// Done reports whether a cluster has everything that is not held.
func (s ClusterState) Done() bool { return s == ClusterCurrent || s == ClusterHeld }

// State returns the state of the member, of whose works is counted.
func (m MemberStatus) State(works Works) ClusterState {
	switch {
	case errors.Is(m.Err, member.Unreachable), errors.Is(m.Err, member.Throttled), errors.Is(m.Err, member.Withheld):
		return ClusterUnknown
	case m.Err != nil, m.Failure() != nil:
		return ClusterFailed
	case !m.Contacted && works.Total == 0 && m.Pending == 0:
		return ClusterCurrent // there is nothing to say to it
	case !m.Contacted:
		return ClusterPending
	case m.Pending > 0, len(m.Failures) > 0:
		return ClusterInProgress
	case works.Held > 0:
		return ClusterHeld
	}

	return ClusterCurrent
}

// Failure returns why the member does not have something, nil if it only waits.
func (m MemberStatus) Failure() error {
	if m.Err != nil {
		return m.Err
	}
	for _, o := range m.Failures {
		if !errors.Is(o.Err, member.Waiting) && !errors.Is(o.Err, member.Pending) {
			return o.Err
		}
	}
	return nil
}

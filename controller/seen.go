// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"sync"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/web"
)

// seen is what a loop knows of its members, for the page. No member is asked for it: the
// loop watches them. What it does not know is whether a workload is ready.
type seen struct {
	follower *follower
	loop     *reconcile.Loop

	mu   sync.Mutex
	last *web.Members
	of   int64     // the observation that it was compiled of
	at   time.Time // when that was
}

// seenEvery is how often it is compiled while members answer.
const seenEvery = 500 * time.Millisecond

// members returns what members have; nil before the first round.
func (s *seen) members() *web.Members {
	last := s.follower.last()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !last.opened {
		return nil
	}
	now := time.Now()
	if s.last != nil && (s.of == last.count || now.Sub(s.at) < seenEvery) {
		return s.last
	}

	next := membersOf(&last.result, s.loop.Acknowledged, s.follower.replica.Load() != nil)
	s.of, s.at = last.count, now
	next.At = now
	if s.last == nil || s.last.Head != next.Head || s.last.Version() != next.Version() {
		s.last = next // otherwise what was drawn of it is still good
	}
	return s.last
}

// errElsewhere is why nothing is known of a cluster of another replica.
var errElsewhere = errors.New("another replica reconciles it: its page shows what it has")

// membersOf compares what members have acknowledged with what the fleet wants. Where
// replicas share the clusters, nothing is known of those of the others.
func membersOf(r *reconcile.Result, acknowledged func(cluster string) map[object.ID]object.Digest, shared bool) *web.Members {
	m := &web.Members{Head: r.Head, Silent: map[string]string{}}
	answers := map[string]status.Answer{}
	for _, is := range r.Members {
		switch {
		case is.Err != nil:
			answers[is.Cluster] = status.Answer{Err: is.Err}
			m.Silent[is.Cluster] = is.Err.Error()
		case is.Contacted:
			answers[is.Cluster] = status.Answer{Observations: observed(&r.State, is, acknowledged(is.Cluster))}
		}
	}

	if shared && r.State.Snapshot != nil {
		for name := range r.State.Snapshot.Clusters.All() {
			if _, ours := answers[name]; !ours {
				answers[name] = status.Answer{Err: errElsewhere}
				m.Silent[name] = errElsewhere.Error()
			}
		}
	}

	m.Cells = status.Cells(&r.State, answers)
	for id, row := range m.Cells {
		for cluster, c := range row {
			if c.State == status.Failed && c.Observed == nil && answers[cluster].Err == nil && answers[cluster].Observations[id] == nil && !c.Held {
				c.State, c.Why = status.InProgress, "it is being sent"
			}
		}
	}
	return m
}

// observed is what one member has acknowledged, and what it refused.
func observed(state *propagate.State, is reconcile.MemberStatus, has map[object.ID]object.Digest) status.Observations {
	all := status.Observations{}
	for id, digest := range has {
		o := &status.Observation{Ours: true, Digest: digest.String(), Replicas: -1, Progress: interpret.Current}
		if b := state.Bindings.At(id.Key()); b != nil {
			o.Revision = revisionOf(b.Work(is.Cluster), digest)
		}
		all[id] = o
	}
	for _, failed := range is.Failures {
		if !errors.Is(failed.Err, member.Waiting) && !errors.Is(failed.Err, member.Pending) {
			all[failed.ID] = &status.Observation{Replicas: -1, Err: failed.Err}
		}
	}
	return all
}

// revisionOf returns the commit of the content with a digest, "" if neither what was
// released nor what is wanted has it.
func revisionOf(w *propagate.Work, digest object.Digest) string {
	if w == nil {
		return ""
	}
	for _, c := range []*propagate.Content{w.Released, w.Want} {
		if c != nil && (digest == c.Digest || digest == object.KeptDigest(c.Digest)) {
			return c.Revision
		}
	}
	return ""
}

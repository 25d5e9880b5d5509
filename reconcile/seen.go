// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// MembersSeen is what one process observes of its own clusters, for the one that leads.
type MembersSeen struct {
	// Commit and At are the folded commit, and the moment of the last entry of the log.
	Commit   string
	At       int64
	Clusters map[string]MemberSeen
}

// MemberSeen is what is observed of one cluster.
type MemberSeen struct {
	// Ready is "" until it has been the same for long enough.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// Works are those on which something depends, by ID.Key().
	Works map[string]WorkSeen `json:"works,omitempty"`
	// Gone are the objects, by ID.Key(), that it has confirmed to be removed, of those that
	// others wait for.
	Gone []string `json:"gone,omitempty"`
}

// WorkSeen is how a content does.
type WorkSeen struct {
	Health propagate.Health `json:"health"`
	Digest object.Digest    `json:"digest"`
}

// share says what was observed of this process's clusters, nil if nothing new was. The
// process that leads makes an entry of the log of what all have said; what that changes is
// folded by everybody, this process included, when it is in the log.
func (l *Loop) share(ctx context.Context, found *observation) error {
	if found != nil {
		if err := l.opt.Shares.Saw(ctx, l.members, l.seen(found)); err != nil {
			return fmt.Errorf("what is observed of the members cannot be told to the other replicas: %w", err)
		}
	}

	if !l.opt.Shares.Leads() {
		l.leaving = nil
		return nil
	}
	if _, at := l.state.Logged(); l.log == nil || l.log.Head != l.state.Commit || l.log.last() != at {
		return nil
	}
	all, err := l.opt.Shares.Seen(ctx)
	if err != nil {
		return fmt.Errorf("what the other replicas observe of the members cannot be read: %w", err)
	}
	o := l.observations(all)
	o.At, o.Log = max(l.moment(), l.log.last()+1), l.log.ID
	next := propagate.Observe(l.state, o)
	if next.Seen.Alike(l.state.Seen) && len(changedKeys(&l.state, &next)) == 0 {
		return nil
	}

	log := *l.log
	log.Entries = append(log.Entries[:len(log.Entries):len(log.Entries)], Entry{l.state.Commit, o})
	if err := l.writeLog(ctx, &log); err != nil {
		return err
	}
	if err := l.takeIn(); err != nil {
		return err
	}
	l.hasFolded()
	return nil
}

// seen is what this process observes of its own clusters.
func (l *Loop) seen(found *observation) MembersSeen {
	seen := MembersSeen{Commit: l.state.Commit, Clusters: map[string]MemberSeen{}}
	_, seen.At = l.state.Logged()
	ours := func(cluster string) bool {
		c := l.state.Snapshot.Clusters.At(cluster)
		return c != nil && l.owns(c)
	}
	l.forgetReady(func(cluster string) bool { return !ours(cluster) }) // another process sees it, and for how long
	on := func(cluster string, add func(m *MemberSeen)) {
		if !ours(cluster) {
			return
		}
		m := seen.Clusters[cluster]
		add(&m)
		seen.Clusters[cluster] = m
	}

	for cluster, ready := range l.steady(found.ready) {
		on(cluster, func(m *MemberSeen) { m.Ready = ready })
	}
	for p, health := range found.health {
		on(p.Cluster, func(m *MemberSeen) {
			if m.Works == nil {
				m.Works = map[string]WorkSeen{}
			}
			m.Works[p.Key()] = WorkSeen{health, found.of[p]}
		})
	}
	for _, p := range l.confirmed() {
		on(p.Cluster, func(m *MemberSeen) { m.Gone = append(m.Gone, p.Key()) })
	}
	return seen
}

// observations are what all processes have seen, without what is known. What was seen of
// another content than the one that is released says nothing of that, and neither does a
// cluster of which nobody says anything.
func (l *Loop) observations(all []MembersSeen) propagate.Observations {
	o := propagate.Observations{Ready: map[string]metav1.ConditionStatus{}, Health: map[propagate.Place]propagate.Health{}}
	members := map[string]MemberSeen{}
	where := map[string]reached{}
	for _, seen := range all {
		at := reached{-1, seen.At}
		if position, on := l.line().Position(seen.Commit); on {
			at.commit = position
		}
		for cluster, m := range seen.Clusters {
			members[cluster], where[cluster] = m, at
		}
	}

	for cluster, m := range members {
		if m.Ready != "" && m.Ready != l.state.Seen.Ready(cluster) {
			o.Ready[cluster] = m.Ready
		}
	}
	for _, p := range l.state.Watches() {
		health := propagate.UnknownHealth
		if w, ok := members[p.Cluster].Works[p.Key()]; ok && w.Digest == released(&l.state, p) {
			health = w.Health
		}
		if health != l.state.Seen.Health(p) {
			o.Health[p] = health
		}
	}
	o.Gone = l.goneSince(members, where)
	return o
}

// goneSince are the objects that are gone, of those that others wait for. An object that
// was confirmed to be gone before it had to go may have been sent again since.
func (l *Loop) goneSince(members map[string]MemberSeen, where map[string]reached) (gone []propagate.Place) {
	_, at := l.state.Logged()
	position, _ := l.line().Position(l.state.Commit)
	leaving := map[propagate.Place]reached{}
	for _, p := range l.state.Leaving() {
		since, known := l.leaving[p]
		if !known {
			since = reached{position, at}
		}
		leaving[p] = since
		for _, key := range members[p.Cluster].Gone {
			if key == p.Key() && !where[p.Cluster].before(since) {
				gone = append(gone, p)
			}
		}
	}
	l.leaving = leaving
	return gone
}

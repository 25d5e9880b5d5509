// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/dryrun"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// dispatch passes on to the dispatcher what changed since the last Sync.
func (l *Loop) dispatch() error {
	snapshot := l.state.Snapshot
	if snapshot == nil {
		return nil
	}

	found := l.resolveMembers(snapshot)
	if l.opt.Shares != nil {
		maps.DeleteFunc(l.givenUp, func(name string, _ bool) bool { return l.dispatcher.Landed(name) })
		if len(l.givenUp) > 0 {
			return errInFlight
		}
		l.opt.Shares.Keep(snapshot.Clusters, l.state.Moved, l.state.Rewritten, l.state.Accepted)
	}
	var changed map[string][]object.ID
	if l.synced.Snapshot != nil { // otherwise every member is new, and all its keys are examined
		changed = changedKeys(&l.synced, &l.state)
	}
	// With new credentials and keys what was refused may be allowed.
	all := l.renewed || l.opt.Clock.Elapsed()-l.examined >= l.opt.Reexamine
	if len(changed) == 0 && !found && !all && l.synced.Accepted == l.state.Accepted {
		return nil
	}

	state := l.state
	want := newDesired(&state)
	want.marker.Has = history.Holds(l.repo, state.Commit)
	want.source = sync.OnceValue(func() member.Source { return l.source(state.Accepted) })
	if err := l.dispatcher.Sync(want, changed, dispatch.SyncOptions{All: all, OnlyKnown: state.Refusal != nil}); err != nil {
		return err
	}

	l.opt.At("synced")
	if all {
		l.examined, l.renewed = l.opt.Clock.Elapsed(), false
	}
	l.synced = state
	return nil
}

// source returns a commit for dispatch to record; of one that cannot be read it has
// the hash.
func (l *Loop) source(commit string) member.Source {
	c, err := l.repo.Commit(commit)
	if err != nil {
		return member.Source{Commit: commit}
	}
	return member.Source{Commit: commit, Subject: c.Subject, When: c.When}
}

// resolveMembers connects to the clusters that are new or changed, and drops those that
// left. It reports whether it connected to any. A cluster that cannot be reached does
// not hold up the others.
func (l *Loop) resolveMembers(snapshot *fleet.Snapshot) (found bool) {
	refusing := l.refusing()
	again := l.takeReconnects()
	maps.Copy(refusing, again)
	l.renewed = l.renewed || len(again) > 0
	moves := l.moves()
	if len(refusing) == 0 && len(l.unreached) == 0 && l.resolvedAt == moves && l.resolvedOf.Same(snapshot.Clusters) && !l.hasReleased() {
		return false // a round without news costs the same, however many clusters there are
	}

	others := l.clustersOfOthers(snapshot)
	failed := map[string]error{}
	for name, c := range snapshot.Clusters.All() {
		if others[name] != nil || l.isConnected(c) && !refusing[name] {
			continue
		}

		switch connected, err := l.connect(c); {
		case err != nil:
			l.setUnreached(name, err)
			failed[name] = err
		case !connected:
			moves = lookAgain
		default:
			l.once(name, nil)
			found = true
		}
	}

	l.tellUnresolved(failed, snapshot.Clusters.Len())
	left := func(name string) bool {
		_, stays := snapshot.Clusters.Get(name)
		return !stays
	}
	var gone []string
	for name := range l.members {
		if left(name) {
			gone = append(gone, name)
		}
	}
	l.leave(gone)
	for _, name := range gone {
		delete(l.resolved, name)
		l.tell(Event{Severity: Info, Cluster: name, Note: "left the fleet; nothing is sent to it any more, its objects stay"})
	}

	l.forget(left)
	l.resolvedOf, l.resolvedAt = snapshot.Clusters, moves
	return found
}

// isConnected reports whether there is a way to a cluster, as it is specified now.
func (l *Loop) isConnected(c *fleet.Cluster) bool {
	known := l.members[c.Name]
	return known != nil && l.unreached[c.Name] == nil && reflect.DeepEqual(known.Spec, c.Spec)
}

// connect connects to a cluster. It reports false for one that was given up a moment ago, or
// is not this process's own any more: the next round knows which.
func (l *Loop) connect(c *fleet.Cluster) (connected bool, err error) {
	term := l.term(c)
	if term == 0 || l.members[c.Name] != nil && l.terms[c.Name] != term || !l.dispatcher.Landed(c.Name) {
		return false, nil
	}

	l.resolved[c.Name] = l.opt.Clock.Elapsed()
	m, err := l.opt.Members(c)
	if err != nil {
		return false, err
	}
	if l.opt.DryRun {
		m = dryrun.Wrap(m)
	}
	l.dispatcher.Expect(c.Name, types.UID(c.Spec.ID))
	if taken, err := l.take(c, m, term); err != nil || !taken {
		return false, err
	}
	l.setReached(c.Name, c, term)
	return true, nil
}

// lookAgain has the clusters looked at by the next round, whatever Shares.Moves is.
const lookAgain = -1

// tellUnresolved reports the clusters that there is no way to connect to. What a
// kubeconfig lacks for many is one line.
func (l *Loop) tellUnresolved(failed map[string]error, all int) {
	lines, rest := member.WithoutContext(failed, all)
	var shared error
	if len(lines) > 0 {
		shared = errors.New(strings.Join(lines, "; "))
	}
	l.once("\x00kubeconfig", shared)
	for name, err := range rest {
		l.once(name, fmt.Errorf("%s: %w", name, err))
	}
}

// changedKeys returns the objects that may need work, by cluster. Its cost follows the
// difference between the states.
func changedKeys(before, after *propagate.State) map[string][]object.ID {
	keys := map[string]map[object.ID]bool{}
	note := func(cluster string, id object.ID) {
		if keys[cluster] == nil {
			keys[cluster] = map[object.ID]bool{}
		}
		keys[cluster][id] = true
	}
	for d := range ordered.Diff(before.Bindings, after.Bindings) {
		for _, b := range []*propagate.Binding{d.Before, d.After} {
			if b == nil {
				continue
			}
			for _, w := range b.Works {
				note(w.Cluster, b.ID)
			}
		}
	}

	for d := range ordered.Diff(before.Tombstones, after.Tombstones) {
		if d.Has {
			for _, g := range d.After.Clusters {
				note(g.Cluster, d.After.ID)
			}
		}
	}

	sorted := map[string][]object.ID{}
	for cluster, ids := range keys {
		for id := range ids {
			sorted[cluster] = append(sorted[cluster], id)
		}
		slices.SortFunc(sorted[cluster], compare)
	}

	return sorted
}

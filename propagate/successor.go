// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/schedule"
)

// Make before break (decision 42): a removal in favour of other copies says which
// they are, and dispatch keeps what is there until their clusters have acknowledged
// them. Nothing here knows of acknowledgements, so the state stays a function of the
// history; what is to be acknowledged is a function of the state.

// Awaited is a content that a cluster is to acknowledge before a copy goes elsewhere.
type Awaited struct {
	Place
	// Content is nil where nothing can be acknowledged: its cluster left the fleet
	// before that, or an override blocks the work.
	Content  *Content
	Preserve bool // as of its work
}

// For says what is awaited, for the removal of an object: "us-1", or of another object
// "Deployment shop/web on us-1".
func (a Awaited) For(id object.ID) string {
	if a.ID == id {
		return a.Cluster
	}
	return a.ID.String() + " on " + a.Cluster
}

// Awaits returns what the removal of an object from a cluster waits for. A template
// that is gone waits for nothing, except for what uses it under another name by now
// (decision 35), and a taint that evicts does not wait. A successor that is held from
// the beginning will not have it, so nobody waits for it; one that was held later is
// waited for, because nobody allowed that the last copy goes.
func (s *State) Awaits(cluster string, id object.ID) []Awaited {
	return s.awaits(cluster, id, map[string]bool{})
}

func (s *State) awaits(cluster string, id object.ID, asked map[string]bool) (all []Awaited) {
	removal := s.Removal(cluster, id)
	if removal == nil || removal.Preserve || asked[id.Key()] {
		return nil
	}

	asked[id.Key()] = true
	for _, user := range removal.Users {
		if w := s.Bindings.At(user.Key()).workOn(cluster); w != nil {
			all = append(all, w.awaited(user, w.Want))
		}
	}

	// What it was required by may not have gone yet, and runs with it until then.
	for _, owner := range removal.Owners {
		all = append(all, s.awaits(cluster, owner, asked)...)
	}

	b := s.Bindings.At(id.Key())
	if b == nil || s.expels(b, cluster) {
		return all
	}
	for _, successor := range removal.Successors {
		w, inFleet := b.Work(successor), s.snapshot().Clusters.At(successor) != nil
		switch {
		case w == nil && !inFleet:
			all = append(all, Awaited{Place: Place{successor, id}})
		case w == nil, w.Held && w.Released == nil:
			// It was given up since, or it was held from the beginning.
		case w.Held, w.Blocked != "" && w.Released != nil:
			all = append(all, w.awaited(id, w.Released))
		default:
			all = append(all, w.awaited(id, w.Want))
		}
	}
	return all
}

// ownersOn are those of what was removed that ran on a cluster with it.
func (r *removals) ownersOn(cluster string, id object.ID) (owners []object.ID) {
	for owner := range r.prev.index.owners(id) {
		if r.prev.Bindings.At(owner.Key()).workOn(cluster) != nil {
			owners = append(owners, owner)
		}
	}
	slices.SortFunc(owners, func(a, b object.ID) int { return strings.Compare(a.Key(), b.Key()) })
	return owners
}

func (w *Work) awaited(id object.ID, c *Content) Awaited {
	if c == w.Want && w.Blocked != "" {
		c = nil // an override failed, so there is none
	}
	return Awaited{Place{w.Cluster, id}, c, w.Preserve}
}

// expels reports whether a cluster has a taint that evicts the binding at once.
func (s *State) expels(b *Binding, cluster string) bool {
	c := s.snapshot().Clusters.At(cluster)
	return c != nil && !b.attached() && failover{fleet: s.snapshot(), seen: s.Seen}.untolerated(b, c)
}

// succeed notes in the tombstones of a binding which clusters it gained in favour of
// those that it has lost in this step. What waited for a lost one waits for the gained
// ones instead: it still has the only copy, perhaps. Without a gain it does not, but
// for a cluster that left the fleet with the copy. b is nil for a binding that goes.
func (r *removals) succeed(old, b *Binding) {
	lost := map[string]bool{}
	for _, w := range old.Works {
		if b.workOn(w.Cluster) == nil {
			lost[w.Cluster] = true
		}
	}
	gained := b.gainedSince(old)
	if len(lost) == 0 {
		return
	}

	for _, all := range []*ordered.Map[*Tombstone]{&r.next.Tombstones, &r.next.Detached} {
		before := all.At(old.Key())
		if before == nil {
			continue
		}
		after := before
		for _, removal := range before.Clusters {
			next := r.successors(&removal, lost, gained)
			if !slices.Equal(next, removal.Successors) {
				removal.Successors = next
				after = after.with(after.ID, after.APIVersion, removal)
			}
		}
		if after != before {
			*all = all.With(old.Key(), after)
		}
	}
}

// gainedSince are the clusters that a binding goes to and did not before. One that was
// held from the beginning, and is no longer, is gained by that; so is one with a
// larger share of the replicas.
func (b *Binding) gainedSince(old *Binding) (gained []string) {
	if b == nil {
		return nil
	}
	for i := range b.Works {
		w := &b.Works[i]
		was := old.Work(w.Cluster)
		if was == nil || was.Released == nil && w.Released != nil || b.divides() && b.share(w.Cluster) > old.share(w.Cluster) {
			gained = append(gained, w.Cluster)
		}
	}
	return gained
}

func (b *Binding) divides() bool { return !b.attached() && b.Active.Policy.Placement.Divided() }

// share is how many replicas of a divided template go to a cluster.
func (b *Binding) share(cluster string) int64 {
	i, ok := slices.BinarySearchFunc(b.Targets, cluster, func(t schedule.Share, c string) int { return strings.Compare(t.Name, c) })
	if !ok {
		return 0
	}
	return b.Targets[i].Count
}

// shift notes which clusters come before one whose share of the replicas has become
// smaller: those that gained in the same step. Replicas are added first and taken away
// after. A share that shrinks while nobody gains waits for nobody.
func (b *Binding) shift(old *Binding) {
	if old == nil || !b.divides() {
		return
	}

	gained := b.gainedSince(old)
	for i := range b.Works {
		w := &b.Works[i]
		was := old.Work(w.Cluster)
		if was == nil {
			continue
		}

		after := was.After
		switch shrinks := b.share(w.Cluster) < old.share(w.Cluster); {
		case shrinks && len(gained) == 0:
			after = nil
		case shrinks:
			after = slices.Concat(after, gained)
		}
		after = slices.DeleteFunc(slices.Clone(after), func(c string) bool { return c == w.Cluster || b.Work(c) == nil })
		slices.Sort(after)
		if after = slices.Compact(after); len(after) > 0 {
			w.After = after
		}
	}
}

// AwaitsShare returns what a work waits for before it takes replicas away.
func (s *State) AwaitsShare(b *Binding, w *Work) (all []Awaited) {
	for _, c := range w.After {
		if other := b.Work(c); other != nil && !other.Held {
			all = append(all, other.awaited(b.ID, other.Want))
		}
	}
	return all
}

// successors are those of a removal after this step. gained is sorted, and shared by
// the clusters that were lost in one step.
func (r *removals) successors(removal *Removal, lost map[string]bool, gained []string) []string {
	if len(removal.Successors) == 0 && lost[removal.Cluster] {
		return gained
	}

	isLost := func(c string) bool { return lost[c] }
	next := slices.Clone(removal.Successors)
	concerned := isLost(removal.Cluster) || slices.ContainsFunc(next, isLost)
	next = slices.DeleteFunc(next, func(c string) bool {
		_, inFleet := r.next.snapshot().Clusters.Get(c)
		return isLost(c) && (inFleet || len(gained) > 0)
	})

	if concerned {
		next = append(next, gained...)
	}
	slices.Sort(next)
	next = slices.DeleteFunc(slices.Compact(next), func(c string) bool { return c == removal.Cluster })
	if len(next) == 0 {
		return nil
	}
	return next
}

// outlive notes in the tombstones of generated objects which others use them by
// another hash from this step on: the old one goes when they have been acknowledged
// with the new one on that cluster (decision 35).
func (r *removals) outlive(before, after *fleet.Snapshot) {
	r.renamed(before, after)
	for key, users := range r.users {
		tombstone := r.next.Tombstones.At(key)
		if tombstone == nil {
			continue
		}
		for _, removal := range tombstone.Clusters {
			if removal.Commit == r.commit {
				removal.Users = object.SortedIDs(users)
				tombstone = tombstone.with(tombstone.ID, tombstone.APIVersion, removal)
			}
		}
		r.next.Tombstones = r.next.Tombstones.With(key, tombstone)
	}
}

// renamed finds who refers to another hash from this step on.
func (r *removals) renamed(before, after *fleet.Snapshot) {
	made, gone := regenerated(before, after)
	if len(gone) == 0 || len(made) == 0 {
		return
	}

	for d := range ordered.Diff(before.Templates, after.Templates) {
		if !d.Had || !d.Has {
			continue
		}
		uses := fleet.Dependencies(d.After)
		for _, id := range fleet.Dependencies(d.Before) {
			if what, ok := gone[id.Key()]; !ok || len(made[what]) == 0 || slices.Contains(uses, id) {
				continue
			}
			r.usedBy(id.Key(), d.After.ID)
		}
	}
}

func (r *removals) usedBy(key string, user object.ID) {
	if r.users[key] == nil {
		r.users[key] = map[object.ID]bool{}
	}
	r.users[key][user] = true
}

// lingered notes the owners of a generated object that stayed for them, or was there
// for them alone, and goes in this step.
func (st *step) lingered(old *Binding) {
	if _, _, generated := object.CutHash(old.Name); !generated || st.next.snapshot().Templates.At(old.Key()) != nil {
		return
	}

	for owner := range st.prev.index.owners(old.ID) {
		if st.next.snapshot().Templates.At(owner.Key()) != nil {
			st.removals.usedBy(old.Key(), owner)
		}
	}
}

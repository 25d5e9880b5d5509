// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/fairlead/fairlead/object"

// removals accounts for works that are not wanted any more. It writes the
// tombstones of the state that is made, and collects what the guard counts.
type removals struct {
	prev, next *State
	commit     string
	deletions  []Deletion

	// users are of what generators do not make any more, by ID.Key(); see outlive.
	users map[string]map[object.ID]bool
}

// add accounts for the works that old had and b, nil when the binding is
// removed, has no more. A cluster in the fleet is to delete or to release them;
// one that left keeps them until it comes back (fold rule 15).
func (r *removals) add(old, b *Binding, keep bool) {
	r.addAs(old, b, func(string) bool { return keep })
}

// addAs is add with a choice for each cluster whether the copy is left running.
func (r *removals) addAs(old, b *Binding, keeps func(cluster string) bool) {
	key := old.Key()
	elsewhere, moved := gained(old, b)

	var deleted []Work
	var removed, detached []Removal
	apiVersion := ""
	for _, w := range old.Works {
		if b != nil && b.Work(w.Cluster) != nil {
			continue
		}

		keep := keeps(w.Cluster)
		if w.Released == nil {
			if keep {
				r.preserveEarlier(key, w.Cluster)
			}
			continue // it was held from the beginning: nothing new is there
		}

		removal := Removal{Cluster: w.Cluster, Preserve: keep, Commit: r.commit, Released: w.Released, Owners: r.ownersOn(w.Cluster, old.ID)}
		apiVersion = w.Released.APIVersion
		if _, inFleet := r.next.snapshot().Clusters.Get(w.Cluster); !inFleet {
			detached = append(detached, removal)
			continue
		}
		removed = append(removed, removal)
		if !keep {
			deleted = append(deleted, w)
		}
	}

	if detached != nil {
		r.next.Detached = set(r.next.Detached, key, r.next.Detached.At(key).with(old.ID, apiVersion, detached...))
	}
	if removed != nil {
		r.next.Tombstones = set(r.next.Tombstones, key, r.next.Tombstones.At(key).with(old.ID, apiVersion, removed...))
	}

	r.succeed(old, b)

	for _, w := range deleted {
		r.deletions = append(r.deletions, Deletion{Cluster: w.Cluster, ID: old.ID, Moved: moved >= len(deleted), required: old.attached(), elsewhere: elsewhere > 0})
	}
}

// gained counts the clusters that a binding has gone to in this step, and those of
// them that may have it at once: one that is held or blocked gets nothing, so it
// takes no other's place (decision 44).
func gained(old, b *Binding) (clusters, arrive int) {
	if b == nil {
		return 0, 0
	}

	for i := range b.Works {
		w := &b.Works[i]
		if old.Work(w.Cluster) != nil {
			continue
		}
		clusters++
		if w.arrives() {
			arrive++
		}
	}
	return clusters, arrive
}

// preserveEarlier leaves a copy running that was removed before, when a held work
// came since and is preserved. A member that was away still has the copy.
func (r *removals) preserveEarlier(key, cluster string) {
	tombstone := r.next.Tombstones.At(key)
	removal := tombstone.on(cluster)
	if removal == nil || removal.Preserve {
		return
	}

	kept := *removal
	kept.Preserve, kept.Commit = true, r.commit
	r.next.Tombstones = set(r.next.Tombstones, key, tombstone.with(tombstone.ID, tombstone.APIVersion, kept))
}

// keepDetached notes of a removed binding whether its copies on clusters outside
// the fleet are left running.
func (r *removals) keepDetached(key string, keep bool) {
	tombstone := r.next.Detached.At(key)
	if tombstone == nil {
		return
	}

	for _, removal := range tombstone.Clusters {
		removal.Preserve = keep
		tombstone = tombstone.with(tombstone.ID, tombstone.APIVersion, removal)
	}
	r.next.Detached = r.next.Detached.With(key, tombstone)
}

// forget drops the tombstones of what is wanted again. Where it is wanted under
// a hold the tombstone stays, since nothing is sent.
func (r *removals) forget(b *Binding) {
	key := b.Key()
	wanted := func(cluster string) bool { return b.Work(cluster) != nil }
	released := func(cluster string) bool { return wanted(cluster) && b.Work(cluster).Released != nil }

	if tombstone := r.next.Tombstones.At(key); tombstone != nil {
		r.next.Tombstones = set(r.next.Tombstones, key, tombstone.without(released))
	}
	if tombstone := r.next.Detached.At(key); tombstone != nil {
		r.next.Detached = set(r.next.Detached, key, tombstone.without(wanted))
	}
}

// reclaim settles what clusters that come back into the fleet still run: what
// is not wanted there any more is removed now.
func (r *removals) reclaim(returned map[string]bool) {
	if len(returned) == 0 {
		return
	}

	for key, tombstone := range r.next.Detached.All() {
		b := r.next.Bindings.At(key)
		for _, removal := range tombstone.Clusters {
			if !returned[removal.Cluster] || b != nil && b.Work(removal.Cluster) != nil {
				continue
			}
			switch t := r.next.snapshot().Templates.At(key); {
			case b != nil:
				removal.Preserve = b.inForce().Keeps()
			case t != nil && t.Immediate.Keeps():
				removal.Preserve = true // nobody places it, and it says so itself
			}

			removal.Commit = r.commit
			r.next.Tombstones = set(r.next.Tombstones, key, r.next.Tombstones.At(key).with(tombstone.ID, tombstone.APIVersion, removal))
			if !removal.Preserve {
				r.deletions = append(r.deletions, Deletion{Cluster: removal.Cluster, ID: tombstone.ID, required: b != nil && b.attached()})
			}
		}
		r.next.Detached = set(r.next.Detached, key, r.next.Detached.At(key).without(func(c string) bool { return returned[c] }))
	}
}

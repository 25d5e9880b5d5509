// SPDX-License-Identifier: Apache-2.0

package propagate

// depart accounts for the works that a binding had and has no more. A cluster
// in the fleet is to delete or to release them; one that left keeps them
// until it comes back (fold rule 15). keep is the brake of this step.
func (st *step) depart(old, b *Binding, keep bool) {
	st.departAs(old, b, func(string) bool { return keep })
}

// departAs is depart with a brake for each cluster.
func (st *step) departAs(old, b *Binding, keeps func(cluster string) bool) {
	key := old.Key()
	moved := gained(old, b)
	var lost []Work
	var departed, left []Gone
	apiVersion := ""
	for _, w := range old.Works {
		if b != nil && b.Work(w.Cluster) != nil {
			continue
		}
		keep := keeps(w.Cluster)
		if w.Released == nil {
			if keep {
				st.keepDeparted(key, w.Cluster)
			}
			continue // it was held from the beginning: nothing new is there
		}
		gone := Gone{Cluster: w.Cluster, Preserve: keep, Commit: st.commit.Hash, Released: w.Released}
		apiVersion = w.Released.APIVersion
		if _, inFleet := st.next.Snapshot.Clusters.Get(w.Cluster); !inFleet {
			left = append(left, gone)
			continue
		}
		departed = append(departed, gone)
		if !keep {
			lost = append(lost, w)
		}
	}
	if left != nil {
		st.next.Left = set(st.next.Left, key, st.next.Left.At(key).with(old.ID, apiVersion, left...))
	}
	if departed != nil {
		st.next.Departed = set(st.next.Departed, key, st.next.Departed.At(key).with(old.ID, apiVersion, departed...))
	}
	for _, w := range lost {
		st.deletions = append(st.deletions, Deletion{Cluster: w.Cluster, ID: old.ID, Moved: moved >= len(lost)})
	}
}

// gained counts the clusters that a binding has gone to in this step.
func gained(old, b *Binding) int {
	n := 0
	if b != nil {
		for _, w := range b.Works {
			if old.Work(w.Cluster) == nil {
				n++
			}
		}
	}
	return n
}

// keepDeparted has a copy that departed before, and that a held work came for
// since, preserved as that work says. A member that was away has it still.
func (st *step) keepDeparted(key, cluster string) {
	a := st.next.Departed.At(key)
	g := a.on(cluster)
	if g == nil || g.Preserve {
		return
	}
	kept := *g
	kept.Preserve, kept.Commit = true, st.commit.Hash
	st.next.Departed = set(st.next.Departed, key, a.with(a.ID, a.APIVersion, kept))
}

// arrive drops what was noted about objects that are wanted again. What
// departed and is wanted under a hold has departed still, since nothing is sent.
func (st *step) arrive(b *Binding) {
	key := b.Key()
	wanted := func(cluster string) bool { return b.Work(cluster) != nil }
	released := func(cluster string) bool { return wanted(cluster) && b.Work(cluster).Released != nil }
	if a := st.next.Departed.At(key); a != nil {
		st.next.Departed = set(st.next.Departed, key, a.without(released))
	}
	if a := st.next.Left.At(key); a != nil {
		st.next.Left = set(st.next.Left, key, a.without(wanted))
	}
}

// reclaim settles what clusters that come back into the fleet still run: what
// is not wanted there any more departs now.
func (st *step) reclaim(returned map[string]bool) {
	for key, a := range st.next.Left.All() {
		b := st.next.Bindings.At(key)
		for _, g := range a.Clusters {
			if !returned[g.Cluster] || b != nil && b.Work(g.Cluster) != nil {
				continue
			}
			if b != nil {
				g.Preserve = b.Brakes.Keeps()
			}
			g.Commit = st.commit.Hash
			st.next.Departed = set(st.next.Departed, key, st.next.Departed.At(key).with(a.ID, a.APIVersion, g))
			if !g.Preserve {
				st.deletions = append(st.deletions, Deletion{Cluster: g.Cluster, ID: a.ID})
			}
		}
		st.next.Left = set(st.next.Left, key, st.next.Left.At(key).without(func(c string) bool { return returned[c] }))
	}
}

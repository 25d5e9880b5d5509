// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// A commit that moves a cluster to another shard is not folded by both holders at once. The
// new one writes nothing to the cluster before the Lease of the former shard says that a
// commit was sent that is not older: its holder, whoever it is by then, has drained the
// cluster before it says so, and nobody takes that shard who has not folded it.
//
// What a branch said before it was rewritten nobody knows who has folded only the new one. So
// nothing is written to any cluster before the Leases of all shards say that the commit is
// folded that allows the rewrite.

// Keep is told which clusters there are, which shards they were in before, and as of which
// commit that is. rewritten is the last commit that allows that the branch was rewritten.
func (r *Replica) Keep(all ordered.Map[*fleet.Cluster], moved propagate.Moved, rewritten, accepted string) {
	r.mu.Lock()
	same := r.kept.Same(all) && r.keptFor == r.opened
	r.kept, r.keptFor, r.moved, r.rewritten = all, r.opened, moved, rewritten
	r.mu.Unlock()
	if !same {
		r.claims.Keep(&clusters{all})
	}
	r.announce(accepted)
}

// announce puts the accepted commit into the Leases of the shards that are held here and that
// clusters have left, or the branch was rewritten, if nothing as new was sent there.
func (r *Replica) announce(accepted string) {
	r.mu.Lock()
	shards, owned, moved, rewritten := r.shards, maps.Clone(r.owned), r.moved, r.rewritten
	r.mu.Unlock()

	due := map[int]bool{}
	for cluster, from := range moved {
		for annotation, commit := range from {
			if shard := shardIn(cluster, annotation, shards); owned[shard] != 0 && !r.reached(shard, commit) {
				due[shard] = true
			}
		}
	}
	for shard := range owned {
		if rewritten != "" && !r.reached(shard, rewritten) {
			due[shard] = true
		}
	}
	for _, shard := range slices.Sorted(maps.Keys(due)) {
		r.runner.Advance(shard, position(accepted, r.at.Load()))
	}
}

// mayWrite is the error for a cluster that another replica may still write to, because it has
// not said that it knows the commit that takes the cluster away from it, or has written to since
// it was connected to: its shard was this replica's for another term by then.
func (r *Replica) mayWrite(cluster string, in, term int) error {
	r.mu.Lock()
	shards, from, rewritten, now := r.shards, r.moved[cluster], r.rewritten, r.owned[in]
	r.mu.Unlock()
	if now != term {
		return fmt.Errorf("shard %02d was given up since the cluster was connected to: it is connected to again first", in)
	}
	for annotation, commit := range from {
		if shard := shardIn(cluster, annotation, shards); shard != in && !r.reached(shard, commit) {
			return fmt.Errorf("commit %.7s took it out of shard %02d: waiting until the Lease of that shard says that its holder has folded it", commit, shard)
		}
	}

	for shard := 0; rewritten != "" && shard < shards; shard++ {
		if !r.reached(shard, rewritten) {
			return fmt.Errorf("commit %.7s allows that the branch was rewritten: waiting until the Lease of shard %02d says that its holder has folded it", rewritten, shard)
		}
	}
	return nil
}

// reached reports whether the Lease of a shard says that a commit is folded. Once it is, it
// always is: so a commit that is long ago is looked for once.
func (r *Replica) reached(shard int, commit string) bool {
	key := announced{shard, commit}
	r.mu.Lock()
	known := r.announced[key]
	r.mu.Unlock()
	if known || !r.runner.Reached(shard, commit) {
		return known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announced[key] = true
	return true
}

// announced is a commit that the Lease of a shard says is folded.
type announced struct {
	shard  int
	commit string
}

// shardIn is the shard of a cluster with an annotation. One that names none is that of its
// name: so the cluster was connected to by nobody.
func shardIn(cluster, annotation string, shards int) int {
	shard, err := lease.ShardOf(cluster, annotation, shards)
	if err != nil {
		shard, _ = lease.ShardOf(cluster, "", shards)
	}
	return shard
}

// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// Claim reports whether another name has a cluster, in whichever replica: see
// claims.Registry.Claim.
func (r *Replica) Claim(ctx context.Context, cluster string, uid types.UID) (recorded types.UID, other string, err error) {
	return r.claims.Claim(ctx, cluster, uid)
}

// holds reports whether a shard may be written to now.
func (r *Replica) holds(shard, shards int) bool {
	r.mu.Lock()
	owned := r.shards == shards && r.owned[shard] != 0
	r.mu.Unlock()
	return owned && r.runner.Gate(shard).Open(r.runner.Now()) == nil
}

// clusters are those of git, as the claims ask for them.
type clusters struct{ ordered.Map[*fleet.Cluster] }

// Cluster is a claims.Clusters.
func (c *clusters) Cluster(name string, shards int) (shard int, id types.UID, ok bool) {
	of, ok := c.Get(name)
	if !ok {
		return 0, "", false
	}
	shard, _ = ShardOf(of, shards) // one whose annotation names none is not connected to
	return shard, types.UID(of.Spec.ID), true
}

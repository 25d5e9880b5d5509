// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
)

// Assign says which replica should have each shard: the index of a pod for every
// shard. It is rendezvous hashing with room for as many shards as an even share
// asks for, so it depends on the names alone and a replica more or less moves little
// more than its own share.
//
// The pairs of shard and pod are taken by falling score. A pod has room for its
// share rounded down, and as many pods as there are shards left over for one more.
func Assign(shards int, pods []string) []int {
	if len(pods) == 0 {
		return nil
	}

	type pair struct {
		score      uint64
		shard, pod int
	}
	pairs := make([]pair, 0, shards*len(pods))
	for s := range shards {
		for p, pod := range pods {
			pairs = append(pairs, pair{score(strconv.Itoa(s), pod), s, p})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.shard, b.shard), cmp.Compare(pods[a.pod], pods[b.pod]))
	})

	assigned := make([]int, shards)
	for s := range assigned {
		assigned[s] = -1
	}
	share, more := shards/len(pods), shards%len(pods)
	has := make([]int, len(pods))
	for _, c := range pairs {
		if assigned[c.shard] >= 0 || has[c.pod] > share || has[c.pod] == share && more == 0 {
			continue
		}
		if has[c.pod] == share {
			more--
		}
		assigned[c.shard] = c.pod
		has[c.pod]++
	}
	return assigned
}

// score is how much a pod is wanted for a Lease: shard number or "leader".
func score(what, pod string) uint64 {
	var space [128]byte
	sum := sha256.Sum256(append(append(append(space[:0], what...), '|'), pod...))
	return binary.BigEndian.Uint64(sum[:8])
}

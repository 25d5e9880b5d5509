// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
)

// ShardOf is the shard of a cluster, of as many as there are: what git says by hand, such
// as "07", or else what the name of the cluster hashes to. It depends on git alone, so
// every replica says the same.
func ShardOf(cluster, override string, shards int) (int, error) {
	if shards < 1 {
		return 0, fmt.Errorf("%d shards: there must be at least one", shards)
	}

	if override == "" {
		sum := sha256.Sum256([]byte(cluster))
		return int(binary.BigEndian.Uint64(sum[:8]) % uint64(shards)), nil
	}

	shard, err := strconv.ParseUint(override, 10, 31)
	if err != nil || shard >= uint64(shards) {
		return 0, fmt.Errorf("%q is not a shard: use a number from 0 to %d", override, shards-1)
	}
	return int(shard), nil
}

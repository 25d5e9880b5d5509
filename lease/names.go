// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is what a DNS label and the value of a label of Kubernetes may have.
const maxName = 63

// ShardName is the name of the Lease of a shard: fairlead-acme-shard-07-of-32.
func ShardName(fleet string, shard, shards int) string {
	return label(fmt.Sprintf("fairlead-%s-shard-%02d-of-%d", fleet, shard, shards))
}

// ReplicaName is the name of the Lease by which a replica says that it lives.
func ReplicaName(fleet, pod string) string { return label("fairlead-" + fleet + "-replica-" + pod) }

// LeaderName is the name of the Lease of the replica that does what only one does.
func LeaderName(fleet string) string { return label("fairlead-" + fleet + "-leader") }

// MembersName is the name of the ConfigMap that says which members the clusters of a shard
// are: fairlead-acme-members-07-of-32.
func MembersName(fleet string, shard, shards int) string {
	return label(fmt.Sprintf("fairlead-%s-members-%02d-of-%d", fleet, shard, shards))
}

// ObservedName is the name of the ConfigMap with the log of what was observed of members.
func ObservedName(fleet string) string { return label("fairlead-" + fleet + "-observed") }

// SeenName is the name of the ConfigMap with what the holder of a shard observes of its
// clusters: fairlead-acme-seen-07-of-32.
func SeenName(fleet string, shard, shards int) string {
	return label(fmt.Sprintf("fairlead-%s-seen-%02d-of-%d", fleet, shard, shards))
}

// FleetLabel is the value of the label fairlead.dev/fleet on the Leases of a fleet.
func FleetLabel(fleet string) string { return label(fleet) }

// label is a name as it is, if it is a DNS label. Otherwise it is made one, and a
// hash of the whole name keeps apart what would be the same.
func label(name string) string {
	if isLabel(name) {
		return name
	}

	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:4])
	clean := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		if isLetter(r) {
			return r
		}
		return '-'
	}, name)
	if most := maxName - len(hash) - 1; len(clean) > most {
		clean = clean[:most]
	}
	if clean = strings.Trim(clean, "-"); clean == "" {
		return hash
	}
	return clean + "-" + hash
}

func isLabel(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !isLetter(r) && r != '-' })
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

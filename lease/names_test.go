// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 80)
	for name, want := range map[string]string{
		ShardName("acme", 7, 32):          "fairlead-acme-shard-07-of-32",
		ShardName("acme", 107, 128):       "fairlead-acme-shard-107-of-128",
		ReplicaName("acme", "fairlead-2"): "fairlead-acme-replica-fairlead-2",
		LeaderName("acme"):                "fairlead-acme-leader",
		FleetLabel("acme"):                "acme",
		FleetLabel("team/acme"):           "team-acme-809b57e5",
		ReplicaName("acme", "Node.A"):     "fairlead-acme-replica-node-a-ce6a48b4",
		ShardName(long, 7, 32):            "fairlead-" + strings.Repeat("a", 45) + "-db71d8c9",
		FleetLabel("é"):                   "4a99557e",
	} {
		if name != want {
			t.Errorf("%s, not %s", name, want)
		}
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

func TestNamesStayApart(t *testing.T) {
	long := strings.Repeat("a", 80)
	seen := map[string]bool{}
	for _, fleet := range []string{"a-b", "a.b", "a/b", "A-b", long, long + "b"} {
		for shard := range 3 {
			name := ShardName(fleet, shard, 32)
			if seen[name] {
				t.Errorf("%s twice", name)
			}
			seen[name] = true
		}
	}
}

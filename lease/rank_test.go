// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"slices"
	"testing"
)

func podNames(n int) []string {
	pods := make([]string, n)
	for i := range pods {
		pods[i] = fmt.Sprintf("fairlead-%d", i)
	}
	return pods
}

func TestAssignIsEven(t *testing.T) {
	for replicas := 2; replicas <= 20; replicas++ {
		for shards := 32; shards <= 256; shards += 7 {
			has := make([]int, replicas)
			for _, pod := range Assign(shards, podNames(replicas)) {
				has[pod]++
			}

			least, most := slices.Min(has), slices.Max(has)
			if limit := (11*shards + 10*replicas - 1) / (10 * replicas); most > limit {
				t.Fatalf("%d shards on %d replicas: one has %d, at most %d", shards, replicas, most, limit)
			}
			if most-least > 1 {
				t.Fatalf("%d shards on %d replicas: %v", shards, replicas, has)
			}
			if shards >= 4*replicas && 4*most > 5*least {
				t.Fatalf("%d shards on %d replicas: %d to %d is more than 1.25", shards, replicas, most, least)
			}
		}
	}
}

func TestAssignMovesLittle(t *testing.T) {
	worst, worstShards := 0.0, 0
	for shards := 32; shards <= 256; shards++ {
		before, after := Assign(shards, podNames(3)), Assign(shards, podNames(4))
		moved := 0
		for s := range before {
			if before[s] != after[s] {
				moved++
			}
		}
		if part := float64(moved) / float64(shards); part > worst {
			worst, worstShards = part, shards
		}
	}
	t.Logf("at most %.1f %% move, of %d shards", 100*worst, worstShards)
	if worst > 0.35 {
		t.Errorf("of %d shards %.1f %% move when a fourth replica comes", worstShards, 100*worst)
	}
}

// A replica that counts its pods in another order assigns the same.
func TestAssignKnowsNoOrder(t *testing.T) {
	pods := podNames(5)
	backwards := slices.Clone(pods)
	slices.Reverse(backwards)
	forth, back := Assign(64, pods), Assign(64, backwards)
	for s := range forth {
		if pods[forth[s]] != backwards[back[s]] {
			t.Fatalf("shard %d: %s or %s", s, pods[forth[s]], backwards[back[s]])
		}
	}
}

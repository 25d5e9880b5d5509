// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/schedule"
)

// TestMovedLaw: which commit took a cluster out of a shard last is what the whole history says,
// whatever is in between, and after a restart.
func TestMovedLaw(t *testing.T) {
	names, shards := []string{"eu-1", "eu-2"}, []string{"", "01", "02", "03"}
	moves := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var history []map[string]string // the annotations of each commit
		var s propagate.State
		is := map[string]string{}
		for n := range 2 + r.IntN(12) {
			is = maps.Clone(is)
			name := names[r.IntN(len(names))]
			if r.IntN(4) == 0 {
				delete(is, name)
			} else {
				is[name] = shards[r.IntN(len(shards))]
			}
			c := propagate.Commit{Hash: fmt.Sprintf("c%d", n)}
			if r.IntN(6) == 0 {
				c.Problems = []fleet.Problem{{Message: "broken"}}
				is = map[string]string{}
				if len(history) > 0 {
					is = history[len(history)-1] // it contributes nothing
				}
			} else {
				c.Snapshot = withShards(is)
			}
			history = append(history, is)
			s = propagate.Step(s, c)

			want := movedIn(history)
			moves += len(want)
			if len(s.Moved)+len(want) > 0 && !reflect.DeepEqual(s.Moved, want) {
				t.Fatalf("seed %d, after %v: %v, not %v", seed, history, s.Moved, want)
			}
			if r.IntN(3) == 0 && s.Snapshot != nil {
				restored, err := s.Save().Restore(map[string]*fleet.Snapshot{s.Accepted: s.Snapshot})
				if err != nil {
					t.Fatal(err)
				}
				s = restored
			}
		}
	}
	if moves < 1000 {
		t.Errorf("only %d moves", moves)
	}
}

func withShards(of map[string]string) *fleet.Snapshot {
	s := &fleet.Snapshot{}
	all := map[string]*fleet.Cluster{}
	for name, shard := range of {
		c := &clusterv1alpha1.Cluster{}
		c.Name, c.Annotations = name, map[string]string{propagate.AnnotationShard: shard}
		all[name] = &fleet.Cluster{Cluster: c, Candidate: &schedule.Cluster{}}
	}
	s.Clusters = ordered.Of(all)
	return s
}

// movedIn is what a history says: of each shard that a cluster was in and is not in, the last
// commit in which it was not, after one in which it was.
func movedIn(history []map[string]string) propagate.Moved {
	moved := propagate.Moved{}
	last := history[len(history)-1]
	for n := 1; n < len(history); n++ {
		for name, was := range history[n-1] {
			if is, ok := history[n][name]; ok && is == was {
				continue
			}
			if now, ok := last[name]; ok && now == was {
				continue
			}
			if moved[name] == nil {
				moved[name] = map[string]string{}
			}
			moved[name][was] = fmt.Sprintf("c%d", n)
		}
	}
	return moved
}

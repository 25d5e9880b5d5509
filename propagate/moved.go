// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// AnnotationShard of a Cluster document puts the cluster into a shard by hand. Without it the
// shard is that of the name.
const AnnotationShard = "fairlead.dev/shard"

// Moved are the shards that clusters were in and are not in any more, and which commit took
// each of them out last: by cluster, and by the value of the annotation, "" without one. A
// cluster whose document was removed is in none. It is a function of the branch alone: of a
// cluster that was never moved or removed there is nothing.
type Moved map[string]map[string]string

// move notes which clusters a commit takes out of their shards.
func (st *step) move(commit string) {
	var next Moved
	note := func(cluster string) map[string]string {
		if next == nil {
			next = maps.Clone(st.prev.Moved)
		}
		if next == nil {
			next = Moved{}
		}
		next[cluster] = maps.Clone(next[cluster])
		if next[cluster] == nil {
			next[cluster] = map[string]string{}
		}
		return next[cluster]
	}

	for d := range ordered.Diff(st.prev.snapshot().Clusters, st.next.snapshot().Clusters) {
		before, was := shardOf(d.Before)
		after, is := shardOf(d.After)
		if was && (!is || before != after) {
			note(d.Key)[before] = commit
		}
		if _, left := st.next.Moved[d.Key][after]; is && left {
			delete(note(d.Key), after)
		}
		if next != nil && len(next[d.Key]) == 0 {
			delete(next, d.Key)
		}
	}
	if next != nil {
		st.next.Moved = next
	}
}

// shardOf is the annotation of a cluster; false if there is none of the name.
func shardOf(c *fleet.Cluster) (string, bool) {
	if c == nil {
		return "", false
	}
	return c.Annotations[AnnotationShard], true
}

// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"hash/fnv"

	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// mostEarlier is how many states before the last one are remembered, to know what a
// cluster runs that is behind. They share what is alike.
const mostEarlier = 32

// positions are what clusters run that is not what was released to them.
type positions struct {
	reported *plan.Reported
	digest   uint64 // equal for equal ones
}

// running compares what clusters have acknowledged with what was released to them. Content
// that no remembered state has released is left out: what git says is assumed then.
func running(loop Loop, seen *sight, earlier []propagate.State) positions {
	p := positions{reported: plan.NewReported(seen.state.Commit)}
	sum := fnv.New64a()
	acknowledged := map[string]map[object.ID]object.Digest{}
	for b := range seen.state.Bindings.Values() {
		for i := range b.Works {
			w := &b.Works[i]
			if acknowledged[w.Cluster] == nil {
				acknowledged[w.Cluster] = loop.Acknowledged(w.Cluster)
			}
			has := acknowledged[w.Cluster][b.ID]
			if has == (object.Digest{}) || w.Released == nil || isDigest(has, w.Released) {
				continue
			}
			if content := releasedOnce(earlier, b.Key(), w.Cluster, has); content != nil {
				p.reported.Runs(b.ID, w.Cluster, content)
				fmt.Fprintf(sum, "%s\x00%s\x00%s\n", b.ID, w.Cluster, content.Revision)
			}
		}
	}
	p.digest = sum.Sum64()
	return p
}

// releasedOnce returns the content with a digest that a cluster was to run, nil if no state
// has it; the newest one first.
func releasedOnce(earlier []propagate.State, key, cluster string, digest object.Digest) *propagate.Content {
	for i := len(earlier) - 1; i >= 0; i-- {
		b := earlier[i].Bindings.At(key)
		if b == nil {
			continue
		}
		if w := b.Work(cluster); w != nil && w.Released != nil && isDigest(digest, w.Released) {
			return w.Released
		}
	}
	return nil
}

// isDigest reports whether an acknowledged digest is that of a content, which a pull
// cluster may have with a mark that keeps it from pruning.
func isDigest(has object.Digest, c *propagate.Content) bool {
	return has == c.Digest || has == object.KeptDigest(c.Digest)
}

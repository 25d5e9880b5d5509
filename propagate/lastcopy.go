// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// maxNamed is how many clusters a reason names.
const maxNamed = 5

// lastCopies gives a reason for each template that stays in git and loses its
// last copy (decision 34): a placement or a label is more likely misspelt than
// meant to stop a workload everywhere. A Job that moves has run, or will run
// elsewhere; what only owners placed goes with them; what is scaled to nothing runs
// nowhere anyway.
func (g *Guard) lastCopies(next *State) {
	lost := map[string][]string{} // clusters, by ID.Key()
	var keys []string
	for _, d := range g.Deletions {
		key := d.Key()
		if d.required || d.elsewhere && d.GroupKind() == fleet.Job || next.runsSomewhere(key) || next.Bindings.At(key).isIdle() {
			continue
		}
		if _, stays := next.snapshot().Templates.Get(key); !stays {
			continue
		}
		if lost[key] == nil {
			keys = append(keys, key)
		}
		lost[key] = append(lost[key], d.Cluster)
	}

	for _, key := range keys {
		t := next.snapshot().Templates.At(key)
		g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes the last copy of %s (%s), on %s, though the template stays in git", t.ID, t.Origin, someOf(lost[key])))
	}
}

// runsSomewhere reports whether a cluster may run a copy of a template.
func (s *State) runsSomewhere(key string) bool {
	b := s.Bindings.At(key)
	return b != nil && slices.ContainsFunc(b.Works, func(w Work) bool { return w.Released != nil })
}

// isIdle reports whether a workload is meant to run no replicas: then a division
// gives it no cluster, and nothing stops.
func (b *Binding) isIdle() bool {
	if b == nil {
		return false
	}
	wanted, workload := b.replicas()
	return workload && wanted == 0
}

// someOf names the first of many clusters.
func someOf(clusters []string) string {
	if more := len(clusters) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(clusters[:maxNamed], ", "), more)
	}
	return strings.Join(clusters, ", ")
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// generated is what a generator of a unit makes: everything about the object but
// its content, of which the hash in its name is made.
type generated struct {
	unit string
	object.ID
}

func generatedBy(t *fleet.Template) (generated, bool) {
	base, _, ok := object.CutHash(t.Name)
	id := t.ID
	id.Name = base
	return generated{t.Unit, id}, ok
}

// regenerated are what the generators make under a hash that they did not use
// before, and what they do not make any more, by ID.Key().
func regenerated(before, after *fleet.Snapshot) (made map[generated][]string, gone map[string]generated) {
	made, gone = map[generated][]string{}, map[string]generated{}
	for d := range ordered.Diff(before.Templates, after.Templates) {
		switch {
		case !d.Had:
			if what, ok := generatedBy(d.After); ok {
				made[what] = append(made[what], d.Key)
			}
		case !d.Has:
			if what, ok := generatedBy(d.Before); ok {
				gone[d.Key] = what
			}
		}
	}
	return made, gone
}

// replaced marks as moved what a generator renders under another hash now
// (decision 35), where the cluster may have the new object.
func (g *Guard) replaced(prev, next *State) {
	made, gone := regenerated(prev.snapshot(), next.snapshot())
	for i := range g.Deletions {
		d := &g.Deletions[i]
		what, ok := gone[d.Key()]
		if !ok {
			continue
		}
		for _, key := range made[what] {
			if w := next.Bindings.At(key).workOn(d.Cluster); w.arrives() {
				d.Moved = true
			}
		}
	}
}

// arrives reports whether nothing that git says keeps a work from its cluster.
func (w *Work) arrives() bool { return w != nil && !w.Held && w.Blocked == "" }

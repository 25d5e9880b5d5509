// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
)

// freezes reports whether fairlead.yaml contains errors to their units (fold
// rule 3).
func (u *unit) freezes() bool {
	return u != nil && slices.ContainsFunc(u.items, func(it *item) bool {
		s, _ := it.document.Value.(*fleet.Settings)
		return s.Freezes()
	})
}

// Frozen reports whether a broken unit in the tree keeps its last good content.
func (b *Build) Frozen() bool { return len(b.frozen) > 0 }

// freeze gives broken units their last good content, or refuses the tree for
// them.
func (n *next) freeze() {
	for _, u := range n.broken {
		if !n.freezes {
			n.wrong(u.broken...)
			n.more += u.more
		} else {
			u.keep(n.lastGood(u))
		}
	}

	if n.freezes {
		return
	}

	for name := range n.prev.frozen {
		if !n.done(name) {
			n.wrong(n.prev.units.At(name).broken...)
			n.more += n.prev.units.At(name).more
		}
	}
}

// lastGood has the last good content of a unit that is broken now; nil if there is none.
func (n *next) lastGood(u *unit) *unit {
	if before := n.prev.units.At(u.path); before != nil && before.root == u.root {
		return before
	}

	tree := n.earlier[u.path]
	if tree == nil || stateOf(tree, u.path) == absent || (stateOf(tree, u.path) == directory) != u.root {
		return nil
	}

	before, invalid := render(tree, u.path, u.root, n.kinds)
	n.wrong(append(before.broken, invalid...)...)
	return before
}

// keep gives a broken unit the content of an earlier one, if there is any.
func (u *unit) keep(before *unit) {
	switch {
	case before == nil:
	case before.broken != nil:
		u.items, u.kept = before.items, before.kept
	default:
		u.items, u.kept = before.items, before.size
	}
}

// used is what a kustomization that cannot be parsed used when it last could.
func (n *next) used(dir string) (uses []string, known bool) {
	if n.prev.layout != nil {
		uses, known = n.prev.layout.uses[dir]
		return uses, known
	}

	tree := n.earlier[unparsedFile(dir)]
	if tree == nil {
		return nil, false
	}

	uses, known, wrong := usesOf(tree, dir)
	return uses, known && wrong == nil
}

// frozen are the broken units of the new build.
func (n *next) frozen() map[string]bool {
	if len(n.broken) == 0 && len(n.prev.frozen) == 0 {
		return nil
	}

	frozen := map[string]bool{}
	for name := range n.prev.frozen {
		frozen[name] = !n.done(name)
	}
	for _, u := range n.broken {
		frozen[u.path] = true
	}

	maps.DeleteFunc(frozen, func(_ string, is bool) bool { return !is })
	return frozen
}

// frozenAt says which broken unit one of the places belongs to; "" if none. Its
// files may no longer show the document there.
func (n *next) frozenAt(places ...fleet.Origin) string {
	for _, name := range slices.Sorted(maps.Keys(n.frozen())) {
		u := n.replaced[name]
		if u == nil {
			u = n.prev.units.At(name)
		}

		for _, it := range u.items {
			if it.document.Value != nil && slices.Contains(places, it.document.Origin()) {
				return fmt.Sprintf(" (in %s, before it was broken)", name)
			}
		}
	}

	return ""
}

// unparsedFiles lists the kustomizations that cannot be parsed.
func (l *layout) unparsedFiles() (files []string) {
	for _, dir := range slices.Sorted(maps.Keys(l.unparsed)) {
		files = append(files, unparsedFile(dir))
	}
	return files
}

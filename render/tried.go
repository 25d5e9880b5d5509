// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"sync"

	"github.com/fairlead/fairlead/fleet"
)

// tried are the good units of the last tree. One that follows on the same accepted
// tree, because the last one was refused or awaits confirmation, has all that changed
// since, and would render all of that again.
type tried struct {
	mu    sync.Mutex
	on    *Build // the accepted tree
	units map[string]*unit
}

// replace keeps the good units of a tree.
func (t *tried) replace(n *next) {
	good := map[string]*unit{}
	if !n.tooMuch() { // else not all of them were rendered
		maps.Copy(good, n.replaced)
		maps.DeleteFunc(good, func(_ string, u *unit) bool { return !n.good(u) })
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.units = n.prev, good
}

// add keeps the good units of one more tree on top of an accepted one.
func (t *tried) add(on *Build, n *next) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on != on {
		return
	}
	for name, u := range n.replaced {
		if n.good(u) {
			t.units[name] = u
		}
	}
}

func (n *next) good(u *unit) bool {
	return u != nil && u.broken == nil && len(n.invalid[u.path]) == 0
}

// unit is a unit of the last tree if everything it read is unchanged, or nil.
func (t *tried) unit(n *next, name string, root bool) *unit {
	t.mu.Lock()
	var u *unit
	if t.on == n.prev {
		u = t.units[name]
	}
	t.mu.Unlock()
	if u == nil || u.root != root || !u.current(n.fsys) {
		return nil
	}
	return u
}

// render renders a unit, unless the last tree, or the build of another Renderer, has the
// same.
func (n *next) render(name string, root bool) {
	if u := n.tried.unit(n, name, root); u != nil {
		n.replaced[name] = u
		return
	}
	if u := n.alike.current(n.fsys, name); u != nil && u.root == root {
		n.replaced[name] = u
		return
	}
	n.put(n.renderUnit(name, root))
}

// put stores a rendered unit. invalid are problems that refuse the tree.
func (n *next) put(u *unit, invalid []fleet.Problem) {
	n.renders++
	n.wrong(invalid...)
	if u.broken != nil {
		n.broken = append(n.broken, u)
	}
	if len(invalid) > 0 {
		n.invalid[u.path] = invalid
	}
	n.replaced[u.path] = u
}

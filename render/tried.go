// SPDX-License-Identifier: Apache-2.0

package render

import (
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
	for name, u := range n.replaced {
		if u != nil && u.broken == nil && !n.invalid[name] {
			good[name] = u
		}
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.units = n.prev, good
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

// render renders a unit, unless the last tree had the same.
func (n *next) render(name string, root bool) {
	if u := n.tried.unit(n, name, root); u != nil {
		n.replaced[name] = u
		return
	}
	u, invalid := render(n.fsys, name, root, n.kinds)
	n.put(u, invalid)
}

// put stores a rendered unit. invalid are problems that refuse the tree.
func (n *next) put(u *unit, invalid []fleet.Problem) {
	n.renders++
	n.problems = append(n.problems, invalid...)
	if u.broken != nil {
		n.broken = append(n.broken, u)
	}
	if len(invalid) > 0 {
		n.invalid[u.path] = true
	}
	n.replaced[u.path] = u
}

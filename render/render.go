// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// Renderer renders trees, one after another. It is safe for concurrent use.
type Renderer struct {
	kinds fleet.Kinds

	mu    sync.Mutex
	last  *Build // its units are reused if their reads are unchanged
	tried tried
}

// New returns a Renderer that has not rendered anything yet.
func New() *Renderer { return NewWith(fleet.Known()) }

// NewWith is New for other kinds of documents.
func NewWith(kinds fleet.Kinds) *Renderer { return &Renderer{kinds: kinds} }

// Build is a rendered tree. It is immutable once it is made.
type Build struct {
	Snapshot *fleet.Snapshot
	Renders  int // number of units that had to be rendered

	layout *layout
	units  ordered.Map[*unit] // by path
	// readers are the kustomizations that read a path, or found a directory there;
	// seekers those that looked for one in vain.
	readers, seekers ordered.Map[*readers]
	scopes           ordered.Map[*scopeCount] // of the kinds that the tree defines
	frozen           map[string]bool          // broken units
}

// readers are paths of units, sorted.
type readers struct{ units []string }

// scopeCount counts the definitions of a kind by scope. There should be one. If
// two differ, the namespaced one wins, whatever the order.
type scopeCount struct{ namespaced, cluster int }

// Render renders a whole tree from scratch. The error is Problems. Units of
// this Renderer's last build are reused if everything they read is unchanged.
func (r *Renderer) Render(fsys fs.FS) (*Build, error) { return r.Restore(fsys, nil) }

// Restore renders a whole tree that Next rendered before. earlier maps each
// frozen unit or kustomization (see propagate.State) to the tree that holds its
// last good content.
func (r *Renderer) Restore(fsys fs.FS, earlier map[string]fs.FS) (*Build, error) {
	w := walk(fsys)
	if len(w.problems) > 0 {
		return nil, sorted(w.problems)
	}

	r.mu.Lock()
	last := r.last
	r.mu.Unlock()

	n := &next{kinds: r.kinds, tried: &r.tried, fsys: fsys, prev: &Build{Snapshot: &fleet.Snapshot{}}, earlier: earlier, replaced: map[string]*unit{}, invalid: map[string]bool{}}
	reuse := func(name string) bool {
		if n.done(name) {
			return true
		}
		if last == nil {
			return false
		}

		u := last.units.At(name)
		if u == nil || u.broken != nil || !u.current(fsys) {
			return false
		}

		n.replaced[name] = u
		return true
	}

	if slices.Contains(w.files, settingsFile) && !reuse(settingsFile) {
		n.render(settingsFile, false)
	}

	n.freezes = n.replaced[settingsFile].freezes()
	n.resolveLayout(w)
	n.renderFiles(slices.DeleteFunc(w.files, reuse))

	for _, root := range slices.Sorted(maps.Keys(n.layout.roots)) {
		if !reuse(root) {
			n.render(root, true)
		}
	}

	return r.remember(n)
}

// Next renders the tree that follows prev, the last accepted one. changed lists
// the files that differ between the two, in any order. Only units that read or
// looked for one of them are rendered; the rest, down to each *Template, is
// shared with prev, as is what a broken unit keeps. The error is Problems;
// continue from prev then, with all the files that changed since.
func (r *Renderer) Next(prev *Build, fsys fs.FS, changed []string) (*Build, error) {
	n := &next{kinds: r.kinds, tried: &r.tried, fsys: fsys, prev: prev, changed: changed, layout: prev.layout, replaced: map[string]*unit{}, invalid: map[string]bool{}}
	var w *walker
	if slices.ContainsFunc(changed, func(name string) bool { return prev.layout.affectedBy(fsys, name) }) {
		if w = walk(fsys); len(w.problems) > 0 {
			return nil, sorted(w.problems)
		}
	}

	n.readSettings(w)
	if w != nil {
		n.updateLayout(w)
	}

	for _, name := range changed {
		n.renderReaders(name)
		if w == nil {
			n.renderFile(name)
			continue
		}
		if u := prev.units.At(name); u != nil && !u.root && !n.done(name) {
			n.render(name, false)
		}
	}

	return r.remember(n)
}

// remember finishes a build, and keeps what the next one can use.
func (r *Renderer) remember(n *next) (*Build, error) {
	b, problems := n.finish()
	r.tried.replace(n)
	if len(problems) > 0 {
		return nil, problems
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = b
	return b, nil
}

// index updates which units read and looked for a path.
func (b *Build) index(before, after *unit) {
	if before == after {
		return
	}

	if before != nil && before.root {
		for name, s := range before.reads {
			b.move(name, s, before.path, false)
		}
	}

	if after != nil && after.root {
		for name, s := range after.reads {
			b.move(name, s, after.path, true)
		}
	}
}

func (b *Build) move(name string, s state, unit string, add bool) {
	m := &b.readers
	if s == absent {
		m = &b.seekers
	}

	var units []string
	if r := m.At(name); r != nil {
		units = r.units
	}

	at, there := slices.BinarySearch(units, unit)
	switch {
	case add == there:
	case add:
		*m = m.With(name, &readers{slices.Insert(slices.Clone(units), at, unit)})
	case len(units) == 1:
		*m = m.Without(name)
	default:
		*m = m.With(name, &readers{slices.Delete(slices.Clone(units), at, at+1)})
	}
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
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
	like  *Build // the same of another Renderer's build; nil without one
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

	steps, size int64 // of all units

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

// Like has the units of another Renderer's build taken where everything that they read is
// the same, so that the two have one copy of them. It changes nothing of what is rendered.
func (r *Renderer) Like(b *Build) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.like = b
}

// Render renders a whole tree from scratch. The error is Problems. Units of
// this Renderer's last build are reused if everything they read is unchanged.
func (r *Renderer) Render(fsys fs.FS) (*Build, error) { return r.Restore(fsys, nil) }

// Restore renders a whole tree that Next rendered before. earlier maps each
// frozen unit or kustomization (see propagate.State) to the tree that holds its
// last good content.
func (r *Renderer) Restore(fsys fs.FS, earlier map[string]fs.FS) (*Build, error) {
	return r.whole(fsys, earlier).Result()
}

func (r *Renderer) whole(fsys fs.FS, earlier map[string]fs.FS) (t *Tried) {
	defer recovered(&t)

	w := walk(fsys)
	if len(w.problems) > 0 {
		return refused(sorted(w.problems))
	}

	r.mu.Lock()
	last := r.last
	r.mu.Unlock()

	n := newNext(r, &Build{Snapshot: &fleet.Snapshot{}}, fsys)
	n.earlier = earlier
	reuse := func(name string) bool {
		if n.done(name) {
			return true
		}

		u := cmp.Or(last.current(fsys, name), n.alike.current(fsys, name))
		if u == nil {
			return false
		}
		u.in(fsys)
		n.replaced[name] = u
		return true
	}

	if slices.Contains(w.files, settingsFile) && !reuse(settingsFile) {
		n.render(settingsFile, false)
	}

	n.freezes = n.replaced[settingsFile].freezes()
	if !n.resolveLayout(w) {
		return refused(sorted(w.problems))
	}
	n.renderFiles(slices.DeleteFunc(w.files, reuse))

	for _, root := range slices.Sorted(maps.Keys(n.layout.roots)) {
		if !reuse(root) {
			n.render(root, true)
		}
	}

	return r.remember(n, w)
}

// Next renders the tree that follows prev, the last accepted one. changed lists
// the files that differ between the two, in any order. Only units that read or
// looked for one of them are rendered; the rest, down to each *Template, is
// shared with prev, as is what a broken unit keeps. The error is Problems;
// continue from prev then, with all the files that changed since.
func (r *Renderer) Next(prev *Build, fsys fs.FS, changed []string) (*Build, error) {
	return r.Try(prev, fsys, changed).Result()
}

// Try is Next, or Render without prev, and what the next tree continues from if this one
// is not accepted.
func (r *Renderer) Try(prev *Build, fsys fs.FS, changed []string) (t *Tried) {
	if prev == nil {
		return r.whole(fsys, nil)
	}
	defer recovered(&t)

	n := newNext(r, prev, fsys)
	n.changed, n.layout = changed, prev.layout
	var w *walker
	much := product(prev.layout.ignores.weight("."), len(changed)) > maxMatches // a walk leaves directories out as a whole
	if much || slices.ContainsFunc(changed, func(name string) bool { return prev.layout.affectedBy(fsys, name) }) {
		if w = walk(fsys); len(w.problems) > 0 {
			return refused(sorted(w.problems))
		}
	}

	n.readSettings(w)
	if w != nil && !n.updateLayout(w) {
		return refused(sorted(w.problems))
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

	return r.remember(n, w)
}

// recovered is deferred where a tree is rendered: one on which that fails is refused,
// on every machine alike. The units have a recover of their own (unit.go).
func recovered(t **Tried) {
	if fleet.Recovered(recover()) {
		*t = refused(Problems{{Message: defect}})
	}
}

// remember finishes a build, and keeps what the next one can use. w is the walk of the
// tree, if there was one.
func (r *Renderer) remember(n *next, w *walker) *Tried {
	b, problems := n.finish()
	r.tried.replace(n)
	if b != nil {
		r.keep(b)
	}
	return &Tried{build: b, wrong: problems, line: n.begin(b, w)}
}

func (r *Renderer) keep(b *Build) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = b
}

// current is a unit of the build if it is good and everything that it read is the same in
// a tree, or nil.
func (b *Build) current(fsys fs.FS, name string) *unit {
	if b == nil {
		return nil
	}
	u := b.units.At(name)
	if u == nil || u.broken != nil || !u.current(fsys) {
		return nil
	}
	return u
}

// replace replaces units; nil removes one.
func (b *Build) replace(units map[string]*unit) {
	if b.units.Len() == 0 {
		there := maps.Clone(units)
		maps.DeleteFunc(there, func(_ string, u *unit) bool { return u == nil })
		b.units = ordered.Of(there)
		for _, u := range there {
			b.index(nil, u)
		}
		return
	}

	for name, u := range units {
		before := b.units.At(name)
		if u == nil {
			b.units = b.units.Without(name)
		} else {
			b.units = b.units.With(name, u)
		}
		b.index(before, u)
	}
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

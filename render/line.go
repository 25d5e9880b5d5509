// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// Tried is a tree that was rendered on top of an accepted one. It is what the tree that
// follows continues from if this one is refused, or awaits confirmation, so that a line
// of such commits costs what each of them changes. It is immutable.
type Tried struct {
	build *Build
	wrong Problems
	line  *line // nil if the next tree has to begin at the accepted one
}

// Result is the build, or the Problems that refuse the tree.
func (t *Tried) Result() (*Build, error) {
	if len(t.wrong) > 0 {
		return nil, t.wrong
	}
	return t.build, nil
}

func refused(wrong Problems) *Tried { return &Tried{wrong: wrong} }

// line is what is known of the last tree after an accepted one. What it leads to is
// what Try would make of the accepted tree, and of all files that changed since.
type line struct {
	on      *Build              // the accepted tree
	tree    *Build              // the last tree: its units, broken ones included, and no snapshot
	good    *Build              // the last one that had no problems, or the accepted tree
	touched ordered.Map[bool]   // units that differ between good and tree
	wrong   ordered.Map[*wrong] // units that refuse the tree
	extent  extent
}

// wrong is why a unit refuses its tree.
type wrong struct {
	problems []fleet.Problem
	more     int // problems that are not in it
}

// extent is at least what the last tree has that a walk counts, and how many files
// changed since the accepted tree.
type extent struct{ changed, entries, manifests, bytes, matches int }

func (w *walker) extent() extent {
	return extent{entries: w.entries, manifests: w.manifests, bytes: w.bytes, matches: w.matches}
}

// with is the extent of a tree with more files.
func (e extent) with(fsys fs.FS, l *layout, changed []string) extent {
	weight := 0
	for dir := range l.ignores {
		weight += l.ignores.weight(dir)
	}

	for _, name := range changed {
		levels := 1 + strings.Count(name, "/")
		e.entries += levels
		e.matches += product(weight, levels)
		e.manifests += levels
		e.bytes += levels * len(name)
		if isKustomizationFile(name) {
			b, _ := read(fsys, name) // what cannot be read is told of elsewhere
			e.bytes += len(b)
		}
	}

	e.changed += len(changed)
	return e
}

// within reports whether a walk of a tree of this extent finds nothing wrong, and
// whether Next walks it only if something else than its extent asks for that.
func (e extent) within(accepted *layout) bool {
	if e.entries > maxEntries || e.manifests > maxManifests || e.bytes > maxWalked || e.matches > maxMatches {
		return false
	}
	return accepted == nil || product(accepted.ignores.weight("."), e.changed) <= maxMatches
}

// TryAfter is Try for the tree that follows one which was tried on the same accepted
// tree; changed lists the files that differ between those two. It is nil where only the
// list of all files that changed since the accepted tree tells what Try would make of
// it.
func (r *Renderer) TryAfter(t *Tried, fsys fs.FS, changed []string) (next *Tried) {
	l := t.line
	if l == nil || !l.follows(fsys, changed) {
		return nil
	}
	defer func() {
		if recover() != nil {
			next = nil // Try finds what fails
		}
	}()

	n := newNext(r, l.tree, fsys)
	n.layout, n.tried = l.tree.layout, &tried{}
	for _, name := range changed {
		n.renderReaders(name)
		n.renderFile(name)
	}

	l = l.with(n, l.extent.with(fsys, n.layout, changed))
	if l == nil {
		return nil
	}
	r.tried.add(l.on, n)
	problems, more := l.problems()
	switch {
	case len(problems) >= manyProblems:
		return nil
	case len(problems) > 0:
		return &Tried{wrong: limited(problems, more), line: l}
	}
	return r.assemble(l, n)
}

// follows reports whether a tree has the layout of the line's last one, and is within
// all limits.
func (l *line) follows(fsys fs.FS, changed []string) bool {
	for _, name := range changed {
		if name == settingsFile || strings.Count(name, "/") > maxDepth || l.tree.layout.affectedBy(fsys, name) {
			return false
		}
	}
	return l.extent.with(fsys, l.tree.layout, changed).within(l.on.layout)
}

// begin is the line after the first tree on top of an accepted one, b if it has no
// problems. It is nil where a unit keeps content of the accepted tree, which is looked
// for there, and for a tree that is too large.
func (n *next) begin(b *Build, w *walker) *line {
	if n.freezes || n.prev.Frozen() || len(n.layout.unparsed) > 0 {
		return nil
	}

	var e extent
	if w != nil {
		e = w.extent()
	}
	e.changed = len(n.changed)

	if b != nil {
		return &line{on: n.prev, tree: b, good: b, extent: e}
	}
	return (&line{on: n.prev, tree: n.prev, good: n.prev}).with(n, e)
}

// with is the line after another tree, of which n has rendered what differs.
func (l *line) with(n *next, e extent) *line {
	steps, size := n.total()
	if n.tooMuch() || oversized(steps, size) != nil {
		return nil
	}

	after := *l
	after.extent = e
	after.tree = &Build{layout: n.layout, units: l.tree.units, readers: l.tree.readers, seekers: l.tree.seekers, steps: steps, size: size}
	after.tree.replace(n.replaced)
	for name, u := range n.replaced {
		after.touched = after.touched.With(name, true)
		after.wrong = after.wrong.Without(name)
		if w := n.wrongOf(u); w != nil {
			after.wrong = after.wrong.With(name, w)
		}
	}

	return &after
}

// wrongOf is why a unit that is rendered refuses the tree; nil if it does not.
func (n *next) wrongOf(u *unit) *wrong {
	if u == nil || u.broken == nil && len(n.invalid[u.path]) == 0 {
		return nil
	}
	w := &wrong{more: u.more}
	w.problems = append(append(w.problems, u.broken...), n.invalid[u.path]...)
	return w
}

// problems are all that refuse the tree.
func (l *line) problems() (all []fleet.Problem, more int) {
	for w := range l.wrong.Values() {
		all = append(all, w.problems...)
		more += w.more
	}
	return all, more
}

// assemble makes the snapshot of a tree none of whose units is wrong, from the last one
// that had a snapshot.
func (r *Renderer) assemble(l *line, rendered *next) *Tried {
	n := newNext(r, l.good, rendered.fsys)
	n.layout, n.tried, n.like, n.renders = l.tree.layout, rendered.tried, l.on.Snapshot, rendered.renders
	for name := range l.touched.All() {
		n.replaced[name] = l.tree.units.At(name)
	}

	b, problems := n.finish()
	if len(problems) > 0 {
		return &Tried{wrong: problems, line: l}
	}
	r.keep(b)
	return &Tried{build: b, line: &line{on: l.on, tree: b, good: b, extent: l.extent}}
}

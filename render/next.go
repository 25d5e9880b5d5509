// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// next is a build in progress: prev, and the units that replace its units.
type next struct {
	kinds      fleet.Kinds
	tried      *tried
	fsys       fs.FS
	prev       *Build
	changed    []string         // files that differ from prev's tree
	earlier    map[string]fs.FS // trees with the last good content that prev does not have
	layout     *layout
	replaced   map[string]*unit // nil for a removed unit
	invalid    map[string]bool  // units with mistakes that refuse the tree
	renders    int
	freezes    bool                      // an error only affects its unit
	broken     []*unit                   // rendered now
	problems   []fleet.Problem           // these refuse the tree
	duplicates map[string][]fleet.Origin // positions of documents that exist more than once
}

func (n *next) done(name string) bool {
	_, done := n.replaced[name]
	return done
}

// renderFiles renders plain files in parallel; they do not depend on each
// other.
func (n *next) renderFiles(names []string) {
	units, invalid := make([]*unit, len(names)), make([][]fleet.Problem, len(names))
	var at atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		workers.Go(func() {
			for i := int(at.Add(1)) - 1; i < len(names); i = int(at.Add(1)) - 1 {
				units[i], invalid[i] = render(n.fsys, names[i], false, n.kinds)
			}
		})
	}

	workers.Wait()
	for i := range names {
		n.put(units[i], invalid[i])
	}
}

// readSettings reads the settings before everything else: they say whether an
// error is contained to its unit.
func (n *next) readSettings(w *walker) {
	u, edited := n.prev.units.At(settingsFile), slices.Contains(n.changed, settingsFile)
	switch {
	case w != nil && !slices.Contains(w.files, settingsFile):
		return // the file was removed
	case w != nil && (edited || u == nil):
		n.render(settingsFile, false)
	case w == nil && edited:
		n.renderFile(settingsFile)
	}

	if n.done(settingsFile) {
		u = n.replaced[settingsFile]
	}

	n.freezes = u.freezes()
}

// resolveLayout computes the layout of a walked tree.
func (n *next) resolveLayout(w *walker) {
	if n.freezes {
		w.used = n.used
	}
	n.layout = w.resolve()
	n.problems = append(n.problems, w.problems...)
}

// updateLayout finds the units that are added and removed.
func (n *next) updateLayout(w *walker) {
	n.resolveLayout(w)
	now := map[string]bool{} // path to whether it is a root
	for _, file := range w.files {
		now[file] = false
	}
	for root := range n.layout.roots {
		now[root] = true
	}

	for name, u := range n.prev.units.All() {
		if root, ok := now[name]; !ok || root != u.root {
			n.replaced[name] = nil
		} else {
			delete(now, name)
		}
	}

	for name, root := range now {
		if !n.done(name) {
			n.render(name, root)
		}
	}
}

// renderReaders renders the kustomizations that a changed file affects: those
// that read it, and those that looked for it or for a directory above it.
func (n *next) renderReaders(changed string) {
	concerned := func(r *readers) {
		if r == nil {
			return
		}
		for _, name := range r.units {
			if !n.done(name) && n.layout.roots[name] {
				n.render(name, true)
			}
		}
	}

	concerned(n.prev.readers.At(changed))
	concerned(n.prev.seekers.At(changed))

	for _, dir := range parents(changed) {
		concerned(n.prev.seekers.At(dir))
	}
}

// renderFile renders a changed file that is a unit of its own.
func (n *next) renderFile(name string) {
	had := n.prev.units.At(name) != nil
	if n.done(name) || !isManifest(name) || isKustomizationFile(name) || n.layout.owned(name) || n.layout.skipped(name) {
		return
	}

	switch stateOf(n.fsys, name) {
	case absent, directory:
		if had {
			n.replaced[name] = nil
		}
	default:
		n.render(name, false)
	}
}

// finish assembles the build.
func (n *next) finish() (*Build, Problems) {
	n.freeze()
	if len(n.problems) > 0 {
		return nil, sorted(n.problems)
	}

	b := &Build{Renders: n.renders, layout: n.layout, units: n.prev.units, scopes: n.prev.scopes, readers: n.prev.readers, seekers: n.prev.seekers, frozen: n.frozen()}
	n.rescope(b)
	b.Snapshot = n.snapshot()
	n.reportDuplicates()
	n.checkAmbiguity(b.Snapshot)
	if len(n.problems) > 0 {
		return nil, sorted(n.problems)
	}

	for name, u := range n.replaced {
		before := b.units.At(name)
		if u == nil {
			b.units = b.units.Without(name)
		} else {
			b.units = b.units.With(name, u)
		}
		b.index(before, u)
	}

	return b, nil
}

// rescope derives the templates of kinds that the tree defines again, with
// their current scope.
func (n *next) rescope(b *Build) {
	moved := map[schema.GroupKind]bool{}
	count := func(u *unit, by int) {
		if u == nil {
			return
		}

		for _, it := range u.items {
			if it.defines == nil {
				continue
			}

			key := it.defines.kind.String()
			var s scopeCount
			if old := b.scopes.At(key); old != nil {
				s = *old
			}

			if it.defines.namespaced {
				s.namespaced += by
			} else {
				s.cluster += by
			}

			if s == (scopeCount{}) {
				b.scopes = b.scopes.Without(key)
			} else {
				b.scopes = b.scopes.With(key, &s)
			}

			moved[it.defines.kind] = true
		}
	}

	for name := range n.replaced {
		count(n.prev.units.At(name), -1)
	}
	for _, u := range n.replaced {
		count(u, +1)
	}

	scope := func(group, kind string) (namespaced, known bool) {
		if namespaced, known = object.BuiltinScope(group, kind); known {
			return namespaced, true
		}
		if s := b.scopes.At(schema.GroupKind{Group: group, Kind: kind}.String()); s != nil {
			return s.namespaced > 0, true
		}
		return false, false
	}

	for kind := range moved {
		was, is := n.prev.scopes.At(kind.String()), b.scopes.At(kind.String())
		if (was == nil) == (is == nil) && (was == nil || (was.namespaced > 0) == (is.namespaced > 0)) {
			delete(moved, kind)
		}
	}

	if len(moved) > 0 {
		// This is rare, and needs a look at every template of the kind.
		for name, u := range n.prev.units.All() {
			if !n.done(name) && u.uses(moved) {
				n.replaced[name] = u
			}
		}
	}

	for name, u := range n.replaced {
		if u != nil {
			n.replaced[name] = u.scoped(scope)
		}
	}
}

// snapshot is prev's, with the documents of the changed units replaced.
func (n *next) snapshot() *fleet.Snapshot {
	b := fleet.Build(n.prev.Snapshot, n.duplicate)
	names := slices.Sorted(maps.Keys(n.replaced))
	for _, name := range names {
		if old := n.prev.units.At(name); old != nil {
			old.dropFrom(b)
		}
	}
	for _, name := range names {
		if u := n.replaced[name]; u != nil {
			u.addTo(b)
		}
	}

	s := b.Snapshot()
	for _, name := range names {
		if u := n.replaced[name]; u != nil {
			s.Units = s.Units.With(name, n.unit(name, u))
		} else {
			s.Units = s.Units.Without(name)
		}
	}

	if n.layout != n.prev.layout {
		s.Unparsed = n.layout.unparsedFiles()
	}

	return s
}

// keep stores an older, equal value in a unit that was just rendered. Units of
// earlier builds already hold that value, and may be in use elsewhere.
func keep[V comparable](at *V, value V) {
	if *at != value {
		*at = value
	}
}

// unit is a unit's entry in the snapshot: the previous one if nothing changed.
func (n *next) unit(name string, u *unit) *fleet.Unit {
	if before := n.prev.Snapshot.Units.At(name); before != nil && before.Objects == len(u.items) && slices.Equal(before.Broken, u.broken) {
		return before
	}
	return &fleet.Unit{Path: name, Objects: len(u.items), Broken: u.broken}
}

// duplicate records that a document exists at more than one place.
func (n *next) duplicate(what string, places ...fleet.Origin) {
	if n.duplicates == nil {
		n.duplicates = map[string][]fleet.Origin{}
	}
	n.duplicates[what] = append(n.duplicates[what], places...)
}

// reportDuplicates turns duplicates into problems, at every place but the
// first, which each problem names.
func (n *next) reportDuplicates() {
	for what, places := range n.duplicates {
		slices.SortFunc(places, func(a, b fleet.Origin) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})

		first, rest := places[0], places[1:]
		for _, p := range rest {
			// A base that two roots render alike is one place, twice.
			if p != first || places[len(places)-1] == first {
				n.problems = append(n.problems, fleet.Problem{Origin: p, Message: fmt.Sprintf("%s is also defined at %s", what, first) + n.frozenAt(p, first)})
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// next is a build in progress: prev, and the units that replace its units.
type next struct {
	kinds      fleet.Kinds
	tried      *tried
	alike      *Build // of the Renderer; nil without one
	fsys       fs.FS
	prev       *Build
	like       *fleet.Snapshot  // what equals its documents is them; nil for prev's
	changed    []string         // files that differ from prev's tree
	earlier    map[string]fs.FS // trees with the last good content that prev does not have
	layout     *layout
	replaced   map[string]*unit           // nil for a removed unit
	invalid    map[string][]fleet.Problem // units with mistakes that refuse the tree
	renders    int
	freezes    bool            // an error only affects its unit
	broken     []*unit         // rendered now
	problems   []fleet.Problem // these refuse the tree
	more       int             // problems that were left out
	steps      atomic.Int64    // of what was rendered now
	size       atomic.Int64
	duplicates map[string][]fleet.Origin // positions of documents that exist more than once
}

func newNext(r *Renderer, prev *Build, fsys fs.FS) *next {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &next{kinds: r.kinds, tried: &r.tried, alike: r.like, fsys: fsys, prev: prev, replaced: map[string]*unit{}, invalid: map[string][]fleet.Problem{}}
}

func (n *next) done(name string) bool {
	_, done := n.replaced[name]
	return done
}

// Limits of a tree. They are sums over all of its units, whichever of them a commit
// changes.
const (
	maxTreeSteps = 1_000_000_000
	maxTreeSize  = 512 << 20
)

// renderUnit renders one unit, unless what was rendered so far is too much already: the whole
// tree has no less, so it is refused whatever the unit is like.
func (n *next) renderUnit(name string, root bool) (*unit, []fleet.Problem) {
	if n.tooMuch() {
		return &unit{path: name, root: root}, nil
	}

	u, invalid := render(n.fsys, name, root, n.kinds)
	n.steps.Add(int64(u.steps))
	n.size.Add(int64(u.size))
	return u, invalid
}

func (n *next) tooMuch() bool { return n.steps.Load() > maxTreeSteps || n.size.Load() > maxTreeSize }

// wrong adds problems that refuse the tree.
func (n *next) wrong(problems ...fleet.Problem) {
	n.problems, n.more = fewest(append(n.problems, problems...), n.more)
}

// oversized is the only problem of a tree that is too large; others may not have been
// found.
func oversized(steps, size int64) Problems {
	switch {
	case size > maxTreeSize:
		return Problems{{Message: fmt.Sprintf("the fleet's directory has more than %d bytes of manifests, or makes as many, each object counted with %d more", maxTreeSize, sizeOfObject)}}
	case steps > maxTreeSteps:
		return Problems{{Message: fmt.Sprintf("the kustomizations together would take kustomize more than %d steps", maxTreeSteps)}}
	}
	return nil
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
				units[i], invalid[i] = n.renderUnit(names[i], false)
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

// resolveLayout computes the layout of a walked tree. It reports whether it could.
func (n *next) resolveLayout(w *walker) bool {
	if n.freezes {
		w.used = n.used
	}
	n.layout = w.resolve()
	n.wrong(w.problems...)
	return !w.stopped
}

// updateLayout finds the units that are added and removed. It reports whether it could.
func (n *next) updateLayout(w *walker) bool {
	if !n.resolveLayout(w) {
		return false
	}

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
	return true
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
		if r := n.prev.readers.At(dir); r != nil && stateOf(n.fsys, dir) != directory {
			concerned(r) // its last file is gone
		}
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
	if n.tooMuch() {
		return nil, oversized(n.steps.Load(), n.size.Load())
	}

	n.freeze()
	steps, size := n.total()
	if large := oversized(steps, size); large != nil {
		return nil, large
	}
	if len(n.problems) > 0 {
		return nil, limited(n.problems, n.more)
	}

	b := &Build{steps: steps, size: size, Renders: n.renders, layout: n.layout, units: n.prev.units, scopes: n.prev.scopes, readers: n.prev.readers, seekers: n.prev.seekers, frozen: n.frozen()}
	n.rescope(b)
	b.Snapshot = n.snapshot()
	n.reportDuplicates()
	n.checkAmbiguity(b.Snapshot)
	if len(n.problems) > 0 {
		return nil, limited(n.problems, n.more)
	}

	b.replace(n.replaced)
	return b, nil
}

// total is what all units take, those that did not change included.
func (n *next) total() (steps, size int64) {
	steps, size = n.prev.steps, n.prev.size
	for name, u := range n.replaced {
		if before := n.prev.units.At(name); before != nil {
			steps, size = steps-int64(before.steps), size-int64(before.size+before.kept)
		}
		if u != nil {
			steps, size = steps+int64(u.steps), size+int64(u.size+u.kept)
		}
	}
	return steps, size
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
		return object.DefaultScope(group, kind)
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
	b := fleet.Build(n.prev.Snapshot, n.duplicate).Like(n.like)
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
	s.Units = n.units(s.Units, names)

	if n.layout != n.prev.layout {
		s.Unparsed = n.layout.unparsedFiles()
	}

	return s
}

// units are the entries of the units in the snapshot.
func (n *next) units(before ordered.Map[*fleet.Unit], names []string) ordered.Map[*fleet.Unit] {
	all := map[string]*fleet.Unit{}
	for _, name := range names {
		if u := n.replaced[name]; u != nil {
			all[name] = n.unit(name, u)
		}
	}
	if before.Len() == 0 {
		return ordered.Of(all)
	}

	for _, name := range names {
		if u := all[name]; u != nil {
			before = before.With(name, u)
		} else {
			before = before.Without(name)
		}
	}
	return before
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
	broken := u.broken
	if u.more > 0 {
		broken = limited(slices.Clone(broken), u.more)
	}

	for _, s := range []*fleet.Snapshot{n.prev.Snapshot, n.like} {
		if s == nil {
			continue
		}
		if before := s.Units.At(name); before != nil && before.Objects == len(u.items) && slices.Equal(before.Broken, broken) {
			return before
		}
	}
	return &fleet.Unit{Path: name, Objects: len(u.items), Broken: broken}
}

// duplicate records that a document exists at more than one place.
func (n *next) duplicate(what string, places ...fleet.Origin) {
	if n.duplicates == nil {
		n.duplicates = map[string][]fleet.Origin{}
	}
	n.duplicates[what] = append(n.duplicates[what], places...)
}

// renderedBy says which units make one object of one document; "" for two documents.
func (n *next) renderedBy(what string, p, first fleet.Origin) string {
	if p != first {
		return ""
	}

	var by []string
	note := func(u *unit) {
		if u == nil || !u.root {
			return
		}
		if slices.ContainsFunc(u.items, func(it *item) bool {
			return it.document.Value != nil && it.document.Origin() == p && it.document.String() == what
		}) {
			by = append(by, u.path)
		}
	}

	for _, u := range n.replaced {
		note(u)
	}
	for name, u := range n.prev.units.All() {
		if !n.done(name) {
			note(u)
		}
	}

	slices.Sort(by)
	if len(by) < 2 {
		return ""
	}
	return fmt.Sprintf(" is rendered by the kustomizations in %s; give each its own namespace or namePrefix, or follow one with --path", strings.Join(by, " and "))
}

// reportDuplicates turns duplicates into problems, at every place but the
// first, which each problem names.
func (n *next) reportDuplicates() {
	for what, places := range n.duplicates {
		slices.SortFunc(places, func(a, b fleet.Origin) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})

		first, rest := places[0], slices.Compact(places[1:])
		for _, p := range rest {
			// A base that two roots render alike is one place, twice.
			if p != first || places[len(places)-1] == first {
				message := fmt.Sprintf("%s is also defined at %s", what, first)
				frozen := n.frozenAt(p, first)
				if by := n.renderedBy(what, p, first); by != "" && frozen == "" {
					message = what + by
				}
				n.wrong(fleet.Problem{Origin: p, Message: message + frozen})
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/ordered"
)

// Renderer renders trees, one after the other.
type Renderer struct {
	mu   sync.Mutex
	last *Build // units whose reads are unchanged are taken from it
}

// New is a Renderer that has rendered nothing yet.
func New() *Renderer { return &Renderer{} }

// Build is a rendered tree. It is not altered once it is made.
type Build struct {
	Snapshot *propagate.Snapshot
	Renders  int // how many units had to be rendered

	layout *layout
	units  ordered.Map[*unit] // by path
	// readers are the kustomizations that read a path or found a directory
	// there, seekers those that looked for one in vain.
	readers, seekers ordered.Map[*readers]
	scopes           ordered.Map[*scopeOf] // of the kinds that definitions in the tree bring
	frozen           map[string]bool       // units that are broken
}

// readers are paths of units, sorted.
type readers struct{ units []string }

// scopeOf counts the definitions of one kind by the scope they give it. There
// should be one; of two that differ the namespaced one holds, in any order.
type scopeOf struct{ namespaced, cluster int }

// Render renders a whole tree that follows on none. The error is Problems.
// Units that the last build of this Renderer has, and whose every read gives
// the same content now, are taken from there.
func (r *Renderer) Render(fsys fs.FS) (*Build, error) { return r.Restore(fsys, nil) }

// Restore renders a whole tree that was rendered by Next before. earlier has
// the trees, by what is frozen (see propagate.State), that hold the last good
// content of what is broken in this one.
func (r *Renderer) Restore(fsys fs.FS, earlier map[string]fs.FS) (*Build, error) {
	w := walk(fsys)
	if len(w.problems) > 0 {
		return nil, sorted(w.problems)
	}
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()

	n := &next{fsys: fsys, prev: &Build{Snapshot: &propagate.Snapshot{}}, earlier: earlier, replaced: map[string]*unit{}}
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
	n.lay(w)
	n.renderFiles(slices.DeleteFunc(w.files, reuse))
	for _, root := range slices.Sorted(maps.Keys(n.layout.roots)) {
		if !reuse(root) {
			n.render(root, true)
		}
	}
	return r.remember(n.finish())
}

// Next renders a tree that follows on prev, the last one that was accepted.
// changed lists the files that differ between the two, sorted or not. Only
// units that read or looked for one of them are rendered; the rest, down to
// each *Template, is shared with prev, and so is what a broken unit keeps. The
// error is Problems; prev is then still the one to continue from, with all
// that changed since.
func (r *Renderer) Next(prev *Build, fsys fs.FS, changed []string) (*Build, error) {
	n := &next{fsys: fsys, prev: prev, changed: changed, layout: prev.layout, replaced: map[string]*unit{}}
	var w *walker
	if slices.ContainsFunc(changed, func(name string) bool { return prev.layout.reshapes(fsys, name) }) {
		if w = walk(fsys); len(w.problems) > 0 {
			return nil, sorted(w.problems)
		}
	}
	n.settle(w)
	if w != nil {
		n.reshape(w)
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
	return r.remember(n.finish())
}

func (r *Renderer) remember(b *Build, problems Problems) (*Build, error) {
	if len(problems) > 0 {
		return nil, problems
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = b
	return b, nil
}

// next is a build in the making: prev and what takes the place of its units.
type next struct {
	fsys     fs.FS
	prev     *Build
	changed  []string         // files that differ from prev's tree
	earlier  map[string]fs.FS // that hold what is frozen, where prev does not
	layout   *layout
	replaced map[string]*unit // nil for a unit that is gone
	renders  int
	freezes  bool                          // an error in a unit reaches that unit alone
	broken   []*unit                       // that were rendered now
	problems []propagate.Problem           // that refuse the tree
	places   map[string][]propagate.Origin // of what is there more than once
}

func (n *next) done(name string) bool {
	_, done := n.replaced[name]
	return done
}

func (n *next) render(name string, root bool) { n.put(render(n.fsys, name, root)) }

// renderFiles renders plain files, which know nothing of each other, on all
// cores.
func (n *next) renderFiles(names []string) {
	units, invalid := make([]*unit, len(names)), make([][]propagate.Problem, len(names))
	var at atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		workers.Go(func() {
			for i := int(at.Add(1)) - 1; i < len(names); i = int(at.Add(1)) - 1 {
				units[i], invalid[i] = render(n.fsys, names[i], false)
			}
		})
	}
	workers.Wait()
	for i := range names {
		n.put(units[i], invalid[i])
	}
}

// put takes what became of a unit. invalid refuses the tree.
func (n *next) put(u *unit, invalid []propagate.Problem) {
	n.renders++
	n.problems = append(n.problems, invalid...)
	if u.broken != nil {
		n.broken = append(n.broken, u)
	}
	n.replaced[u.path] = u
}

// settle reads the settings before everything else: they say how far an error
// reaches.
func (n *next) settle(w *walker) {
	u, edited := n.prev.units.At(settingsFile), slices.Contains(n.changed, settingsFile)
	switch {
	case w != nil && !slices.Contains(w.files, settingsFile):
		return // there are none any more
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

// lay takes the layout of a tree that was walked.
func (n *next) lay(w *walker) {
	if n.freezes {
		w.used = n.used
	}
	n.layout = w.lay()
	n.problems = append(n.problems, w.problems...)
}

// reshape finds the units that come and go.
func (n *next) reshape(w *walker) {
	n.lay(w)
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

// renderReaders renders the kustomizations that a changed file concerns:
// those that read it, and those that looked for it or for a directory above.
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

// renderFile renders a changed file that is a unit itself.
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

// finish puts the build together.
func (n *next) finish() (*Build, Problems) {
	n.freeze()
	if len(n.problems) > 0 {
		return nil, sorted(n.problems)
	}
	b := &Build{Renders: n.renders, layout: n.layout, units: n.prev.units, scopes: n.prev.scopes, readers: n.prev.readers, seekers: n.prev.seekers, frozen: n.frozen()}
	n.rescope(b)
	b.Snapshot = n.snapshot()
	n.tellTwice()
	n.doubt(b.Snapshot)
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

// rescope derives the templates whose kinds are defined in the tree, with the
// scope that the definitions give them now.
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
			var s scopeOf
			if old := b.scopes.At(key); old != nil {
				s = *old
			}
			if it.defines.namespaced {
				s.namespaced += by
			} else {
				s.cluster += by
			}
			if s == (scopeOf{}) {
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
		if namespaced, known = propagate.BuiltinScope(group, kind); known {
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
		// Rare, and then every template of the kind has to be looked at.
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

// snapshot is prev's with the changed units' documents instead of the old.
func (n *next) snapshot() *propagate.Snapshot {
	s := *n.prev.Snapshot
	if n.layout != n.prev.layout {
		s.Unparsed = n.layout.unparsedFiles()
	}
	names := slices.Sorted(maps.Keys(n.replaced))
	clusters, policies := collection[*propagate.Cluster]{what: "Cluster"}, collection[*propagate.Policy]{what: "policy"}
	overrides := collection[*propagate.Override]{what: "override"}
	rebalancers := collection[*propagate.Rebalancer]{what: "rebalancer"}
	interpreters := collection[*propagate.Interpreter]{what: "interpreter"}
	templates, findings := collection[*propagate.Template]{what: "object"}, collection[*propagate.Finding]{}
	for _, name := range names {
		old := n.prev.units.At(name)
		if old == nil {
			continue
		}
		if n.replaced[name] == nil {
			s.Units = s.Units.Without(name)
		}
		if name == settingsFile {
			s.Settings = nil
		}
		for _, it := range old.items {
			clusters.drop(it.cluster != nil, func() (string, *propagate.Cluster) { return it.cluster.Name, it.cluster })
			policies.drop(it.policy != nil, func() (string, *propagate.Policy) { return it.policy.Ref.Key(), it.policy })
			overrides.drop(it.override != nil, func() (string, *propagate.Override) { return it.override.Ref.Key(), it.override })
			interpreters.drop(it.interpreter != nil, func() (string, *propagate.Interpreter) { return it.interpreter.Name, it.interpreter })
			rebalancers.drop(it.rebalancer != nil, func() (string, *propagate.Rebalancer) { return it.rebalancer.Name, it.rebalancer })
			templates.drop(it.template != nil, func() (string, *propagate.Template) { return it.template.Key(), it.template })
			for _, f := range it.findings {
				findings.drop(true, func() (string, *propagate.Finding) { return findingKey(f), f })
			}
		}
	}
	for _, name := range names {
		u := n.replaced[name]
		if u == nil {
			continue
		}
		s.Units = s.Units.With(name, n.unit(name, u))
		for _, it := range u.items {
			if it.settings != nil {
				s.Settings = n.settings(s.Settings, it.settings)
			}
			if it.cluster != nil {
				keep(&it.cluster, clusters.add(n, s.Clusters, it.cluster.Name, it.cluster, it.cluster.Origin))
			}
			if it.policy != nil {
				keep(&it.policy, policies.add(n, s.Policies, it.policy.Ref.Key(), it.policy, it.policy.Origin))
			}
			if it.override != nil {
				keep(&it.override, overrides.add(n, s.Overrides, it.override.Ref.Key(), it.override, it.override.Origin))
			}
			if it.interpreter != nil {
				keep(&it.interpreter, interpreters.add(n, s.Interpreters, it.interpreter.Name, it.interpreter, it.interpreter.Origin))
			}
			if it.rebalancer != nil {
				keep(&it.rebalancer, rebalancers.add(n, s.Rebalancers, it.rebalancer.Name, it.rebalancer, it.rebalancer.Origin))
			}
			if it.template != nil {
				keep(&it.template, templates.add(n, s.Templates, it.template.Key(), it.template, it.template.Origin))
			}
			for j, f := range it.findings {
				keep(&it.findings[j], findings.add(n, s.Findings, findingKey(f), f, f.Origin))
			}
		}
	}
	s.Clusters, s.Policies, s.Overrides = clusters.into(s.Clusters), policies.into(s.Policies), overrides.into(s.Overrides)
	s.Interpreters, s.Rebalancers = interpreters.into(s.Interpreters), rebalancers.into(s.Rebalancers)
	if !s.Interpreters.Same(n.prev.Snapshot.Interpreters) {
		n.disagree(s.Interpreters)
	}
	s.Templates, s.Findings = templates.into(s.Templates), findings.into(s.Findings)
	return &s
}

// disagree finds interpreters that answer for one thing.
func (n *next) disagree(all ordered.Map[*propagate.Interpreter]) {
	first := map[string]*propagate.Interpreter{}
	for in := range all.Values() {
		for answer := range in.Answers() {
			if other := first[answer]; other != nil {
				n.twice(answer+" (by "+other.Name+" and "+in.Name+")", other.Origin, in.Origin)
			} else {
				first[answer] = in
			}
		}
	}
}

// keep stores an older, equal value in a unit that was just rendered. Units
// of earlier builds hold that value already, and may be in use elsewhere.
func keep[V comparable](at *V, value V) {
	if *at != value {
		*at = value
	}
}

func (n *next) settings(have, now *propagate.Settings) *propagate.Settings {
	if have != nil {
		n.twice("FleetConfig", have.Origin, now.Origin)
	}
	if before := n.prev.Snapshot.Settings; before != nil && reflect.DeepEqual(before, now) {
		return before
	}
	return now
}

// unit is what the snapshot says of a unit: the old word, if it still holds.
func (n *next) unit(name string, u *unit) *propagate.Unit {
	if before := n.prev.Snapshot.Units.At(name); before != nil && before.Objects == len(u.items) && slices.Equal(before.Broken, u.broken) {
		return before
	}
	return &propagate.Unit{Path: name, Objects: len(u.items), Broken: u.broken}
}

// twice records that one thing is in two places.
func (n *next) twice(what string, places ...propagate.Origin) {
	if n.places == nil {
		n.places = map[string][]propagate.Origin{}
	}
	n.places[what] = append(n.places[what], places...)
}

// tellTwice makes problems of what is there more than once: at every place
// but the first, naming the first.
func (n *next) tellTwice() {
	for what, places := range n.places {
		slices.SortFunc(places, func(a, b propagate.Origin) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		first, rest := places[0], places[1:]
		for _, p := range rest {
			// A base that two roots make the same of is one place, twice.
			if p != first || places[len(places)-1] == first {
				n.problems = append(n.problems, propagate.Problem{Origin: p, Message: fmt.Sprintf("%s is at %s too", what, first) + n.frozenAt(p, first)})
			}
		}
	}
}

// findingKey sorts by file and line.
func findingKey(f *propagate.Finding) string {
	return fmt.Sprintf("%s:%08d %s %s", f.Origin.File, f.Origin.Line, f.Code, f.Object.Key())
}

// collection is how one map of the snapshot changes.
type collection[V comparable] struct {
	what string // of a document that must be there once; "" when twice is fine
	old  map[string]V
	now  map[string]V
	from map[string]propagate.Origin
}

func (c *collection[V]) drop(has bool, entry func() (string, V)) {
	if !has {
		return
	}
	if c.old == nil {
		c.old = map[string]V{}
	}
	key, value := entry()
	c.old[key] = value
}

// add takes a document in, and returns the old one instead if the two are
// equal: then nothing changed, and pointers say so.
func (c *collection[V]) add(n *next, before ordered.Map[V], key string, value V, origin propagate.Origin) V {
	if c.now == nil {
		c.now, c.from = map[string]V{}, map[string]propagate.Origin{}
	}
	if first, ok := c.from[key]; ok && c.what != "" {
		n.twice(describe(value), first, origin)
	}
	was, replaced := c.old[key]
	switch other, there := before.Get(key); {
	case replaced && equal(was, value):
		value = was
	case there && !replaced && c.what != "":
		n.twice(describe(value), originOf(other), origin)
	}
	c.now[key], c.from[key] = value, origin
	return value
}

func (c *collection[V]) into(m ordered.Map[V]) ordered.Map[V] {
	for key := range c.old {
		if _, stays := c.now[key]; !stays {
			m = m.Without(key)
		}
	}
	for key, value := range c.now {
		m = m.With(key, value)
	}
	return m
}

func describe(v any) string {
	switch v := v.(type) {
	case *propagate.Cluster:
		return "Cluster " + v.Name
	case *propagate.Policy:
		return v.Ref.String()
	case *propagate.Override:
		return v.Ref.String()
	case *propagate.Interpreter:
		return "ResourceInterpreterCustomization " + v.Name
	case *propagate.Rebalancer:
		return "WorkloadRebalancer " + v.Name
	case *propagate.Template:
		return v.ID.String()
	}
	return "document"
}

func originOf(v any) propagate.Origin {
	switch v := v.(type) {
	case *propagate.Cluster:
		return v.Origin
	case *propagate.Policy:
		return v.Origin
	case *propagate.Override:
		return v.Origin
	case *propagate.Interpreter:
		return v.Origin
	case *propagate.Rebalancer:
		return v.Origin
	case *propagate.Template:
		return v.Origin
	}
	return propagate.Origin{}
}

// equal compares what two pointers point to. Templates and
// interpreters have digests.
func equal(a, b any) bool {
	if was, ok := a.(*propagate.Interpreter); ok {
		now := b.(*propagate.Interpreter)
		return was == now || was.Digest == now.Digest && was.Name == now.Name && was.Origin == now.Origin
	}
	was, ok := a.(*propagate.Template)
	if !ok {
		return reflect.DeepEqual(a, b)
	}
	now := b.(*propagate.Template)
	return was == now || was.Digest == now.Digest && was.ID == now.ID && was.Origin == now.Origin && was.Unit == now.Unit
}

// index moves a unit's reads.
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

// unit is what one kustomization root or plain file gives.
type unit struct {
	path  string
	root  bool
	items []*item
	reads map[string]state
	// broken is why it could not be rendered. Its items are then those that it
	// had before.
	broken []propagate.Problem
}

// render renders one unit. invalid are the mistakes that its settings or its
// policies make, which are not only its own.
func render(fsys fs.FS, name string, root bool) (u *unit, invalid []propagate.Problem) {
	v := newView(fsys)
	u = &unit{path: name, root: root, reads: v.reads}
	var docs []*document
	if root {
		docs, u.broken = kustomize(v, name)
	} else {
		docs, u.broken = plainFile(v, name)
	}
	for _, d := range docs {
		it, wrong := sortDocument(d, name)
		switch {
		case len(wrong) == 0:
			u.items = append(u.items, it)
		case d.steers():
			invalid = append(invalid, wrong...)
		default:
			u.broken = append(u.broken, wrong...)
		}
	}
	if u.broken != nil {
		u.items, u.broken = nil, sorted(u.broken)
	}
	return u, invalid
}

// plainFile reads a file that is a unit.
func plainFile(v *view, name string) ([]*document, []propagate.Problem) {
	if v.look(name) == special {
		return nil, []propagate.Problem{problem(name, 0, notRegular(v.fsys, name))}
	}
	b, err := v.content(name)
	if err != nil {
		return nil, []propagate.Problem{problem(name, 0, cause(err))}
	}
	return parseFile(name, b)
}

// current is whether all that the unit read is as it was.
func (u *unit) current(fsys fs.FS) bool {
	for name, was := range u.reads {
		if stateOf(fsys, name) != was {
			return false
		}
	}
	return true
}

// uses is whether one of the kinds is among the unit's templates.
func (u *unit) uses(kinds map[schema.GroupKind]bool) bool {
	return slices.ContainsFunc(u.items, func(it *item) bool { return it.open != nil && kinds[it.template.GroupKind()] })
}

// scoped is the unit with its templates derived anew where their scope
// changed, or the same unit.
func (u *unit) scoped(scope propagate.Scope) *unit {
	out := u
	for i, it := range u.items {
		now := it.scoped(scope)
		if now == it {
			continue
		}
		if out == u {
			out = &unit{u.path, u.root, slices.Clone(u.items), u.reads, u.broken}
		}
		out.items[i] = now
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead/fairlead/compact"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// recallFormat is the format of what Encode writes.
const recallFormat = "fairlead units 1"

// Encode writes what rendering made of the units, without the objects, which may hold
// secrets: which templates there are, of what digests, and from what they were rendered.
// Units with anything else than templates are left out, as are those that are broken:
// there are few of them, and they are rendered again.
func (b *Build) Encode() ([]byte, error) {
	var units []*unit
	for u := range b.units.Values() {
		if u.recallable() {
			units = append(units, u)
		}
	}

	w := &compact.Writer{}
	w.Uint(len(units))
	for _, u := range units {
		if err := u.write(w); err != nil {
			return nil, fmt.Errorf("%s: %w", u.path, err)
		}
	}
	return w.Bytes(recallFormat), nil
}

// Recall has the next tree reuse what Encode wrote, as far as everything that a unit read
// is unchanged in it. Each object is rendered again when somebody asks for it.
func (r *Renderer) Recall(raw []byte) error {
	in, err := compact.NewReader(recallFormat, raw)
	if err != nil {
		return err
	}

	units := map[string]*unit{}
	for n := in.Count(); n > 0 && in.Err() == nil; n-- {
		u := r.readUnit(in)
		units[u.path] = u
	}
	if err := in.Done(); err != nil {
		return err
	}

	r.keep(&Build{units: ordered.Of(units)})
	return nil
}

func (u *unit) recallable() bool {
	return u.broken == nil && !slices.ContainsFunc(u.items, func(it *item) bool {
		_, template := it.document.Value.(*fleet.Template)
		return it.defines != nil || it.document.Value != nil && !template
	})
}

func (u *unit) write(w *compact.Writer) error {
	w.Text(u.path)
	w.Bool(u.root)
	w.Uint(u.steps)
	w.Uint(u.size)
	w.Uint(len(u.reads))
	for _, name := range slices.Sorted(maps.Keys(u.reads)) {
		w.Text(name)
		w.Text(string(u.reads[name]))
	}

	w.Uint(len(u.items))
	for _, it := range u.items {
		if err := it.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (it *item) write(w *compact.Writer) error {
	if err := w.JSON(it.findings); err != nil {
		return err
	}
	t, ok := it.document.Value.(*fleet.Template)
	w.Bool(ok)
	if !ok {
		return nil
	}

	w.Bool(it.open != nil)
	if it.open != nil {
		w.Text(it.open.namespace)
		w.Bool(it.open.namespaced)
		w.Bool(it.open.known)
	}
	return t.Write(w)
}

func (r *Renderer) readUnit(in *compact.Reader) *unit {
	u := &unit{path: in.Text(), root: in.Bool(), steps: in.Uint(), size: in.Uint(), reads: map[string]state{}}
	for n := in.Count(); n > 0 && in.Err() == nil; n-- {
		name := in.Text()
		u.reads[name] = state(in.Text())
	}

	u.again = &again{unit: u, kinds: r.kinds}
	for n := in.Count(); n > 0 && in.Err() == nil; n-- {
		u.items = append(u.items, u.readItem(in))
	}
	return u
}

func (u *unit) readItem(in *compact.Reader) *item {
	it := &item{}
	for _, f := range compact.JSON[[]fleet.Finding](in) {
		it.findings = append(it.findings, &f)
	}
	if !in.Bool() {
		return it
	}

	if in.Bool() {
		it.open = &openScope{namespace: in.Text(), namespaced: in.Bool(), known: in.Bool()}
	}
	at, open := len(u.items), it.open
	it.document = fleet.ReadTemplate(in, u.path, func(t *fleet.Template) map[string]any { return u.again.object(at, open, t) }).Document()
	return it
}

// again renders a unit again that was recalled.
type again struct {
	unit  *unit
	kinds fleet.Kinds

	mu       sync.Mutex
	fsys     fs.FS // a tree in which everything that the unit reads is unchanged
	rendered *unit
}

// in says in which tree a recalled unit was found unchanged.
func (u *unit) in(fsys fs.FS) {
	if u.again == nil {
		return
	}
	u.again.mu.Lock()
	defer u.again.mu.Unlock()
	if u.again.fsys == nil {
		u.again.fsys = fsys
	}
}

// object is the object of a template that an item of the unit has, derived with a scope.
func (a *again) object(at int, scope *openScope, t *fleet.Template) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rendered == nil {
		a.rendered, _ = render(a.fsys, a.unit.path, a.unit.root, a.kinds)
	}

	if at < len(a.rendered.items) {
		it := a.rendered.items[at]
		if scope != nil && it.open != nil {
			it = it.scoped(func(string, string) (namespaced, known bool) { return scope.namespaced, scope.known })
		}
		if made, ok := it.document.Value.(*fleet.Template); ok && made.ID == t.ID && made.Digest == t.Digest {
			return made.Object()
		}
	}
	panic(fleet.Unavailable{Err: a.why(t)})
}

// why an object cannot be rendered again from the files from which it was rendered: one of
// them cannot be read, and else the cache is of another program.
func (a *again) why(t *fleet.Template) error {
	if tree, ok := a.fsys.(interface{ Err() error }); ok && tree.Err() != nil {
		return tree.Err()
	}
	return errors.New("the cache has another " + t.String() + " than git; try again with --no-cache")
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

func (u *unit) dropFrom(b *fleet.Builder) {
	for _, it := range u.items {
		if it.document.Value != nil {
			b.Drop(it.document)
		}
		for _, f := range it.findings {
			b.DropFinding(f)
		}
	}
}

func (u *unit) addTo(b *fleet.Builder) {
	for _, it := range u.items {
		if it.document.Value != nil {
			keep(&it.document, b.Add(it.document))
		}
		for i, f := range it.findings {
			keep(&it.findings[i], b.AddFinding(f))
		}
	}
}

// unit is the result of one kustomization root or plain file.
type unit struct {
	path  string
	root  bool
	items []*item
	reads map[string]state
	// steps and size are what it takes to render and to keep; kept is the size of
	// the content that a broken one keeps.
	steps, size, kept int
	// broken is why it could not be rendered. Its items are then its last good
	// ones.
	broken []fleet.Problem
	more   int // problems that are not in it
	// again renders it, where only its digests were recalled; nil for any other.
	again *again
}

// defect is why a tree or a unit is refused on which rendering itself fails (decision
// 43). What a panic says may quote a value, or differ between machines.
const defect = "fairlead cannot render this because of a defect of its own, on every machine alike; please report it, and revert what changed"

// sizeOfObject is what an object takes besides its text.
const sizeOfObject = 1 << 10

// render renders one unit. invalid are mistakes in settings and policies, which
// affect more than their unit.
func render(fsys fs.FS, name string, root bool, kinds fleet.Kinds) (u *unit, invalid []fleet.Problem) {
	v := newView(fsys)
	u = &unit{path: name, root: root, reads: v.reads}
	defer func() {
		// Whatever fails here fails on every machine. What it says may quote a value.
		if fleet.Recovered(recover()) {
			u.items, u.broken, u.more, invalid = nil, []fleet.Problem{problem(name, 0, defect)}, 0, nil
		}
	}()

	if root {
		if f := unusedComponent(v, name); f != nil {
			u.items, u.size = []*item{{findings: []*fleet.Finding{f}}}, v.bytes
			return u, nil
		}
	}

	var docs []*document
	if root {
		docs, u.broken = kustomize(v, name)
		u.steps = v.steps
	} else {
		docs, u.broken = plainFile(v, name)
	}

	u.size = v.bytes
	for _, d := range docs {
		u.size += sizeOfObject + minJSONSize(d.object)
		it, wrong := classify(d, name, kinds)
		switch {
		case len(wrong) == 0:
			u.items = append(u.items, it)
		case d.isControl(kinds):
			invalid = append(invalid, wrong...)
		default:
			u.broken = append(u.broken, wrong...)
		}
	}

	if u.broken != nil {
		if !root && IgnoreLine(u.broken[0]) != "" {
			u.broken = u.broken[:1] // says all
		}
		u.items = nil
		u.broken, u.more = first(u.broken, 0)
	}

	return u, invalid
}

// plainFile reads a file that is a unit of its own.
func plainFile(v *view, name string) ([]*document, []fleet.Problem) {
	if v.stat(name) == special {
		return nil, []fleet.Problem{problem(name, 0, notRegular(v.fsys, name))}
	}
	b, err := v.content(name)
	if err != nil {
		return nil, []fleet.Problem{problem(name, 0, cause(err))}
	}

	docs, wrong := parseFile(name, b)
	if len(wrong) > 0 && checkText(b) == nil && !looksLikeManifest(b) {
		return nil, []fleet.Problem{noManifest(wrong[0])}
	}
	return docs, wrong
}

// current reports whether everything that the unit read is unchanged.
func (u *unit) current(fsys fs.FS) bool {
	for name, was := range u.reads {
		if stateOf(fsys, name) != was {
			return false
		}
	}
	return true
}

// uses reports whether the unit has a template of one of the kinds.
func (u *unit) uses(kinds map[schema.GroupKind]bool) bool {
	return slices.ContainsFunc(u.items, func(it *item) bool { return it.open != nil && kinds[it.document.ID().GroupKind()] })
}

// scoped is the unit with the templates whose scope has changed derived again,
// or the unit itself.
func (u *unit) scoped(scope object.Scope) *unit {
	out := u
	for i, it := range u.items {
		now := it.scoped(scope)
		if now == it {
			continue
		}
		if out == u {
			copied := *u
			out = &copied
			out.items = slices.Clone(u.items)
		}
		out.items[i] = now
	}

	return out
}

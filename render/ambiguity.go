// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// checkAmbiguity refuses a tree in which an error leaves open what other
// changes mean: unreadable is not deleted, and a base is not a unit of its own.
// Both checks are about changes that come in the same commit as the error, so
// an error that was accepted earlier does not block later commits.
func (n *next) checkAmbiguity(s *fleet.Snapshot) {
	if len(n.broken) == 0 && len(n.layout.unparsed) == 0 || n.prev.layout == nil {
		return
	}

	for name, u := range n.replaced {
		n.checkMoved(s, name)
		if u != nil && u.broken == nil && len(u.items) > 0 && n.isNew(u) {
			n.checkAdded(u)
		}
	}
}

// checkMoved: a document that is gone from its unit may have moved into a new
// or changed unit that cannot be read.
func (n *next) checkMoved(s *fleet.Snapshot, from string) {
	before := n.prev.units.At(from)
	if before == nil {
		return
	}

	for _, it := range before.items {
		doc := it.document
		if !doc.Movable() || doc.In(s) {
			continue
		}

		for _, u := range n.broken {
			if n.replaced[from] == nil && n.isNew(u) || n.mentions(u, doc.ID().Name) {
				n.ambiguous(u.broken[0], "cannot tell whether %s, previously at %s, has moved here", doc, doc.Origin())
			}
		}
	}
}

// checkAdded: a new unit may belong to a kustomization that cannot be parsed,
// or replace a base that is missing.
func (n *next) checkAdded(u *unit) {
	for _, dir := range slices.Sorted(maps.Keys(n.layout.unparsed)) {
		if u.root && n.mayUse(dir, u.path) {
			n.ambiguous(n.layout.unparsed[dir], "cannot tell whether it uses %s, which is new", u.path)
		}
	}

	for _, broken := range n.broken {
		for _, base := range n.prev.layout.reach(broken.path) {
			_, was := n.prev.layout.uses[base] // was a kustomization, not a file
			if was && (u.root || under(base, u.path)) && len(kustomizationFile(n.fsys, base)) == 0 {
				n.ambiguous(broken.broken[0], "cannot tell whether %s, which is new, replaces %s, which is gone", u.path, base)
			}
		}
	}
}

func (n *next) ambiguous(p fleet.Problem, format string, args ...any) {
	n.wrong(ambiguousProblem(p, format, args...))
}

func ambiguousProblem(p fleet.Problem, format string, args ...any) fleet.Problem {
	return fleet.Problem{Origin: p.Origin, Message: p.Message + "; " + fmt.Sprintf(format, args...)}
}

// isNew reports whether a unit had no content so far.
func (n *next) isNew(u *unit) bool {
	before := n.prev.units.At(u.path)
	return before == nil || before.root != u.root || len(before.items) == 0
}

// mentions reports whether a changed file of the unit contains the name.
func (n *next) mentions(u *unit, name string) bool {
	return slices.ContainsFunc(n.changed, func(file string) bool {
		if s, read := u.reads[file]; file != u.path && !(u.root && under(u.path, file)) && (!read || s == absent) {
			return false
		}
		text, err := read(n.fsys, file)
		return err == nil && hasWord(text, name)
	})
}

func under(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// hasWord reports whether a text contains a name that is not part of a longer
// one.
func hasWord(text []byte, name string) bool {
	inName := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
	}

	for {
		at := bytes.Index(text, []byte(name))
		if at < 0 {
			return false
		}

		end := at + len(name)
		if (at == 0 || !inName(text[at-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}

		text = text[at+1:]
	}
}

// mayUse reports whether a kustomization that cannot be parsed may use a
// directory: its text contains the path, or cannot be read at all.
func (n *next) mayUse(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return true
	}

	// However many "../" it starts with, a path ends with the rest.
	for strings.HasPrefix(rel, "../") {
		rel = rel[len("../"):]
	}

	return slices.ContainsFunc(kustomizationFile(n.fsys, dir), func(file string) bool {
		text, err := read(n.fsys, path.Join(dir, file))
		return err != nil || checkText(text) != nil || bytes.Contains(text, []byte(rel))
	})
}

// reach returns the kustomizations that one uses, directly or indirectly.
func (l *layout) reach(dir string) []string {
	reached := map[string]bool{dir: true}
	for queue := l.uses[dir]; len(queue) > 0; queue = queue[1:] {
		if next := queue[0]; !reached[next] {
			reached[next] = true
			queue = append(queue[:len(queue):len(queue)], l.uses[next]...)
		}
	}

	delete(reached, dir)
	return slices.Sorted(maps.Keys(reached))
}

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

	"github.com/fairlead/fairlead/propagate"
)

// doubt refuses a tree in which what cannot be read leaves open what the rest
// means: could not read is never is gone, and a base is no unit. Both are about
// what comes and goes together with the error, so an error that was accepted
// stands in nobody's way.
func (n *next) doubt(s *propagate.Snapshot) {
	if len(n.broken) == 0 && len(n.layout.unparsed) == 0 || n.prev.layout == nil {
		return
	}
	for name, u := range n.replaced {
		n.doubtLost(s, name)
		if u != nil && u.broken == nil && len(u.items) > 0 && n.isNew(u) {
			n.doubtNew(u)
		}
	}
}

// doubtLost: a document that is gone from its unit may have moved into one
// that came, or changed, and cannot be read.
func (n *next) doubtLost(s *propagate.Snapshot, from string) {
	before := n.prev.units.At(from)
	if before == nil {
		return
	}
	for _, it := range before.items {
		name, value, there := it.in(s)
		if there || value == nil {
			continue
		}
		for _, u := range n.broken {
			if n.replaced[from] == nil && n.isNew(u) || n.mentions(u, name) {
				n.doubts(u.broken[0], "whether %s, which was at %s, has moved here cannot be told", describe(value), originOf(value))
			}
		}
	}
}

// doubtNew: a unit that is new may be part of a kustomization that cannot be
// parsed, or stand in for a base that is missed.
func (n *next) doubtNew(u *unit) {
	for _, dir := range slices.Sorted(maps.Keys(n.layout.unparsed)) {
		if u.root && n.mayUse(dir, u.path) {
			n.doubts(n.layout.unparsed[dir], "whether it uses %s, which is new, cannot be told", u.path)
		}
	}
	for _, broken := range n.broken {
		for _, base := range n.prev.layout.reach(broken.path) {
			_, was := n.prev.layout.uses[base] // and not a file
			if was && (u.root || under(base, u.path)) && len(kustomizationFile(n.fsys, base)) == 0 {
				n.doubts(broken.broken[0], "whether %s, which is new, stands in for %s, which is gone, cannot be told", u.path, base)
			}
		}
	}
}

func (n *next) doubts(p propagate.Problem, format string, args ...any) {
	n.problems = append(n.problems, doubtful(p, format, args...))
}

func doubtful(p propagate.Problem, format string, args ...any) propagate.Problem {
	return propagate.Problem{Origin: p.Origin, Message: p.Message + "; " + fmt.Sprintf(format, args...)}
}

// isNew is whether a unit had no content so far.
func (n *next) isNew(u *unit) bool {
	before := n.prev.units.At(u.path)
	return before == nil || before.root != u.root || len(before.items) == 0
}

// mentions is whether the name stands in a file of a unit that changed.
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

// hasWord is whether a name stands in a text, and is not part of another one.
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

// mayUse is whether the text of a kustomization that cannot be parsed names a
// directory, as any text may that cannot be read.
func (n *next) mayUse(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return true
	}
	// However many "../" lead to it, a path ends with what follows them.
	for strings.HasPrefix(rel, "../") {
		rel = rel[len("../"):]
	}
	return slices.ContainsFunc(kustomizationFile(n.fsys, dir), func(file string) bool {
		text, err := read(n.fsys, path.Join(dir, file))
		return err != nil || checkText(text) != nil || bytes.Contains(text, []byte(rel))
	})
}

// reach are the kustomizations that one uses, and those that they use.
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

// in is the name and the value of an item's document, and whether a snapshot
// has one of its identity.
func (it *item) in(s *propagate.Snapshot) (name string, value any, there bool) {
	switch {
	case it.cluster != nil:
		_, there = s.Clusters.Get(it.cluster.Name)
		return it.cluster.Name, it.cluster, there
	case it.policy != nil:
		_, there = s.Policies.Get(it.policy.Ref.Key())
		return it.policy.Ref.Name, it.policy, there
	case it.override != nil:
		_, there = s.Overrides.Get(it.override.Ref.Key())
		return it.override.Ref.Name, it.override, there
	case it.interpreter != nil:
		_, there = s.Interpreters.Get(it.interpreter.Name)
		return it.interpreter.Name, it.interpreter, there
	case it.rebalancer != nil:
		_, there = s.Rebalancers.Get(it.rebalancer.Name)
		return it.rebalancer.Name, it.rebalancer, there
	case it.template != nil:
		_, there = s.Templates.Get(it.template.Key())
		return it.template.Name, it.template, there
	}
	return "", nil, false
}

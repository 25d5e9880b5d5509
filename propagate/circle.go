// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ownersFirst puts what is required behind what requires it, as a template is
// decided once in a step. What lies between two keys has its place too, since
// a decision can concern it. Templates that require each other in a circle
// come as one group.
func (st *step) ownersFirst(keys []string, done map[string]bool) [][]string {
	var groups [][]string
	if st.prev.snapshot().Interpreters.Len() == 0 && st.next.Snapshot.Interpreters.Len() == 0 {
		// The rules for kinds of Kubernetes lead to nothing that requires more.
		for _, key := range keys {
			groups = append(groups, []string{key})
		}
		return groups
	}
	w := &walk{st: st, done: done, seen: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, s := range []*Snapshot{st.prev.snapshot(), st.next.Snapshot} {
		for in := range s.Interpreters.Values() {
			w.builtin = w.builtin || in.builtin()
		}
	}
	for _, key := range slices.Backward(keys) {
		w.visit(key)
	}
	slices.Reverse(w.groups)
	return w.groups
}

// walk finds the circles among templates (Tarjan's algorithm).
type walk struct {
	st     *step
	done   map[string]bool
	seen   map[string]int // in which order
	low    map[string]int // the first that it leads back to
	path   []string
	open   map[string]bool // what is on the path
	groups [][]string      // what is required first
	// builtin is whether a kind of Kubernetes has scripts: then what the rules
	// for these kinds name can require more.
	builtin bool
}

func (w *walk) visit(key string) {
	if w.seen[key] != 0 {
		return
	}
	w.seen[key] = len(w.seen) + 1
	w.low[key] = w.seen[key]
	from := len(w.path)
	w.path, w.open[key] = append(w.path, key), true
	for _, id := range slices.Backward(w.leads(key)) {
		other := id.Key()
		if w.done[other] || !w.st.needsOthers(id) {
			continue
		}
		w.visit(other)
		if w.open[other] {
			w.low[key] = min(w.low[key], w.low[other])
		}
	}
	if w.low[key] < w.seen[key] {
		return // the circle closes further up
	}
	group := slices.Clone(w.path[from:])
	w.path = w.path[:from]
	for _, member := range group {
		delete(w.open, member)
	}
	w.groups = append(w.groups, group)
}

// leads are the templates that may have to be decided after key.
func (w *walk) leads(key string) []ID {
	if id, _ := ParseKey(key); !w.builtin && hasDependencies(id.GroupKind()) {
		return nil
	}
	return w.st.mayRequire(key)
}

// mayRequire is all that a template can take along in this step, or took
// along before it.
func (st *step) mayRequire(key string) []ID {
	old, t := st.prev.Bindings.At(key), st.next.Snapshot.Templates.At(key)
	found := map[ID]bool{}
	add := func(ids []ID) {
		for _, id := range ids {
			found[id] = true
		}
	}
	of := func(t *Template) {
		if t.Namespace == "" {
			return
		}
		if a := st.answer(t, old.answered()); a != nil && a.interprets {
			named, _ := st.named(a, t.ID)
			maps.Copy(found, named)
			return
		}
		add(dependencies(t))
	}
	if t != nil {
		of(t)
	}
	if old != nil {
		add(old.references())
		for i := range old.Works {
			if c := old.Works[i].Released; c != nil {
				add(c.Requires)
			}
		}
		if old.Active != nil && old.Active.Template != t {
			of(old.Active.Template)
		}
	}
	return sortedIDs(found)
}

// circle is a group of templates that require each other, while it is decided.
type circle struct {
	members map[string]bool
	decided map[string]*Binding // in the round before
}

// bindCircle decides about templates that require each other. Each round
// decides about all of them by what the round before did, the first as if none
// of them required another: so a hold is taken off where one that is free
// requires it, and stays where all are held, however the circle was before.
// What is free travels one template further in each round, so the rounds end.
func (st *step) bindCircle(keys []string) {
	// A template that goes says what it leaves running.
	gone := func(key string) int {
		if st.next.Snapshot.Templates.At(key) == nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(gone(a)-gone(b), strings.Compare(a, b)) })
	st.circle = &circle{members: map[string]bool{}}
	for _, key := range keys {
		st.circle.members[key] = true
	}
	next, kept, deletions := st.next, st.kept, len(st.deletions)
	for range len(keys) + 3 {
		st.next, st.kept, st.deletions = next, maps.Clone(kept), st.deletions[:deletions]
		decided := map[string]*Binding{}
		for _, key := range keys {
			st.bind(key)
			decided[key] = st.next.Bindings.At(key)
		}
		if reflect.DeepEqual(st.circle.decided, decided) {
			break
		}
		st.circle.decided = decided
	}
	st.circle = nil
}

// owners yields the bindings that need id beside them. In a circle they are
// those of the round before.
func (st *step) owners(id ID) iter.Seq[*Binding] {
	return func(yield func(*Binding) bool) {
		for owner := range st.next.index.owners(id) {
			if st.circle != nil && st.circle.members[owner.Key()] {
				continue
			}
			if !yield(st.next.Bindings.At(owner.Key())) {
				return
			}
		}
		if st.circle == nil {
			return
		}
		for _, b := range st.circle.decided {
			if slices.Contains(b.references(), id) && !yield(b) {
				return
			}
		}
	}
}

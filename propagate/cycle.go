// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// ownersFirst puts what is required behind what requires it, as a template is
// decided once in a step. What lies between two keys is in the result too, since
// a decision can mark it. Templates that require each other in a cycle
// come as one group.
func ownersFirst(in *inputs, keys []string, done map[string]bool) [][]string {
	var groups [][]string
	if in.before.snapshot().Interpreters.Len() == 0 && in.after.snapshot().Interpreters.Len() == 0 {
		// The rules for kinds of Kubernetes lead to nothing that requires more.
		for _, key := range keys {
			groups = append(groups, []string{key})
		}
		return groups
	}

	w := &walk{in: in, done: done, seen: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, s := range []*fleet.Snapshot{in.before.snapshot(), in.after.snapshot()} {
		for interpreter := range s.Interpreters.Values() {
			w.builtin = w.builtin || interpreter.Builtin()
		}
	}

	for _, key := range slices.Backward(keys) {
		w.visit(key)
	}
	slices.Reverse(w.groups)
	return w.groups
}

// walk goes along what templates require and finds the cycles among them
// (Tarjan's algorithm).
type walk struct {
	in     *inputs
	done   map[string]bool
	seen   map[string]int // in which order
	low    map[string]int // the first that it leads back to
	path   []string
	open   map[string]bool // what is on the path
	groups [][]string      // what is required first

	// builtin says that a kind of Kubernetes has scripts: then what the rules
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
		if w.done[other] || !w.in.canRequire(id) {
			continue
		}
		w.visit(other)
		if w.open[other] {
			w.low[key] = min(w.low[key], w.low[other])
		}
	}

	if w.low[key] < w.seen[key] {
		return // the cycle closes further up
	}

	group := slices.Clone(w.path[from:])
	w.path = w.path[:from]
	for _, member := range group {
		delete(w.open, member)
	}

	w.groups = append(w.groups, group)
}

// leads are the templates that may have to be decided after key.
func (w *walk) leads(key string) []object.ID {
	if id, _ := object.ParseKey(key); !w.builtin && fleet.HasDependencies(id.GroupKind()) {
		return nil
	}
	return w.mayRequire(key)
}

// mayRequire is all that a template can require in this step, or required before
// it.
func (w *walk) mayRequire(key string) []object.ID {
	old, t := w.in.before.Bindings.At(key), w.in.after.snapshot().Templates.At(key)
	found := map[object.ID]bool{}
	add := func(ids []object.ID) {
		for _, id := range ids {
			found[id] = true
		}
	}

	if t != nil {
		maps.Copy(found, w.requiredBy(t, old))
	}
	if old == nil {
		return object.SortedIDs(found)
	}

	add(old.references())
	for i := range old.Works {
		if c := old.Works[i].Released; c != nil {
			add(c.Requires)
		}
	}

	if old.Active != nil && old.Active.Template != t {
		maps.Copy(found, w.requiredBy(old.Active.Template, old))
	}
	return object.SortedIDs(found)
}

// requiredBy are the objects that the scripts or the rules of its kind name for
// a template.
func (w *walk) requiredBy(t *fleet.Template, old *Binding) map[object.ID]bool {
	if t.Namespace == "" {
		return nil
	}
	if a := w.in.answersOf(t, old.answered()); a != nil && a.interprets {
		named, _ := w.in.after.index.named(a, t.ID)
		return named
	}

	found := map[object.ID]bool{}
	for _, id := range fleet.Dependencies(t) {
		found[id] = true
	}
	return found
}

// cycle is a group of templates that require each other, while it is decided.
type cycle struct {
	members map[string]bool
	decided map[string]*Binding // in the round before
}

// bindCycle decides about templates that require each other. Each round
// decides about all of them by what the round before did, the first as if none
// of them required another: so a hold is taken off where one that is free
// requires it, and stays where all are held, however the cycle was before.
// What is free reaches one template further in each round, so the rounds end.
func (st *step) bindCycle(keys []string) {
	st.removedFirst(keys)
	st.cycle = &cycle{members: map[string]bool{}}
	for _, key := range keys {
		st.cycle.members[key] = true
	}

	next, kept, deletions := st.next, st.kept, len(st.removals.deletions)
	for range len(keys) + 3 {
		// Every round starts from the state before the first.
		st.next, st.kept, st.removals.deletions = next, maps.Clone(kept), st.removals.deletions[:deletions]

		decided := map[string]*Binding{}
		for _, key := range keys {
			st.bind(key)
			decided[key] = st.next.Bindings.At(key)
		}
		if reflect.DeepEqual(st.cycle.decided, decided) {
			break
		}
		st.cycle.decided = decided
	}

	st.cycle = nil
}

// removedFirst puts removed templates first: whether what they required is left
// running has to be known before that is decided.
func (st *step) removedFirst(keys []string) {
	rank := func(key string) int {
		if st.next.Snapshot.Templates.At(key) == nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
}

// has reports whether a template is in the cycle; in no cycle nothing is.
func (c *cycle) has(id object.ID) bool { return c != nil && c.members[id.Key()] }

// owners yields the bindings that need id beside them. In a cycle they are
// those of the round before.
func (c *cycle) owners(s *State, id object.ID) iter.Seq[*Binding] {
	if c == nil {
		return s.owners(id)
	}
	return func(yield func(*Binding) bool) {
		for b := range s.owners(id) {
			if !c.has(b.ID) && !yield(b) {
				return
			}
		}
		for _, b := range c.decided {
			if slices.Contains(b.references(), id) && !yield(b) {
				return
			}
		}
	}
}

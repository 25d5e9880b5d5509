// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"reflect"

	"github.com/fairlead/fairlead/ordered"
)

// Builder makes a snapshot from the one before it. What is dropped and added
// again, equal, stays the same pointer.
type Builder struct {
	before   *Snapshot
	like     *Snapshot // of which what is equal is taken, or nil
	clash    clash
	edits    map[Kind]edit
	findings *edits[*Finding]
}

// clash is told what exists more than once, and where.
type clash = func(what string, places ...Origin)

// Build starts a snapshot that follows before. clash is told of each document
// that exists more than once.
func Build(before *Snapshot, clash func(what string, places ...Origin)) *Builder {
	return &Builder{before: before, clash: clash, edits: map[Kind]edit{}, findings: &edits[*Finding]{
		before: before.Findings,
		key:    findingKey,
		equal:  func(a, b *Finding) bool { return reflect.DeepEqual(a, b) },
	}}
}

// Like has the builder take what is added, and equal to what another snapshot has, from
// there; nil takes nothing.
func (b *Builder) Like(other *Snapshot) *Builder {
	b.like = other
	if other != nil {
		b.findings.like = other.Findings
	}
	return b
}

// findingKey sorts by file and line.
func findingKey(f *Finding) string {
	return fmt.Sprintf("%s:%08d %s %s", f.Origin.File, f.Origin.Line, f.Code, f.Object.Key())
}

// Drop removes a document of the snapshot before. All calls come before those
// of Add.
func (b *Builder) Drop(d Document) { b.of(d.kind).drop(d.Value) }

// Add adds a document. It returns the document that the snapshot has: the one
// that was dropped if it is equal.
func (b *Builder) Add(d Document) Document { return Document{d.kind, b.of(d.kind).add(d.Value)} }

// DropFinding is Drop for a finding.
func (b *Builder) DropFinding(f *Finding) { b.findings.drop(f) }

// AddFinding is Add for a finding.
func (b *Builder) AddFinding(f *Finding) *Finding { return b.findings.add(f) }

// Snapshot returns the result. It has the units of the snapshot before.
func (b *Builder) Snapshot() *Snapshot {
	s := *b.before
	for _, e := range b.edits {
		e.into(&s)
	}
	s.Findings = b.findings.result()
	return &s
}

func (b *Builder) of(k Kind) edit {
	e := b.edits[k]
	if e == nil {
		e = k.edit(b.before, b.like, b.clash)
		b.edits[k] = e
	}
	return e
}

// edit collects the changes of the documents of one kind.
type edit interface {
	drop(value any)
	add(value any) any
	into(s *Snapshot)
}

// documentEdits is the edit of a kind whose documents become a V.
type documentEdits[V comparable] struct {
	edits[V]
	kind  *kind[V]
	clash clash
}

func (k *kind[V]) edit(s, like *Snapshot, clash clash) edit {
	var likely ordered.Map[V]
	if like != nil {
		likely = k.load(like)
	}
	again := func(v V, places ...Origin) { clash(Document{k, v}.String(), places...) }
	return &documentEdits[V]{edits[V]{before: k.load(s), like: likely, key: k.Key, equal: k.Equal, origin: k.Origin, again: again}, k, clash}
}

func (e *documentEdits[V]) drop(value any)    { e.edits.drop(value.(V)) }
func (e *documentEdits[V]) add(value any) any { return e.edits.add(value.(V)) }

func (e *documentEdits[V]) into(s *Snapshot) {
	all := e.result()
	e.kind.store(s, all)
	if c, ok := e.kind.held.(comparer[V]); ok && !all.Same(e.before) {
		c.Compare(all, e.clash)
	}
}

// edits collects the changes of one map of the snapshot.
type edits[V comparable] struct {
	before   ordered.Map[V]
	like     ordered.Map[V] // what equals one of these is that one
	old, now map[string]V

	key    func(V) string
	equal  func(a, b V) bool
	origin func(V) Origin
	// again is told of a second value with the same key; nil if there may be one.
	again func(v V, places ...Origin)
}

func (e *edits[V]) drop(value V) {
	if e.old == nil {
		e.old = map[string]V{}
	}
	e.old[e.key(value)] = value
}

func (e *edits[V]) add(value V) V {
	if e.now == nil {
		e.now = map[string]V{}
	}

	key := e.key(value)
	if first, twice := e.now[key]; twice && e.again != nil {
		e.again(value, e.origin(first), e.origin(value))
	}

	was, replaced := e.old[key]
	switch other, there := e.before.Get(key); {
	case replaced && e.equal(was, value):
		value = was
	case there && !replaced && e.again != nil:
		e.again(value, e.origin(other), e.origin(value))
	}
	if same, there := e.like.Get(key); there && e.equal(same, value) {
		value = same
	}

	e.now[key] = value
	return value
}

func (e *edits[V]) result() ordered.Map[V] {
	if e.before.Len() == 0 {
		return ordered.Of(e.now)
	}

	m := e.before
	for key := range e.old {
		if _, stays := e.now[key]; !stays {
			m = m.Without(key)
		}
	}

	for key, value := range e.now {
		m = m.With(key, value)
	}
	return m
}

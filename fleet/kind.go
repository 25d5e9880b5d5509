// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// Kind is a kind of document: it reads documents, and knows where a snapshot
// keeps them.
type Kind interface {
	// Read decodes, defaults and validates a document. The findings are remarks on
	// a valid one.
	Read(s *Source) (Document, []*Finding, []Problem)

	names() Names
	id(value any) object.ID
	key(value any) string
	origin(value any) Origin
	has(s *Snapshot, key string) bool
	edit(s, like *Snapshot, clash clash) edit
	edited(before, after *Snapshot, yield func(object.ID) bool) bool
}

// Names are what the documents of a kind give as their apiVersion and kind.
type Names struct {
	GroupVersion schema.GroupVersion
	Kinds        []string
}

// held is what a snapshot needs to know of a kind whose documents become a V.
type held[V comparable] interface {
	// ID is the identity of a document as an object. It has no name if there can
	// only be one.
	ID(V) object.ID
	// Key is unique among the documents of the kind.
	Key(V) string
	Origin(V) Origin
	// Equal reports whether two documents with the same key are equal, down to
	// their lines. A snapshot then keeps the older one, so that comparing pointers
	// shows that nothing changed.
	Equal(a, b V) bool
}

// written is a kind that is written in git as a D.
type written[D any, V comparable] interface {
	held[V]
	Names() Names
	// Default sets what the document leaves out.
	Default(doc *D, c *check)
	// Validate checks a defaulted document, which it owns, and returns what it
	// becomes if it is valid.
	Validate(doc *D, c *check) V
}

// A kind may also be one of these.
type (
	// preparer looks at a document before it is decoded, and may change it.
	preparer interface {
		Prepare(s *Source) ([]*Finding, []Problem)
	}
	// fielded keeps its documents in a field of the snapshot. Those of the other
	// kinds are found with Of.
	fielded[V comparable] interface {
		Load(s *Snapshot) ordered.Map[V]
		Store(s *Snapshot, all ordered.Map[V])
	}
	// told tells people of edits.
	told[V comparable] interface {
		// Same reports whether two documents say the same, wherever they are.
		Same(a, b V) bool
	}
	// comparer finds what only one of its documents may have.
	comparer[V comparable] interface {
		Compare(all ordered.Map[V], clash clash)
	}
)

// kind is a Kind. Its read is nil if its documents are not decoded.
type kind[V comparable] struct {
	held[V]
	called Names
	read   func(*Source) (V, []*Finding, []Problem)
}

func kindOf[D any, V comparable](w written[D, V]) Kind {
	return &kind[V]{w, w.Names(), func(s *Source) (V, []*Finding, []Problem) { return read(w, s) }}
}

// read reads a document of a kind that is written in git.
func read[D any, V comparable](w written[D, V], s *Source) (v V, found []*Finding, wrong []Problem) {
	if p, ok := w.(preparer); ok {
		if found, wrong = p.Prepare(s); len(wrong) > 0 {
			return v, nil, wrong
		}
	}

	doc := new(D)
	if wrong = s.decode(doc); len(wrong) > 0 {
		return v, nil, wrong
	}

	v, wrong = build(w, doc, &check{origin: s.Origin, unit: s.Unit, lines: s.Lines()})
	return v, found, wrong
}

// build defaults and validates a decoded document, which it owns.
func build[D any, V comparable](w written[D, V], doc *D, c *check) (V, []Problem) {
	w.Default(doc, c)
	v := w.Validate(doc, c)
	if len(c.problems) > 0 {
		var none V
		return none, c.problems
	}
	return v, nil
}

// Read implements Kind.
func (k *kind[V]) Read(s *Source) (Document, []*Finding, []Problem) {
	v, found, wrong := k.read(s)
	if len(wrong) > 0 {
		return Document{}, nil, wrong
	}
	return Document{k, v}, found, nil
}

func (k *kind[V]) names() Names            { return k.called }
func (k *kind[V]) id(value any) object.ID  { return k.ID(value.(V)) }
func (k *kind[V]) key(value any) string    { return k.Key(value.(V)) }
func (k *kind[V]) origin(value any) Origin { return k.Origin(value.(V)) }

func (k *kind[V]) has(s *Snapshot, key string) bool {
	_, there := k.load(s).Get(key)
	return there
}

func (k *kind[V]) load(s *Snapshot) ordered.Map[V] {
	if f, ok := k.held.(fielded[V]); ok {
		return f.Load(s)
	}
	return Of[V](s)
}

func (k *kind[V]) store(s *Snapshot, all ordered.Map[V]) {
	if f, ok := k.held.(fielded[V]); ok {
		f.Store(s, all)
		return
	}
	s.others = s.others.With(k.called.Kinds[0]+"."+k.called.GroupVersion.Group, all)
}

// Of returns the documents, by key, of a kind that has no field in Snapshot. V
// is what they become.
func Of[V comparable](s *Snapshot) ordered.Map[V] {
	for all := range s.others.Values() {
		if all, ok := all.(ordered.Map[V]); ok {
			return all
		}
	}
	return ordered.Map[V]{}
}

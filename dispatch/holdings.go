// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"iter"
	"maps"
	"slices"
	"unique"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// holdings are what a member is known to hold: its part of the inventory, in
// memory. Its owner holds the lock.
type holdings struct {
	// entries are packed, because a large fleet has millions.
	entries    map[Key]packedEntry
	apiVersion unique.Handle[string] // of the last entry: the next one often has the same
	// named are the UIDs that a packed entry has no room for.
	named map[Key]types.UID
	// kinds counts the objects of each kind that are there.
	kinds map[schema.GroupVersionKind]int
	// kindsChanged says that a kind came or went since somebody looked.
	kindsChanged bool
	// left are copies that were left running, which are not ours any more.
	left map[object.ID]types.UID
}

// newHoldings has room for entries.
func newHoldings(entries int) holdings {
	return holdings{
		apiVersion: unique.Make(""),
		entries:    make(map[Key]packedEntry, entries),
		named:      map[Key]types.UID{},
		kinds:      map[schema.GroupVersionKind]int{},
		left:       map[object.ID]types.UID{},
	}
}

// put adds an entry where there is none.
func (h *holdings) put(id object.ID, e *Entry) {
	if e.Left != "" {
		h.left[id] = e.Left
	}
	if !e.isLeft() {
		h.keep(id, e)
		h.count(id, e, +1)
	}
}

// any reports whether the member is known to hold an object of ours.
func (h *holdings) any() bool { return len(h.kinds) > 0 }

// has reports whether an object is on record.
func (h *holdings) has(id object.ID) bool {
	_, ok := h.entries[unique.Make(id)]
	return ok
}

// acknowledged is the digest that an object has on record; zero for an intent.
func (h *holdings) acknowledged(key Key) (digest object.Digest, ok bool) {
	p, ok := h.entries[key]
	return p.digest, ok
}

// entry is what is on record of an object; zero without one.
func (h *holdings) entry(id object.ID) (Entry, bool) {
	key := unique.Make(id)
	p, ok := h.entries[key]
	if !ok {
		return Entry{}, false
	}

	e := p.unpack()
	if uid, ok := h.named[key]; ok {
		e.UID = uid
	}
	if e.UID == "" {
		e.Left = h.left[id]
	}
	return e, true
}

// there reports whether an object is there, and not only an intent.
func (h *holdings) there(id object.ID) bool {
	key := unique.Make(id)
	return h.entries[key].uuid != uuid.Nil || h.named[key] != ""
}

// uid is that of an object; empty for an intent, and where nothing is on record.
func (h *holdings) uid(id object.ID) types.UID {
	e, _ := h.entry(id)
	return e.UID
}

// ids are of all that is on record. Meanwhile an entry may be dropped.
func (h *holdings) ids() iter.Seq[object.ID] {
	return func(yield func(object.ID) bool) {
		for key := range h.entries {
			if !yield(key.Value()) {
				return
			}
		}
	}
}

// all is everything that is on record.
func (h *holdings) all() map[object.ID]Entry {
	all := make(map[object.ID]Entry, len(h.entries))
	for id := range h.ids() {
		all[id], _ = h.entry(id)
	}
	return all
}

// digests are what was acknowledged of each object.
func (h *holdings) digests() map[object.ID]object.Digest {
	all := make(map[object.ID]object.Digest, len(h.entries))
	for key, p := range h.entries {
		if p.digest != (object.Digest{}) {
			all[key.Value()] = p.digest
		}
	}
	return all
}

// versions yields the objects of a kind that are there, or were to be made, with their
// versions.
func (h *holdings) versions(kind schema.GroupKind) iter.Seq2[object.ID, uint64] {
	return func(yield func(object.ID, uint64) bool) {
		for key, p := range h.entries {
			if id := key.Value(); id.GroupKind() == kind && !yield(id, p.version) {
				return
			}
		}
	}
}

// set writes an entry; nil drops it. What comes is counted before what goes: a kind
// with a single object stays while that one is written.
func (h *holdings) set(id object.ID, e *Entry) {
	was, had := h.entry(id)
	switch {
	case e == nil:
		h.drop(id)
		delete(h.left, id)
	case e.isLeft():
		h.drop(id)
		h.left[id] = e.Left
	default:
		h.keep(id, e)
		h.count(id, e, +1)
		if e.UID != "" {
			delete(h.left, id) // it is ours again, or another one is
		}
	}

	if had {
		h.count(id, &was, -1)
	}
}

func (h *holdings) keep(id object.ID, e *Entry) {
	key := unique.Make(id)
	if h.apiVersion.Value() != e.APIVersion {
		h.apiVersion = unique.Make(e.APIVersion)
	}
	p, whole := e.pack(h.apiVersion)
	h.entries[key] = p
	delete(h.named, key)
	if !whole {
		h.named[key] = e.UID
	}
}

func (h *holdings) drop(id object.ID) {
	key := unique.Make(id)
	delete(h.entries, key)
	delete(h.named, key)
}

// count leaves out intents, and the identity, which is no object.
func (h *holdings) count(id object.ID, e *Entry, by int) {
	if e.UID == "" || id == IdentityID {
		return
	}

	gvk := member.RefTo(id, e.APIVersion).GroupVersionKind
	was := h.kinds[gvk]
	if h.kinds[gvk] = was + by; h.kinds[gvk] <= 0 {
		delete(h.kinds, gvk)
	}
	h.kindsChanged = h.kindsChanged || (was > 0) != (h.kinds[gvk] > 0)
}

// intent is the entry of an object that is to be made. What was left running in its
// place stays known until it is.
func (h *holdings) intent(id object.ID, apiVersion string) *Entry {
	return &Entry{APIVersion: apiVersion, Left: h.left[id]}
}

// held are the kinds of which there are objects.
func (h *holdings) held() []schema.GroupVersionKind { return slices.Collect(maps.Keys(h.kinds)) }

// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// holdings are what a member is known to hold: its part of the inventory, in
// memory. Its owner holds the lock.
type holdings struct {
	entries map[object.ID]Entry
	// kinds counts the objects of each kind that are there.
	kinds map[schema.GroupVersionKind]int
	// kindsChanged says that a kind came or went since somebody looked.
	kindsChanged bool
	// left are copies that were left running, which are not ours any more.
	left map[object.ID]types.UID
}

func newHoldings(entries map[object.ID]Entry) holdings {
	h := holdings{entries: entries, kinds: map[schema.GroupVersionKind]int{}, left: map[object.ID]types.UID{}}
	if h.entries == nil {
		h.entries = map[object.ID]Entry{}
	}

	for id, e := range h.entries {
		if e.Left != "" {
			h.left[id] = e.Left
		}
		if e.isLeft() {
			delete(h.entries, id)
			continue
		}
		h.count(id, e, +1)
	}
	return h
}

// any reports whether the member is known to hold an object of ours.
func (h *holdings) any() bool { return len(h.kinds) > 0 }

// set writes an entry; nil drops it. What comes is counted before what goes: a kind
// with a single object stays while that one is written.
func (h *holdings) set(id object.ID, e *Entry) {
	was, had := h.entries[id]
	switch {
	case e == nil:
		delete(h.entries, id)
		delete(h.left, id)
	case e.isLeft():
		delete(h.entries, id)
		h.left[id] = e.Left
	default:
		h.entries[id] = *e
		h.count(id, *e, +1)
		if e.UID != "" {
			delete(h.left, id) // it is ours again, or another one is
		}
	}

	if had {
		h.count(id, was, -1)
	}
}

// count leaves out intents, and the identity, which is no object.
func (h *holdings) count(id object.ID, e Entry, by int) {
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

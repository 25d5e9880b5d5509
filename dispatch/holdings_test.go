// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/object"
)

// What kinds a member holds objects of, after a change to what it held. Who watches
// them is told when one came or went, and only then.
func TestHoldings(t *testing.T) {
	there := func(uid string) *Entry { return &Entry{APIVersion: "v1", UID: types.UID(uid)} }
	intent := &Entry{APIVersion: "v1"}
	other := "ConfigMap shop/other"
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	later := schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}

	type change struct {
		object string
		entry  *Entry
	}
	for _, test := range []struct {
		name   string
		had    map[object.ID]Entry
		change change
		want   map[schema.GroupVersionKind]int
		tells  bool
	}{
		{"the first object of a kind", nil, change{settings, there("1")}, map[schema.GroupVersionKind]int{kind: 1}, true},
		{"the second", map[object.ID]Entry{idOf(other): *there("2")}, change{settings, there("1")}, map[schema.GroupVersionKind]int{kind: 2}, false},
		{"the second goes", map[object.ID]Entry{idOf(other): *there("2"), idOf(settings): *there("1")}, change{other, nil}, map[schema.GroupVersionKind]int{kind: 1}, false},
		{"the last goes", map[object.ID]Entry{idOf(settings): *there("1")}, change{settings, nil}, map[schema.GroupVersionKind]int{}, true},
		{"what is not there goes", map[object.ID]Entry{idOf(settings): *there("1")}, change{other, nil}, map[schema.GroupVersionKind]int{kind: 1}, false},
		{"the only one is acknowledged again", map[object.ID]Entry{idOf(settings): *there("1")}, change{settings, there("1")}, map[schema.GroupVersionKind]int{kind: 1}, false},
		{"it is replaced", map[object.ID]Entry{idOf(settings): *there("1")}, change{settings, there("2")}, map[schema.GroupVersionKind]int{kind: 1}, false},
		{"an intent is no object", nil, change{settings, intent}, map[schema.GroupVersionKind]int{}, false},
		{"an intent is met", map[object.ID]Entry{idOf(settings): *intent}, change{settings, there("1")}, map[schema.GroupVersionKind]int{kind: 1}, true},
		{"an object that is gone is to be made again", map[object.ID]Entry{idOf(settings): *there("1")}, change{settings, intent}, map[schema.GroupVersionKind]int{}, true},
		{"it is left running", map[object.ID]Entry{idOf(settings): *there("1")}, change{settings, &Entry{Left: "1"}}, map[schema.GroupVersionKind]int{}, true},
		{"what was left running is taken back", map[object.ID]Entry{idOf(settings): {Left: "1"}}, change{settings, there("1")}, map[schema.GroupVersionKind]int{kind: 1}, true},
		{"another version is another kind to watch", map[object.ID]Entry{idOf(settings): *there("1")}, change{settings, &Entry{APIVersion: "v2", UID: "1"}}, map[schema.GroupVersionKind]int{later: 1}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := heldOf(test.had)
			h.kindsChanged = false
			h.set(idOf(test.change.object), test.change.entry)

			if !maps.Equal(h.kinds, test.want) || h.any() != (len(test.want) > 0) {
				t.Errorf("kinds %v, any %v; want %v", h.kinds, h.any(), test.want)
			}
			if held := h.held(); len(held) != len(test.want) || len(held) == 1 && test.want[held[0]] == 0 {
				t.Errorf("held are %v, want %v", held, slices.Collect(maps.Keys(test.want)))
			}
			if h.kindsChanged != test.tells {
				t.Errorf("it tells of kinds: %v, want %v", h.kindsChanged, test.tells)
			}

			entry, ok := h.entry(idOf(test.change.object))
			want := test.change.entry
			if want.isLeft() {
				if h.left[idOf(test.change.object)] != want.Left {
					t.Errorf("what was left running is %v", h.left)
				}
				want = nil
			}
			if ok != (want != nil) || ok && entry != *want {
				t.Errorf("the entry is %+v (%v), want %+v", entry, ok, want)
			}
		})
	}
}

// Who the member is stands among what it holds, and is no object of ours.
func TestHoldingsOfIdentity(t *testing.T) {
	h := heldOf(map[object.ID]Entry{IdentityID: {APIVersion: "v1", UID: "a"}})
	if h.any() || h.kindsChanged {
		t.Errorf("kinds %v", h.kinds)
	}

	h.set(IdentityID, &Entry{APIVersion: "v1", UID: "b"})
	if h.any() || h.kindsChanged || h.uid(IdentityID) != "b" {
		t.Errorf("kinds %v, UID %v", h.kinds, h.uid(IdentityID))
	}
}

// What the inventory has is counted, and is news to who watches.
func TestHoldingsOfInventory(t *testing.T) {
	h := heldOf(map[object.ID]Entry{
		idOf(settings): {APIVersion: "v1", UID: "1"},
		idOf(shop):     {APIVersion: "v1", UID: "2"},
		idOf(web):      {APIVersion: "apps/v1"},
	})
	want := map[schema.GroupVersionKind]int{{Version: "v1", Kind: "ConfigMap"}: 1, {Version: "v1", Kind: "Namespace"}: 1}
	if !maps.Equal(h.kinds, want) || !h.kindsChanged {
		t.Errorf("kinds %v, news %v; want %v", h.kinds, h.kindsChanged, want)
	}

	h.set(idOf("ConfigMap shop/other"), &Entry{APIVersion: "v1", UID: "3"})
	if !h.kindsChanged {
		t.Error("nobody has looked, and it is no news any more")
	}
}

func heldOf(entries map[object.ID]Entry) holdings {
	h := newHoldings(0)
	for id, e := range entries {
		h.put(id, &e)
	}
	return h
}

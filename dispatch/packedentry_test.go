// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"strings"
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// What is on record reads as it was written, whatever kind of UID it has: holdings agree
// with a plain map, entry by entry.
func TestHoldingsArePacked(t *testing.T) {
	ids := []object.ID{idOf(settings), idOf(shop), idOf(web), IdentityID}
	uids := []types.UID{
		"", "1", "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7",
		"0F8FAD5B-D9CB-469F-A165-70867728950E",
		"00000000-0000-0000-0000-000000000000",
		"0f8fad5bd9cb-469f-a165-70867728950e-",
		"0f8fad5b-d9cb-469f-a165-70867728950g",
		types.UID(strings.Repeat("a", 40)),
		types.UID(object.DigestOf([]byte("file")).String()),
	}

	rapid.Check(t, func(t *rapid.T) {
		h, want := newHoldings(0), map[object.ID]Entry{}
		for range rapid.IntRange(1, 12).Draw(t, "writes") {
			id := rapid.SampledFrom(ids).Draw(t, "id")
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				h.set(id, nil)
				delete(want, id)
				continue
			}
			e := Entry{
				APIVersion: rapid.SampledFrom([]string{"v1", "apps/v1"}).Draw(t, "version"),
				UID:        rapid.SampledFrom(uids).Draw(t, "uid"),
				Digest:     object.DigestOf([]byte{rapid.Byte().Draw(t, "content")}),
				Fields:     member.Fields(rapid.Uint64().Draw(t, "fields")),
				Version:    rapid.Uint64().Draw(t, "resourceVersion"),
			}
			h.set(id, &e)
			want[id] = e
		}

		if got := h.all(); len(got) != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for _, id := range ids {
			e, ok := h.entry(id)
			w, wanted := want[id]
			if ok != wanted || h.has(id) != wanted || h.there(id) != (w.UID != "") || h.uid(id) != w.UID || e != w {
				t.Errorf("%s is %+v (%v), there %v; want %+v (%v)", id, e, ok, h.there(id), w, wanted)
			}
			if digest, _ := h.acknowledged(unique.Make(id)); digest != w.Digest {
				t.Errorf("%s has the digest %s, want %s", id, digest, w.Digest)
			}
		}
		if len(h.named) > len(h.entries) {
			t.Errorf("%d UIDs of %d entries", len(h.named), len(h.entries))
		}
	})
}

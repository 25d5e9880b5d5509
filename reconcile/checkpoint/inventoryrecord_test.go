// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"testing"

	"github.com/fairlead/fairlead/object"
)

// What is read by hand is what JSON says, and what cannot be is left to JSON.
func TestInventoryRecordsReadAsTheyWereWritten(t *testing.T) {
	digest := object.DigestOf([]byte("content"))
	for _, c := range []struct {
		name  string
		want  inventoryRecord
		quick bool
	}{
		{"acknowledged", inventoryRecord{APIVersion: "apps/v1", UID: "00000000-0000-4000-8000-000000000001", Digest: digest, Fields: 1<<63 + 1}, true},
		{"of an inventory without fields", inventoryRecord{APIVersion: "v1", UID: "1", Digest: digest}, false},
		{"an intent", inventoryRecord{APIVersion: "v1"}, false},
		{"of a strange server", inventoryRecord{APIVersion: "v1", UID: "a\"b\\c", Digest: digest, Fields: 1}, false},
		{"not of ASCII", inventoryRecord{APIVersion: "v1", UID: "<é>", Digest: digest, Fields: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sealed, err := seal(c.want)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := openInventoryRecord(sealed); err != nil || got != c.want {
				t.Errorf("%v %+v, want %+v", err, got, c.want)
			}
			if _, quick := quickInventoryRecord(sealed[checksumSize:]); quick != c.quick {
				t.Errorf("by hand: %v", quick)
			}
			sealed[len(sealed)-1]++
			if _, err := openInventoryRecord(sealed); err == nil {
				t.Error("a damaged record is read")
			}
		})
	}
	raw, err := json.Marshal(inventoryRecord{APIVersion: "v1", UID: "1", Digest: digest, Fields: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		if _, ok := quickInventoryRecord(raw[:i]); ok {
			t.Errorf("%s is read", raw[:i])
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"maps"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/object"
)

// Of an inventory that is damaged in one place nothing is believed: a part of it would say
// that the rest is not there. That of another cluster stays.
func TestDamagedInventoryIsDropped(t *testing.T) {
	c, damage, err := Open(t.TempDir())
	if err != nil || damage != nil {
		t.Fatal(err, damage)
	}
	defer c.Close()

	entries := map[object.ID]*dispatch.Entry{}
	for _, name := range []string{"a", "b", "c"} {
		entries[object.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}] = &dispatch.Entry{APIVersion: "v1", UID: "1"}
	}
	if err := c.Inventory().Save(map[string]map[object.ID]*dispatch.Entry{"eu": entries, "us": entries}); err != nil {
		t.Fatal(err)
	}
	err = c.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketInventory).Bucket([]byte("eu"))
		key, raw := b.Cursor().Last()
		return b.Put(key, bytes.Replace(raw, []byte(`"1"`), []byte(`"2"`), 1))
	})
	if err != nil {
		t.Fatal(err)
	}

	held := func(cluster string) map[object.ID]dispatch.Entry {
		all := map[object.ID]dispatch.Entry{}
		if err := c.Inventory().Load(cluster, func(int) {}, func(id object.ID, e *dispatch.Entry) { all[id] = *e }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if eu := held("eu"); len(eu) != 0 {
		t.Errorf("of a damaged inventory is believed: %v", eu)
	}
	want := map[object.ID]dispatch.Entry{}
	for id, e := range entries {
		want[id] = *e
	}
	if us := held("us"); !maps.Equal(us, want) {
		t.Errorf("the other cluster has %v, want %v", us, want)
	}

	if err := c.Inventory().Save(map[string]map[object.ID]*dispatch.Entry{"eu": entries}); err != nil {
		t.Fatal(err)
	}
	if eu := held("eu"); !maps.Equal(eu, want) {
		t.Errorf("written again, it has %v, want %v", eu, want)
	}
}

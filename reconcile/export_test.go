// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/json"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

// SetEngine makes this another version of the engine, as an upgrade would.
func SetEngine(t testing.TB, version string) {
	before := engine
	engine = version
	t.Cleanup(func() { engine = before })
}

// Age writes a checkpoint as an earlier version wrote it, and returns how many
// records it has. The edit is made to the head.
func Age(t testing.TB, file string, edit func(head map[string]any), sealed bool) (records int) {
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		buckets := []*bbolt.Bucket{tx.Bucket(bucketMeta), tx.Bucket(bucketBindings), tx.Bucket(bucketDeparted), tx.Bucket(bucketLeft)}
		inventory := tx.Bucket(bucketInventory)
		if err := inventory.ForEachBucket(func(name []byte) error {
			buckets = append(buckets, inventory.Bucket(name))
			return nil
		}); err != nil {
			return err
		}
		for _, b := range buckets {
			plain := map[string][]byte{}
			if err := b.ForEach(func(key, raw []byte) error {
				plain[string(key)] = append([]byte{}, raw...)
				return nil
			}); err != nil {
				return err
			}
			for key, raw := range plain {
				records++
				raw = raw[4:]
				if key == string(keyHead) {
					var h map[string]any
					if err := json.Unmarshal(raw, &h); err != nil {
						return err
					}
					edit(h)
					if raw, err = json.Marshal(h); err != nil {
						return err
					}
				}
				if sealed {
					if raw, err = seal(json.RawMessage(raw)); err != nil {
						return err
					}
				}
				if err := b.Put([]byte(key), raw); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// FleetOf is a state as dispatch asks about it.
func FleetOf(state *propagate.State) dispatch.Fleet { return newLevel(state) }

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fairlead/fairlead/reconcile"
)

// F33: whatever happens to the checkpoint, the next run says so in a line,
// folds the history again, and sends no member anything.
func TestDamagedCheckpointIsPutAside(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("first release", quickstart(t))
	w.settle()
	w.writes()
	file := filepath.Join(w.state, "checkpoint.db")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func() []byte{
		"empty":      func() []byte { return []byte{} },
		"truncated":  func() []byte { return good[:len(good)/2] },
		"no page":    func() []byte { return good[:100] },
		"garbage":    func() []byte { return []byte(strings.Repeat("nothing of ours\n", 4096)) },
		"page zeros": func() []byte { return append(append([]byte{}, good[:4*4096]...), make([]byte, len(good)-4*4096)...) },
		"half zeros": func() []byte { return append(append([]byte{}, good[:len(good)/2]...), make([]byte, len(good)/2)...) },
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		at, bit := rng.IntN(len(good)), byte(1)<<rng.IntN(8)
		damages["a flipped bit at "+strconv.Itoa(at)] = func() []byte {
			b := append([]byte{}, good...)
			b[at] ^= bit
			return b
		}
	}
	told := 0
	for name, damage := range damages {
		if err := os.WriteFile(file, damage(), 0o600); err != nil {
			t.Fatal(err)
		}
		w.said()
		if err := w.once(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, w.said())
		}
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("%s: %v", name, writes)
		}
		if strings.Contains(w.said(), "damaged") {
			told++
		}
		os.Remove(file + ".damaged")
	}
	if told < 5 {
		t.Errorf("only %d damages of %d were noticed", told, len(damages))
	}
}

// A checkpoint of the first format, which had no checksums, is taken over: the
// history is not folded again, and no member is sent anything.
func TestCheckpointOfTheFirstFormat(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("first release", quickstart(t))
	w.settle()
	w.writes()
	w.said()
	records := age(t, filepath.Join(w.state, "checkpoint.db"), func(head map[string]any) {
		head["format"], head["engine"] = 1, 1
	}, false)
	if records < 20 {
		t.Fatalf("only %d records", records)
	}
	w.settle()
	w.wantWrites()
	if said := w.said(); strings.Contains(said, "folded") || strings.Contains(said, "folding") {
		t.Errorf("the history was folded again:\n%s", said)
	}
}

// A checkpoint of a later version is not touched.
func TestCheckpointOfALaterFormat(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("first release", quickstart(t))
	w.settle()
	file := filepath.Join(w.state, "checkpoint.db")
	age(t, file, func(head map[string]any) { head["format"] = 99 }, true)
	before, _ := os.ReadFile(file)
	_, err := reconcile.Open(context.Background(), w.options())
	if err == nil || !strings.Contains(err.Error(), "a later fairlead") {
		t.Fatalf("opened: %v", err)
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("it was written to")
	}
}

// Fold rule 7, and decision 6: while a lazy change is pending, the process is
// killed, the checkpoint deleted, and the engine another one; no write reaches
// any member, and the change lands with its template.
func TestPendingStaysPending(t *testing.T) {
	for kind, start := range map[string]func(testing.TB) map[string]*testMember{"embedded": embeddedMembers, "real": realMembers} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, start(t))
			files := quickstart(t)
			files[policyFile] += "  activationPreference: Lazy\n"
			w.repo.Commit("first release", files)
			w.settle()
			w.wantImages("ap-1=1.0 eu-1=1.0 us-1=1.0")
			w.writes()

			lazy := strings.Replace(files[policyFile], "labelSelector:\n        matchLabels:\n          env: production\n", "clusterNames: [ap-1]\n", 1)
			if lazy == files[policyFile] {
				t.Fatalf("no placement to edit in\n%s", lazy)
			}
			w.repo.Commit("only ap-1, when the application changes", map[string]string{policyFile: lazy})
			w.settle()
			w.wantWrites()
			for _, restart := range []struct {
				name string
				do   func()
			}{
				{"the process is gone, and nothing was drained", func() { w.open().Close() }},
				{"the checkpoint is lost", func() { os.Remove(filepath.Join(w.state, "checkpoint.db")) }},
				{"the engine is another one", func() { reconcile.SetEngine(t, "0.0") }},
				{"the engine is another one, and the checkpoint is lost", func() {
					reconcile.SetEngine(t, "0.1")
					os.Remove(filepath.Join(w.state, "checkpoint.db"))
				}},
			} {
				restart.do()
				w.settle()
				if writes := w.writes(); len(writes) > 0 {
					t.Errorf("%s: %v", restart.name, writes)
				}
			}
			w.repo.Commit("release 2.0", map[string]string{
				"apps/web/kustomization.yaml": strings.ReplaceAll(files["apps/web/kustomization.yaml"], `newTag: "1.0"`, `newTag: "2.0"`),
			})
			w.settle()
			w.wantImages("ap-1=2.0 eu-1= us-1=")
		})
	}
}

// age writes a checkpoint as an earlier version wrote it, and returns how many
// records it has. The edit is made to the head.
func age(t testing.TB, file string, edit func(head map[string]any), sealed bool) (records int) {
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		buckets := []*bbolt.Bucket{tx.Bucket([]byte("meta")), tx.Bucket([]byte("bindings")), tx.Bucket([]byte("departed")), tx.Bucket([]byte("left"))}
		inventory := tx.Bucket([]byte("inventory"))
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
				if key == "head" {
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
					sum := crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))
					raw = append(binary.BigEndian.AppendUint32(nil, sum), raw...)
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

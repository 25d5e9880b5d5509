// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unique"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/render"
	"go.etcd.io/bbolt"
)

// format is of the checkpoint file. Earlier ones are migrated; a later one is
// another version's, and is not touched.
const format = 2

// engine is the version of what makes digests: of the rules, and of what
// renders.
var engine = fmt.Sprintf("%d.%d", propagate.Version, render.Version)

// The buckets of a checkpoint.
var (
	bucketMeta      = []byte("meta")
	bucketBindings  = []byte("bindings")
	bucketDeparted  = []byte("departed")
	bucketLeft      = []byte("left")
	bucketInventory = []byte("inventory") // one bucket per cluster inside
	keyHead         = []byte("head")
)

// Checkpoint keeps a state and what each member was last known to hold, in
// one file. It is a cache: git has the state, the members have their marks.
// It implements dispatch.Inventory.
type Checkpoint struct {
	file string
	db   *bbolt.DB
	kept propagate.State // what the file holds
}

// head is the part of a state that is not per object.
type head struct {
	Format   int                `json:"format"`
	Engine   string             `json:"engine"`
	Origin   Origin             `json:"origin"`
	Commit   string             `json:"commit"`
	Accepted string             `json:"accepted"`
	Refusal  *propagate.Refusal `json:"refusal,omitempty"`
	Seen     *propagate.Seen    `json:"seen,omitempty"`
	Frozen   map[string]string  `json:"frozen,omitempty"`
}

// Origin is what a checkpoint is of.
type Origin struct {
	Repo string `json:"repo"`
	Ref  string `json:"ref"`
	Path string `json:"path"`
}

// ForeignCheckpoint is the error of a state directory that belongs to another
// fleet. It is not overwritten.
type ForeignCheckpoint struct{ Of Origin }

func (e *ForeignCheckpoint) Error() string {
	return fmt.Sprintf("the state directory is of %s, ref %s, path %s: use another --state", e.Of.Repo, e.Of.Ref, e.Of.Path)
}

// Close lets the file go.
func (c *Checkpoint) Close() error { return c.db.Close() }

// Load reads the state back. It returns false when there is none: the caller
// folds the history. A state of another engine is made again of the same
// commits, which counts as no update (fold rule 7).
func (c *Checkpoint) Load(origin Origin, history *History) (propagate.State, bool, error) {
	var h head
	saved := &propagate.Saved{
		Bindings: map[propagate.ID]propagate.BindingRecord{},
		Departed: map[propagate.ID]propagate.AbsenceRecord{},
		Left:     map[propagate.ID]propagate.AbsenceRecord{},
	}
	err := guarded(func() error {
		return c.db.View(func(tx *bbolt.Tx) error {
			raw := tx.Bucket(bucketMeta).Get(keyHead)
			if raw == nil {
				return nil
			}
			if err := unseal(raw, &h); err != nil {
				return fmt.Errorf("its head: %w", err)
			}
			return errors.Join(
				read(tx.Bucket(bucketBindings), saved.Bindings),
				read(tx.Bucket(bucketDeparted), saved.Departed),
				read(tx.Bucket(bucketLeft), saved.Left),
			)
		})
	})
	if err != nil {
		return propagate.State{}, false, fmt.Errorf("checkpoint: %w", err)
	}
	switch {
	case h.Format == 0:
		return propagate.State{}, false, nil
	case h.Origin != origin:
		return propagate.State{}, false, &ForeignCheckpoint{h.Origin}
	}
	saved.Commit, saved.Accepted, saved.Refusal = h.Commit, h.Accepted, h.Refusal
	saved.Seen, saved.Frozen, saved.Renewed = h.Seen, h.Frozen, h.Engine != engine
	state, err := restore(saved, history)
	if err != nil {
		return propagate.State{}, false, fmt.Errorf("checkpoint: %w", err)
	}
	if saved.Renewed {
		// Every digest may be another one, so everything is written again.
		if err := c.Forget(); err != nil {
			return propagate.State{}, false, err
		}
		if err := c.Save(origin, state); err != nil {
			return propagate.State{}, false, err
		}
	}
	c.kept = state
	return state, true, nil
}

// restore reads the commits that hold what is active. The next commit is read
// on top of the accepted one.
func restore(saved *propagate.Saved, history *History) (propagate.State, error) {
	snapshots := map[string]*propagate.Snapshot{}
	if saved.Accepted == "" {
		return saved.Restore(snapshots)
	}
	accepted, err := history.Accepted(saved.Accepted, saved.Frozen)
	if err != nil {
		return propagate.State{}, err
	}
	snapshots[saved.Accepted] = accepted
	for _, commit := range saved.Needs(accepted) {
		if snapshots[commit], err = history.Snapshot(commit); err != nil {
			return propagate.State{}, err
		}
		if saved.Renewed && !snapshots[commit].Whole() {
			return propagate.State{}, fmt.Errorf("something was frozen at commit %s, and what that was then is not kept", short(commit))
		}
	}
	return saved.Restore(snapshots)
}

// read reads the records of a bucket, on every processor at once: those of a
// large fleet are the longest part of a start.
func read[R any](b *bbolt.Bucket, into map[propagate.ID]R) error {
	var ids []propagate.ID
	var sealed [][]byte
	err := b.ForEach(func(key, raw []byte) error {
		id, ok := propagate.ParseKey(string(key))
		if !ok {
			return fmt.Errorf("%q is no object", key)
		}
		ids, sealed = append(ids, id), append(sealed, raw)
		return nil
	})
	if err != nil {
		return err
	}
	records := make([]R, len(ids))
	errs := make([]error, min(runtime.GOMAXPROCS(0), len(ids)))
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			errs[w] = guarded(func() error {
				for i := w; i < len(ids); i += len(errs) {
					if err := unseal(sealed[i], &records[i]); err != nil {
						return fmt.Errorf("%s: %w", ids[i], err)
					}
				}
				return nil
			})
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, id := range ids {
		into[id] = records[i]
	}
	return nil
}

// Save keeps a state in one transaction. Its cost follows what changed since
// the state that was kept before.
func (c *Checkpoint) Save(origin Origin, next propagate.State) error {
	raw, err := seal(head{format, engine, origin, next.Commit, next.Accepted, next.Refusal, next.Seen, next.Frozen})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	err = c.db.Update(func(tx *bbolt.Tx) error {
		return errors.Join(
			write(tx.Bucket(bucketBindings), c.kept.Bindings, next.Bindings, func(b *propagate.Binding) any { return b.Record() }),
			write(tx.Bucket(bucketDeparted), c.kept.Departed, next.Departed, func(a *propagate.Absence) any { return a.Record() }),
			write(tx.Bucket(bucketLeft), c.kept.Left, next.Left, func(a *propagate.Absence) any { return a.Record() }),
			tx.Bucket(bucketMeta).Put(keyHead, raw),
		)
	})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.kept = next
	return nil
}

func write[V comparable](b *bbolt.Bucket, before, after ordered.Map[V], record func(V) any) error {
	for d := range ordered.Diff(before, after) {
		if !d.Has {
			if err := b.Delete([]byte(d.Key)); err != nil {
				return err
			}
			continue
		}
		raw, err := seal(record(d.After))
		if err != nil {
			return err
		}
		if err := b.Put([]byte(d.Key), raw); err != nil {
			return err
		}
	}
	return nil
}

// Forget drops the state and keeps the inventory.
func (c *Checkpoint) Forget() error {
	c.kept = propagate.State{}
	return c.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketBindings, bucketDeparted, bucketLeft} {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Inventory is the checkpoint as dispatch keeps its books in it.
func (c *Checkpoint) Inventory() dispatch.Inventory { return inventory{c.db} }

type inventory struct{ db *bbolt.DB }

// Load returns what a member was last known to hold.
func (i inventory) Load(cluster string) (map[propagate.ID]dispatch.Entry, error) {
	var entries map[propagate.ID]dispatch.Entry
	err := guarded(func() error {
		return i.db.View(func(tx *bbolt.Tx) (err error) {
			entries, err = readEntries(tx.Bucket(bucketInventory).Bucket([]byte(cluster)))
			return err
		})
	})
	if errors.Is(err, errDamaged) {
		// Without it the member's own marks are read.
		err = guarded(func() error {
			return i.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketInventory).DeleteBucket([]byte(cluster)) })
		})
		entries = nil
	}
	if err != nil {
		return nil, fmt.Errorf("inventory of %s: %w", cluster, err)
	}
	return entries, nil
}

// readEntries reads what a member holds; nil of no bucket. The names of
// objects are the same on many members, and are kept once.
func readEntries(b *bbolt.Bucket) (map[propagate.ID]dispatch.Entry, error) {
	if b == nil {
		return nil, nil
	}
	n := 0
	if err := b.ForEach(func(_, _ []byte) error { n++; return nil }); err != nil {
		return nil, err
	}
	entries := make(map[propagate.ID]dispatch.Entry, n)
	err := b.ForEach(func(key, raw []byte) error {
		name := unique.Make(string(key)).Value()
		id, ok := propagate.ParseKey(name)
		if !ok {
			return fmt.Errorf("%q is no object", key)
		}
		record, err := openInventoryRecord(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		entries[id] = dispatch.Entry(record)
		return nil
	})
	return entries, err
}

// Save stores what changed, by cluster, in one transaction.
func (i inventory) Save(changed map[string]map[propagate.ID]*dispatch.Entry) error {
	// Not Batch, which waits 10 ms for others to come: dispatch gathers.
	err := i.db.Update(func(tx *bbolt.Tx) error {
		for cluster, entries := range changed {
			b, err := tx.Bucket(bucketInventory).CreateBucketIfNotExists([]byte(cluster))
			if err != nil {
				return err
			}
			if err := saveEntries(b, entries); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	return nil
}

func saveEntries(b *bbolt.Bucket, entries map[propagate.ID]*dispatch.Entry) error {
	for id, e := range entries {
		if e == nil {
			if err := b.Delete([]byte(id.Key())); err != nil {
				return err
			}
			continue
		}
		raw, err := seal(inventoryRecord(*e))
		if err != nil {
			return err
		}
		if err := b.Put([]byte(id.Key()), raw); err != nil {
			return err
		}
	}
	return nil
}

// DefaultStateDir is under the user's state directory, one for each
// repository, ref and path.
func DefaultStateDir(origin Origin) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the state: %w; set --state", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	name := propagate.DigestOf([]byte(strings.Join([]string{origin.Repo, origin.Ref, origin.Path}, "\x00"))).String()
	return filepath.Join(base, "fairlead", name[len("sha256:"):][:16]), nil
}

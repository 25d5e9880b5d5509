// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// format is the format of the file. Earlier ones are migrated. A later one belongs to
// a newer version, and is left alone.
const format = 3

// The buckets of a checkpoint.
var (
	bucketMeta      = []byte("meta")
	bucketBindings  = []byte("bindings")
	bucketDeparted  = []byte("departed")
	bucketLeft      = []byte("left")
	bucketInventory = []byte("inventory") // one bucket per cluster inside
	keyHead         = []byte("head")
)

// Store keeps a state, and what each member was last known to have, in one file. It
// is a cache: git has the state, and the members have the marks on their objects.
type Store struct {
	file string
	db   *bbolt.DB
	kept propagate.State // what the file holds
}

// head is the part of a state that is not per object.
type head struct {
	Format   int                 `json:"format"`
	Engine   string              `json:"engine"`
	Origin   Origin              `json:"origin"`
	Commit   string              `json:"commit"`
	Accepted string              `json:"accepted"`
	Derived  string              `json:"derived,omitempty"`
	Former   []string            `json:"former,omitempty"`
	Refusal  *propagate.Refusal  `json:"refusal,omitempty"`
	Seen     *propagate.Seen     `json:"seen,omitempty"`
	Frozen   map[string]string   `json:"frozen,omitempty"`
	Time     int64               `json:"time,omitempty"`
	Recent   []propagate.Deleted `json:"recent,omitempty"`
	Moved    propagate.Moved     `json:"moved,omitempty"`

	Rewritten string `json:"rewritten,omitempty"`
}

// Origin identifies the fleet of a checkpoint.
type Origin struct {
	Repo string `json:"repo"`
	Ref  string `json:"ref"`
	Path string `json:"path"`
}

// ForeignError is the error of a state directory of another fleet. The directory is
// not overwritten.
type ForeignError struct{ Of Origin }

// Error names the fleet that the directory is of.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the state directory is of %s, ref %s, path %s: use another --state", e.Of.Repo, e.Of.Ref, e.Of.Path)
}

// Close closes the file.
func (c *Store) Close() error { return c.db.Close() }

// Load restores the state. It returns false if there is none, and the caller folds the
// history. With a GoneError the state is what remains of it without its commits. A state of another engine is rebuilt from the same commits, which does not
// count as an update (fold rule 7).
func (c *Store) Load(origin Origin, hist *history.History) (propagate.State, bool, error) {
	var h head
	saved := &propagate.Saved{
		Bindings:   map[object.ID]propagate.BindingRecord{},
		Tombstones: map[object.ID]propagate.TombstoneRecord{},
		Detached:   map[object.ID]propagate.TombstoneRecord{},
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
				read(tx.Bucket(bucketDeparted), saved.Tombstones),
				read(tx.Bucket(bucketLeft), saved.Detached),
			)
		})
	})
	if err != nil {
		return propagate.State{}, false, fmt.Errorf("checkpoint: %w", err)
	}

	kept := h.Origin
	h.Origin.Repo = withoutUser(h.Origin.Repo) // an earlier version kept it as it was given
	switch {
	case h.Format == 0:
		return propagate.State{}, false, nil
	case h.Origin != origin:
		return propagate.State{}, false, &ForeignError{h.Origin}
	}

	saved.Commit, saved.Accepted, saved.Refusal = h.Commit, h.Accepted, h.Refusal
	saved.Derived, saved.Former = h.Derived, h.Former
	saved.Seen, saved.Frozen, saved.Redigested = h.Seen, h.Frozen, h.Engine != history.Engine
	saved.Time, saved.Recent, saved.Moved = h.Time, h.Recent, h.Moved
	saved.Rewritten = h.Rewritten
	if !hist.Has(saved.Commit) {
		c.kept = saved.Remains() // the next state is written over all of it
		return c.kept, false, &GoneError{saved.Commit}
	}

	state, err := history.Restore(saved, hist)
	if err != nil {
		return propagate.State{}, false, fmt.Errorf("checkpoint: %w", err)
	}

	if kept != h.Origin {
		if err := c.rename(&h); err != nil {
			return propagate.State{}, false, err
		}
	}
	if saved.Redigested {
		// Every digest may differ, so everything is written again.
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

// rename writes the head again, without the user and password in an address.
func (c *Store) rename(h *head) error {
	raw, err := seal(h)
	if err == nil {
		err = c.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyHead, raw) })
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// withoutUser is an address without user and password.
func withoutUser(address string) string { return userInfo.ReplaceAllString(address, "://") }

var userInfo = regexp.MustCompile(`://[^/]*@`)

// read reads the records of a bucket, on all processors in parallel: in a large fleet
// they take most of the startup.
func read[R any](b *bbolt.Bucket, into map[object.ID]R) error {
	var ids []object.ID
	var sealed [][]byte
	err := b.ForEach(func(key, raw []byte) error {
		id, ok := object.ParseKey(string(key))
		if !ok {
			return fmt.Errorf("%q is not the key of an object", key)
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

// Save saves a state in one transaction. Its cost follows what changed since the last
// one.
func (c *Store) Save(origin Origin, next propagate.State) error {
	raw, err := seal(head{
		Format: format, Engine: history.Engine, Origin: origin, Commit: next.Commit, Accepted: next.Accepted,
		Derived: next.Derived, Former: next.Former, Refusal: next.Refusal, Seen: next.Seen, Frozen: next.Frozen,
		Time: next.Time, Recent: next.Recent, Moved: next.Moved, Rewritten: next.Rewritten,
	})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}

	err = c.db.Update(func(tx *bbolt.Tx) error {
		return errors.Join(
			write(tx.Bucket(bucketBindings), c.kept.Bindings, next.Bindings, func(b *propagate.Binding) any { return b.Record() }),
			write(tx.Bucket(bucketDeparted), c.kept.Tombstones, next.Tombstones, func(a *propagate.Tombstone) any { return a.Record() }),
			write(tx.Bucket(bucketLeft), c.kept.Detached, next.Detached, func(a *propagate.Tombstone) any { return a.Record() }),
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
func (c *Store) Forget() error {
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

// Inventory returns the inventory of dispatch that is kept in the store.
func (c *Store) Inventory() dispatch.Inventory { return inventory{c.db} }

// DropInventory forgets what a member was known to have.
func (c *Store) DropInventory(cluster string) error {
	err := c.db.Update(func(tx *bbolt.Tx) error {
		err := tx.Bucket(bucketInventory).DeleteBucket([]byte(cluster))
		if errors.Is(err, bolterrors.ErrBucketNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("inventory of %s: %w", cluster, err)
	}
	return nil
}

type inventory struct{ db *bbolt.DB }

// Load passes on what a member was last known to have. If a part of that is damaged, all of
// it is dropped, and nothing is known.
func (i inventory) Load(cluster string, begin func(entries int), held func(object.ID, *dispatch.Entry)) error {
	n := 0
	err := i.each(cluster, func(_, raw []byte) error { n++; return checked(raw) })
	switch {
	case err == nil:
		begin(n)
		err = i.each(cluster, func(key, raw []byte) error { return readEntry(key, raw, held) })
	case errors.Is(err, ErrDamaged):
		// Without an inventory dispatch reads the marks on the member.
		err = guarded(func() error {
			return i.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketInventory).DeleteBucket([]byte(cluster)) })
		})
	}
	if err != nil {
		return fmt.Errorf("inventory of %s: %w", cluster, err)
	}

	return nil
}

// each reads the entries of a cluster.
func (i inventory) each(cluster string, read func(key, raw []byte) error) error {
	return guarded(func() error {
		return i.db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucketInventory).Bucket([]byte(cluster))
			if b == nil {
				return nil
			}
			return b.ForEach(read)
		})
	})
}

// readEntry reads one object of the inventory of a member.
func readEntry(key, raw []byte, held func(object.ID, *dispatch.Entry)) error {
	id, ok := object.ParseKey(string(key))
	if !ok {
		return fmt.Errorf("%q is not the key of an object", key)
	}
	record, err := openInventoryRecord(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}

	entry := dispatch.Entry(record)
	held(id, &entry)
	return nil
}

// Save stores what changed, by cluster, in one transaction.
func (i inventory) Save(changed map[string]map[object.ID]*dispatch.Entry) error {
	// Not Batch, which waits 10 ms for other calls: dispatch batches itself.
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

func saveEntries(b *bbolt.Bucket, entries map[object.ID]*dispatch.Entry) error {
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

// DefaultDir returns the state directory of a fleet under that of the user: one for
// each repository, ref and path.
func DefaultDir(origin Origin) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no directory for the state: %w; set --state", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	name := object.DigestOf([]byte(strings.Join([]string{origin.Repo, origin.Ref, origin.Path}, "\x00"))).String()
	return filepath.Join(base, "fairlead", name[len("sha256:"):][:16]), nil
}

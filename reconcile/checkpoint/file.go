// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/fairlead/fairlead/propagate"
)

// ErrDamaged is the error of a file that is corrupt.
var ErrDamaged = errors.New("damaged")

// Open opens or creates the checkpoint in dir. Only one process can have it open. A
// damaged file is put aside, and damage is the reason.
func Open(dir string) (c *Store, damage error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("state directory: %w; --state names another", err)
	}

	c = &Store{file: filepath.Join(dir, "checkpoint.db")}
	c.db, err = open(c.file)
	if errors.Is(err, ErrDamaged) {
		return c, err, c.PutAside()
	}
	if err != nil {
		return nil, nil, err
	}

	return c, nil, nil
}

// PutAside renames a damaged file, so that it can be examined, and starts with an empty
// one. Nothing is lost that git and the members do not have.
func (c *Store) PutAside() error {
	if c.db != nil {
		c.db.Close()
	}
	if err := os.Rename(c.file, c.file+".damaged"); err != nil {
		return fmt.Errorf("%s cannot be put aside: %w", c.file, err)
	}

	c.kept = propagate.State{}
	var err error
	c.db, err = open(c.file)
	return err
}

// open opens a file, and migrates it to the current format.
func open(file string) (db *bbolt.DB, err error) {
	err = guarded(func() (err error) {
		db, err = bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
		return err
	})
	switch {
	case err == nil:
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s is in use: another fairlead runs on this state", file)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
		return nil, fmt.Errorf("%s: %w", file, err)
	default:
		return nil, fmt.Errorf("%s is %w: %w", file, ErrDamaged, err)
	}

	if err := guarded(func() error { return db.View(whole) }); err != nil {
		db.Close()
		return nil, fmt.Errorf("%s is %w: %w", file, ErrDamaged, err)
	}

	err = guarded(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, name := range [][]byte{bucketMeta, bucketBindings, bucketDeparted, bucketLeft, bucketInventory} {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			return migrate(tx)
		})
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	return db, nil
}

// whole reads every page in use, in this goroutine, where the panic of a corrupt page
// can be recovered.
func whole(tx *bbolt.Tx) error {
	var walk func(b *bbolt.Bucket, depth int) error
	walk = func(b *bbolt.Bucket, depth int) error {
		if depth > 2 { // the inventory has a bucket for each cluster, and that is all
			return errors.New("its buckets contain each other")
		}
		return b.ForEach(func(key, value []byte) error {
			if value == nil {
				return walk(b.Bucket(key), depth+1)
			}
			return nil
		})
	}

	return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return walk(b, 1) })
}

// guarded turns the panics and faults of a corrupt file into an error: the database
// trusts its pages, which are mapped memory.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}

// seal encodes a record, with its checksum before it.
func seal(record any) ([]byte, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, checksum(raw)), raw...), nil
}

// unseal decodes a sealed record.
func unseal(sealed []byte, into any) error {
	if err := checked(sealed); err != nil {
		return err
	}
	return json.Unmarshal(sealed[checksumSize:], into)
}

// checked returns the error of a record whose checksum is wrong.
func checked(sealed []byte) error {
	if !intact(sealed) {
		return fmt.Errorf("%w: its checksum does not fit", ErrDamaged)
	}
	return nil
}

const checksumSize = 4

func intact(sealed []byte) bool {
	return len(sealed) >= checksumSize && binary.BigEndian.Uint32(sealed) == checksum(sealed[checksumSize:])
}

func checksum(raw []byte) uint32 { return crc32.Checksum(raw, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// migrate migrates a file to the current format, one step at a time.
func migrate(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	raw := meta.Get(keyHead)
	if raw == nil {
		return nil
	}

	if raw[0] == '{' { // format 1 had no checksums
		if err := sealAll(tx); err != nil {
			return err
		}
		raw = meta.Get(keyHead)
	}
	var h struct {
		Format int `json:"format"`
	}
	if err := unseal(raw, &h); err != nil {
		return nil //nolint:nilerr // Load tells, and the history is folded again
	}
	if h.Format > format {
		return fmt.Errorf("its format is %d, and this version knows %d: it was written by a later fairlead; use that, or another --state", h.Format, format)
	}

	return nil
}

// sealAll goes from format 1 to 2: every record gets a checksum, and the
// engine a name.
func sealAll(tx *bbolt.Tx) error {
	var h map[string]any
	if err := json.Unmarshal(tx.Bucket(bucketMeta).Get(keyHead), &h); err != nil {
		return nil //nolint:nilerr // Load tells, and the history is folded again
	}

	h["format"], h["engine"] = 2, fmt.Sprint(h["engine"])
	raw, err := seal(h)
	if err != nil {
		return err
	}
	if err := tx.Bucket(bucketMeta).Put(keyHead, raw); err != nil {
		return err
	}

	buckets := []*bbolt.Bucket{tx.Bucket(bucketBindings), tx.Bucket(bucketDeparted), tx.Bucket(bucketLeft)}
	inventory := tx.Bucket(bucketInventory)
	err = inventory.ForEachBucket(func(name []byte) error {
		buckets = append(buckets, inventory.Bucket(name))
		return nil
	})
	if err != nil {
		return err
	}

	for _, b := range buckets {
		sealed := map[string][]byte{}
		err := b.ForEach(func(key, raw []byte) error {
			sealed[string(key)] = append(binary.BigEndian.AppendUint32(nil, checksum(raw)), raw...)
			return nil
		})
		if err != nil {
			return err
		}
		for key, raw := range sealed {
			if err := b.Put([]byte(key), raw); err != nil {
				return err
			}
		}
	}

	return nil
}

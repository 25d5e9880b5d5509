// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// index is git's index as bytes. Entries are edited in place or inserted, and
// everything that this package does not understand is preserved: flags of
// files, extensions of other programs.
type index struct{ b []byte }

// indexEntry is the position and content of a file's entry.
type indexEntry struct {
	at   int
	hash plumbing.Hash
}

// The fixed part of an entry: times, device, inode, mode, owner, size; then the
// hash and the flags.
const (
	entrySize  = 62
	statSize   = 40
	headerSize = 12
)

var (
	errIndex     = errors.New("unsupported format of git's index")
	errUntracked = errors.New("not tracked by git")
)

// find looks up an entry. The error says why the file cannot be committed.
func (x index) find(name string) (found *indexEntry, err error) {
	_, err = x.walk(func(at int, entry string) error {
		if entry != name {
			return nil
		}

		flags := binary.BigEndian.Uint16(x.b[at+statSize+20:])
		var extended uint16
		if flags&0x4000 != 0 {
			extended = binary.BigEndian.Uint16(x.b[at+entrySize:])
		}

		switch {
		case flags&0x3000 != 0:
			return errors.New("it has an unresolved conflict")
		case extended&0x4000 != 0:
			return errors.New("it is excluded from the work tree (skip-worktree)")
		case extended&0x2000 != 0:
			return errors.New("it is only marked as intent-to-add; run git add")
		}

		found = &indexEntry{at: at}
		copy(found.hash[:], x.b[at+statSize:])
		return nil
	})

	if err == nil && found == nil {
		err = errUntracked
	}
	return found, err
}

// walk visits the entries and returns the end of the last.
func (x index) walk(visit func(at int, name string) error) (end int, err error) {
	if len(x.b) < headerSize+20 || string(x.b[:4]) != "DIRC" {
		return 0, errIndex
	}

	version, count := binary.BigEndian.Uint32(x.b[4:]), binary.BigEndian.Uint32(x.b[8:])
	if version < 2 || version > 4 {
		return 0, errIndex
	}

	limit := len(x.b) - 20
	at, previous := headerSize, ""
	for range count {
		begin := at
		if at+entrySize > limit {
			return 0, errIndex
		}

		if at += entrySize; binary.BigEndian.Uint16(x.b[at-2:])&0x4000 != 0 {
			at += 2
		}

		var kept string
		if version == 4 {
			strip, n := varint(x.b[at:limit])
			if n == 0 || strip > len(previous) {
				return 0, errIndex
			}
			at += n
			kept = previous[:len(previous)-strip]
		}

		zero := bytes.IndexByte(x.b[at:limit], 0)
		if zero < 0 {
			return 0, errIndex
		}

		name := kept + string(x.b[at:at+zero])
		at += zero + 1
		if version < 4 {
			// Entries are padded to a multiple of eight, with at least one zero.
			at = begin + (at-1-begin+8)&^7
		}

		if at > limit {
			return 0, errIndex
		}
		if err := visit(begin, name); err != nil {
			return 0, err
		}

		previous = name
	}

	return at, nil
}

// varint decodes the number that version 4 writes before a name.
func varint(b []byte) (value, n int) {
	for n < len(b) && n < 5 {
		c := b[n]
		if n > 0 {
			value++
		}

		value = value<<7 | int(c&0x7f)
		n++
		if c&0x80 == 0 {
			return value, n
		}
	}

	return 0, 0
}

// extensions visits what follows the entries.
func (x index) extensions(visit func(at int, name string, size int)) error {
	at, err := x.walk(func(int, string) error { return nil })
	if err != nil {
		return err
	}

	for limit := len(x.b) - sha1.Size; at < limit; {
		if at+8 > limit {
			return errIndex
		}

		size := int(binary.BigEndian.Uint32(x.b[at+4:]))
		if size < 0 || size > limit-at-8 {
			return errIndex
		}

		visit(at, string(x.b[at:at+4]), size)
		at += 8 + size
	}

	return nil
}

// add inserts an entry for a new file, which set fills in. It drops extensions
// that refer to entries by number or describe untracked files; git rebuilds
// them.
func (x index) add(name string) (index, error) {
	at, previous, next := headerSize, "", ""
	end, err := x.walk(func(entry int, there string) error {
		switch {
		case strings.HasPrefix(there, name+"/") || strings.HasPrefix(name, there+"/"):
			return fmt.Errorf("%s is staged and conflicts with it", there)
		case there < name:
			previous = there
		case next == "":
			at, next = entry, there
		}

		return nil
	})

	if err != nil {
		return x, err
	}

	if next == "" {
		at = end
	}

	entry := make([]byte, entrySize)
	binary.BigEndian.PutUint32(entry[24:], 0o100644)
	binary.BigEndian.PutUint16(entry[entrySize-2:], uint16(min(len(name), 0xfff)))
	version := binary.BigEndian.Uint32(x.b[4:])
	rest := x.b[at:end]
	if version < 4 {
		entry = append(entry, name...)
		entry = append(entry, make([]byte, 8-len(entry)%8)...)
	} else {
		entry = append(append(append(entry, unvarint(len(previous))...), name...), 0)
		if next != "" {
			// Its name was encoded as a difference from the one before it.
			fixed := entrySize
			if binary.BigEndian.Uint16(rest[entrySize-2:])&0x4000 != 0 {
				fixed += 2
			}
			_, n := varint(rest[fixed:])
			tail := rest[fixed+n+bytes.IndexByte(rest[fixed+n:], 0)+1:]
			rest = slices.Concat(rest[:fixed], unvarint(len(name)), []byte(next), []byte{0}, tail)
		}
	}

	out := slices.Concat(x.b[:at], entry, rest)
	binary.BigEndian.PutUint32(out[8:], binary.BigEndian.Uint32(out[8:])+1)
	var refused error
	err = x.extensions(func(at int, extension string, size int) {
		switch extension {
		case "link", "sdir":
			refused = errIndex // an entry in it that is more than an entry
		case "FSMN", "UNTR":
		default:
			out = append(out, x.b[at:at+8+size]...)
		}
	})
	return index{append(out, x.b[len(x.b)-sha1.Size:]...)}, errors.Join(err, refused)
}

// unvarint is the inverse of varint.
func unvarint(value int) []byte {
	b := []byte{byte(value & 0x7f)}
	for value >>= 7; value > 0; value >>= 7 {
		value--
		b = append([]byte{0x80 | byte(value&0x7f)}, b...)
	}
	return b
}

// set updates an entry to the content and the stat data of its file.
func (x index) set(e *indexEntry, hash plumbing.Hash, info os.FileInfo) {
	put := func(field int, v uint32) { binary.BigEndian.PutUint32(x.b[e.at+4*field:], v) }
	stamp := func(field int, t time.Time) {
		if t.IsZero() {
			t = time.Unix(0, 0)
		}
		put(field, uint32(t.Unix()))
		put(field+1, uint32(t.Nanosecond()))
	}

	s := statOf(info)
	stamp(0, s.changed)
	stamp(2, info.ModTime())
	put(4, s.device)
	put(5, s.inode)
	put(7, s.user)
	put(8, s.group)
	put(9, uint32(info.Size()))
	copy(x.b[e.at+statSize:], hash[:])
}

// smudge makes git compare the content of every file that is not older than the
// index. git decides that by the index's own time. Ours will be later, so a
// change of the same length in the same moment would go unnoticed.
func (x index) smudge(written time.Time) error {
	_, err := x.walk(func(at int, _ string) error {
		get := func(field int) int64 { return int64(binary.BigEndian.Uint32(x.b[at+4*field:])) }
		if !time.Unix(get(2), get(3)).Before(written) {
			binary.BigEndian.PutUint32(x.b[at+4*9:], 0)
		}
		return nil
	})
	return err
}

// fileStat is what git compares of a file besides its times and size. A zero
// field makes git compare the content once.
type fileStat struct {
	changed                    time.Time
	device, inode, user, group uint32
}

// bytes is the index with its checksum, without the extensions that no longer
// match its entries: the hashes of trees, and the entry offsets.
func (x index) bytes() ([]byte, error) {
	end, err := x.walk(func(int, string) error { return nil })
	if err != nil {
		return nil, err
	}

	out := bytes.Clone(x.b[:end])
	err = x.extensions(func(at int, extension string, size int) {
		switch extension {
		case "TREE", "EOIE", "IEOT":
		default:
			out = append(out, x.b[at:at+8+size]...)
		}
	})

	if err != nil {
		return nil, err
	}

	limit := len(x.b) - sha1.Size
	var sum [sha1.Size]byte
	if !bytes.Equal(x.b[limit:], sum[:]) { // zeros: index.skipHash
		sum = sha1.Sum(out)
	}

	return append(out, sum[:]...), nil
}

// lockIndex takes git's lock on the index of a work tree.
func lockIndex(path string) (*indexLock, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("another git process is running: %s.lock exists; if none is, remove the file", path)
	}
	if err != nil {
		return nil, err
	}
	return &indexLock{f, path}, nil
}

type indexLock struct {
	file *os.File
	path string
}

// release releases the lock. It does nothing after write.
func (l *indexLock) release() {
	if l.file != nil {
		_ = l.file.Close()
		_ = os.Remove(l.file.Name())
		l.file = nil
	}
}

// write replaces the index and releases the lock.
func (l *indexLock) write(b []byte) error {
	_, err := l.file.Write(b)
	if err = errors.Join(err, l.file.Close()); err == nil {
		err = os.Rename(l.file.Name(), l.path)
	}
	if err == nil {
		l.file = nil
	}
	return err
}

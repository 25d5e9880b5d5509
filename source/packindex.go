// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// packIndex is the index of a pack. go-git's has a map of every offset, so that a pack of
// a million commits takes half a gigabyte; this one has two tables, outside of the heap,
// which the collector would let double.
type packIndex struct {
	fanout  [256]uint32
	names   []byte // sorted
	offsets []byte // four bytes each
	far     []byte // eight bytes each: where an offset has its highest bit set

	turn  sync.Once
	shift int      // in byOffset
	order []byte   // see byOffset
	keep  []func() // gives the tables back
}

var _ idxfile.Index = &packIndex{}

var (
	errPackIndex   = errors.New("malformed index of a pack")
	packIndexMagic = []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}
)

// readPackIndex reads a file of version 2, and compares it with its checksum. size is the
// file's.
func readPackIndex(file io.Reader, size int64) (*packIndex, error) {
	sum := sha1.New()
	in := io.TeeReader(bufio.NewReaderSize(file, 1<<20), sum)
	head := make([]byte, len(packIndexMagic)+4*256)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, fmt.Errorf("%w: %w", errPackIndex, err)
	}
	if !bytes.HasPrefix(head, packIndexMagic) {
		return nil, fmt.Errorf("%w: not of version 2", errPackIndex)
	}

	i := &packIndex{}
	last := uint32(0)
	for n := range i.fanout {
		i.fanout[n] = binary.BigEndian.Uint32(head[len(packIndexMagic)+4*n:])
		if i.fanout[n] < last {
			return nil, fmt.Errorf("%w: its fan-out falls", errPackIndex)
		}
		last = i.fanout[n]
	}

	count := int64(last)
	far := size - int64(len(head)) - count*int64(hashSize+4+4) - 2*int64(hashSize)
	if far < 0 || far%8 != 0 || far/8 > count {
		return nil, fmt.Errorf("%w: %d bytes for %d objects", errPackIndex, size, count)
	}
	i.names, i.offsets, i.far = i.allocate(count*int64(hashSize)), i.allocate(count*4), i.allocate(far)
	runtime.AddCleanup(i, func(keep []func()) {
		for _, free := range keep {
			free()
		}
	}, i.keep)
	if err := i.readTables(in, sum, count); err != nil {
		return nil, fmt.Errorf("%w: %w", errPackIndex, err)
	}
	return i, nil
}

func (i *packIndex) readTables(in io.Reader, sum hash.Hash, count int64) error {
	if _, err := io.ReadFull(in, i.names); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, in, count*4); err != nil { // checksums of what is packed
		return err
	}
	for _, table := range [][]byte{i.offsets, i.far} {
		if _, err := io.ReadFull(in, table); err != nil {
			return err
		}
	}
	var ofPack, ofIndex [hashSize]byte
	if _, err := io.ReadFull(in, ofPack[:]); err != nil {
		return err
	}
	computed := sum.Sum(nil)
	if _, err := io.ReadFull(in, ofIndex[:]); err != nil {
		return err
	}
	if !bytes.Equal(computed, ofIndex[:]) {
		return errors.New("its checksum is wrong")
	}
	return nil
}

// allocate makes a table, a large one outside of the heap.
func (i *packIndex) allocate(n int64) []byte {
	b, free := allocate(int(n))
	if free != nil {
		i.keep = append(i.keep, free)
	}
	return b
}

func (i *packIndex) count() int { return int(i.fanout[255]) }

func (i *packIndex) name(n int) []byte { return i.names[n*hashSize : (n+1)*hashSize] }

// offset is where an object begins in the pack.
func (i *packIndex) offset(n int) (int64, error) {
	at := binary.BigEndian.Uint32(i.offsets[4*n:])
	if at&(1<<31) == 0 {
		return int64(at), nil
	}
	at &^= 1 << 31
	if 8*int(at)+8 > len(i.far) {
		return 0, errPackIndex
	}
	far := binary.BigEndian.Uint64(i.far[8*at:])
	if far >= 1<<63 {
		return 0, errPackIndex
	}
	return int64(far), nil
}

// find is the place of an object in the tables; -1 without it. Hashes are spread evenly, so
// it is near where its first bytes say: around that place a range is searched that
// doubles until it has the hash in it.
func (i *packIndex) find(h plumbing.Hash) int {
	low, high := 0, int(i.fanout[h[0]])
	if h[0] > 0 {
		low = int(i.fanout[h[0]-1])
	}
	if low == high {
		return -1
	}

	guess := low + int(uint64(high-low)*uint64(binary.BigEndian.Uint32(h[1:]))>>32)
	for step := 16; guess-step > low; step *= 2 {
		if bytes.Compare(i.name(guess-step), h[:]) <= 0 {
			low = guess - step
			break
		}
	}
	for step := 16; guess+step < high; step *= 2 {
		if bytes.Compare(i.name(guess+step), h[:]) > 0 {
			high = guess + step
			break
		}
	}
	for low < high {
		middle := (low + high) / 2
		switch order := bytes.Compare(i.name(middle), h[:]); {
		case order == 0:
			return middle
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return -1
}

// Contains implements idxfile.Index.
func (i *packIndex) Contains(h plumbing.Hash) (bool, error) {
	defer runtime.KeepAlive(i)
	return i.find(h) >= 0, nil
}

// FindOffset implements idxfile.Index.
func (i *packIndex) FindOffset(h plumbing.Hash) (int64, error) {
	defer runtime.KeepAlive(i)
	n := i.find(h)
	if n < 0 {
		return 0, plumbing.ErrObjectNotFound
	}
	return i.offset(n)
}

// FindHash implements idxfile.Index.
func (i *packIndex) FindHash(offset int64) (h plumbing.Hash, err error) {
	defer runtime.KeepAlive(i)
	i.turn.Do(i.sort)
	if len(i.order) == 0 || offset < 0 || bits.Len64(uint64(offset))+i.shift > 64 {
		return h, plumbing.ErrObjectNotFound
	}

	want := uint64(offset) << i.shift
	low, high := 0, i.count()
	for low < high {
		middle := (low + high) / 2
		if binary.NativeEndian.Uint64(i.order[8*middle:]) < want {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == i.count() {
		return h, plumbing.ErrObjectNotFound
	}
	key := binary.NativeEndian.Uint64(i.order[8*low:])
	if key>>i.shift != uint64(offset) {
		return h, plumbing.ErrObjectNotFound
	}
	copy(h[:], i.name(int(key&(1<<i.shift-1))))
	return h, nil
}

// sort makes the table of the offsets in their order. Each is a number that has the
// offset, and below it the place of the object.
func (i *packIndex) sort() {
	i.shift = bits.Len(uint(i.count()))
	keys := make([]uint64, i.count())
	for n := range keys {
		at, err := i.offset(n)
		if err != nil || bits.Len64(uint64(at))+i.shift > 64 {
			return // as though nothing were found
		}
		keys[n] = uint64(at)<<i.shift | uint64(n)
	}

	slices.Sort(keys)
	order, free := allocate(8 * len(keys))
	if free != nil {
		runtime.AddCleanup(i, func(free func()) { free() }, free)
	}
	for n, key := range keys {
		binary.NativeEndian.PutUint64(order[8*n:], key)
	}
	i.order = order
}

// FindCRC32 implements idxfile.Index. Nobody asks for one of a pack that is read.
func (i *packIndex) FindCRC32(plumbing.Hash) (uint32, error) {
	return 0, errors.New("the checksums of a pack are not kept")
}

// Count implements idxfile.Index.
func (i *packIndex) Count() (int64, error) { return int64(i.count()), nil }

// Entries implements idxfile.Index.
func (i *packIndex) Entries() (idxfile.EntryIter, error) {
	entries := make([]*idxfile.Entry, i.count())
	for n := range entries {
		at, err := i.offset(n)
		if err != nil {
			return nil, err
		}
		entries[n] = &idxfile.Entry{Hash: plumbing.Hash(i.name(n)), Offset: uint64(at)}
	}
	runtime.KeepAlive(i)
	return &packEntries{entries}, nil
}

// EntriesByOffset implements idxfile.Index.
func (i *packIndex) EntriesByOffset() (idxfile.EntryIter, error) {
	all, err := i.Entries()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all.(*packEntries).left, func(a, b *idxfile.Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	return all, nil
}

// packEntries implements idxfile.EntryIter.
type packEntries struct{ left []*idxfile.Entry }

// Next implements idxfile.EntryIter.
func (e *packEntries) Next() (*idxfile.Entry, error) {
	if len(e.left) == 0 {
		return nil, io.EOF
	}
	next := e.left[0]
	e.left = e.left[1:]
	return next, nil
}

// Close implements idxfile.EntryIter.
func (e *packEntries) Close() error { return nil }

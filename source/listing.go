// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// listing is a tree object, and where its entries begin, sorted by name. A commit of one
// file has every directory on its way compared: what is not looked at is not decoded.
type listing struct {
	text   []byte
	starts []uint32
}

// hashSize is what follows the name of an entry.
const hashSize = len(plumbing.Hash{})

// newListing reads a tree object. Its modes are known and none of it is cut off.
func newListing(h plumbing.Hash, text []byte) (listing, error) {
	const shortest = len("40000 a\x00") + hashSize
	l := listing{text, make([]uint32, 0, len(text)/(shortest+8)+1)}
	sorted := true
	var last []byte
	for at := 0; at < len(text); {
		mode, name, end, ok := cut(text[at:])
		if !ok {
			return listing{}, fmt.Errorf("tree %s: malformed", h)
		}
		if _, known := parseMode(mode); !known {
			return listing{}, fmt.Errorf("tree %s: %q has the unknown mode %q", h, name, mode)
		}

		l.starts = append(l.starts, uint32(at)) // a tree object has no more than maxTree bytes
		sorted = sorted && bytes.Compare(last, name) <= 0
		last = name
		at += end
	}

	if !sorted { // git sorts a directory as if its name ended in a slash
		slices.SortStableFunc(l.starts, func(a, b uint32) int { return bytes.Compare(nameAt(text, a), nameAt(text, b)) })
	}
	return l, nil
}

// cut splits the first entry of a tree object, which has end bytes.
func cut(text []byte) (mode, name []byte, end int, ok bool) {
	head := bytes.IndexByte(text, 0)
	if head < 0 || len(text) < head+1+hashSize {
		return nil, nil, 0, false
	}
	mode, name, ok = bytes.Cut(text[:head], []byte{' '})
	return mode, name, head + 1 + hashSize, ok
}

// nameAt is the name of an entry that newListing has read.
func nameAt(text []byte, start uint32) []byte {
	_, name, _, _ := cut(text[start:])
	return name
}

func (l listing) len() int { return len(l.starts) }

func (l listing) name(i int) []byte { return nameAt(l.text, l.starts[i]) }

// raw is an entry as the tree object has it.
func (l listing) raw(i int) []byte {
	text := l.text[l.starts[i]:]
	_, _, end, _ := cut(text)
	return text[:end]
}

func (l listing) entry(i int) entry {
	text := l.text[l.starts[i]:]
	mode, name, end, _ := cut(text)
	bits, _ := parseMode(mode)
	e := entry{name: string(name), mode: bits &^ 0o7777, exec: bits&0o111 != 0}
	copy(e.hash[:], text[end-hashSize:end])
	return e
}

func (l listing) entries() []entry {
	all := make([]entry, l.len())
	for i := range all {
		all[i] = l.entry(i)
	}
	return all
}

// lookup is the entry with a name.
func (l listing) lookup(name string) (entry, bool) {
	i, found := slices.BinarySearchFunc(l.starts, name, func(start uint32, name string) int {
		return compareNames(nameAt(l.text, start), name)
	})
	if !found {
		return entry{}, false
	}
	return l.entry(i), true
}

// compareNames is strings.Compare, without a string for what is read.
func compareNames(a []byte, b string) int {
	switch {
	case string(a) < b:
		return -1
	case string(a) > b:
		return +1
	}
	return 0
}

// check refuses names that no honest git client writes, and those that are there twice.
func (l listing) check(h plumbing.Hash) error {
	for i := range l.len() {
		name := l.name(i)
		if !isSimpleName(name) && !isValidName(string(name)) {
			return fmt.Errorf("invalid path %q in tree %s", name, h)
		}
		if i > 0 && bytes.Equal(l.name(i-1), name) {
			return fmt.Errorf("invalid path %q in tree %s: duplicate entry", name, h)
		}
	}
	return nil
}

func lookup(entries []entry, name string) *entry {
	i, ok := slices.BinarySearchFunc(entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return nil
	}
	return &entries[i]
}

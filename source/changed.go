// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrTooManyChanges is wrapped by Changed if two trees differ in more paths than can be
// listed. It is a fact about the trees, and the same on every machine.
var ErrTooManyChanges = errors.New("too many paths differ")

// maxChanged limits the differences between two trees. One tree object can be in a tree
// any number of times, so seven of them can make ten million paths.
const maxChanged = 1_000_000

// Changed lists the files, symlinks and submodules that were added, removed or
// modified between two trees, sorted by path; a nil tree is empty. Directories
// with equal hashes are not read, so the cost is that of the change.
func Changed(a, b *Tree) ([]string, error) {
	changed, _, err := Compare(a, b)
	return changed, err
}

// MaxSpent is what the comparison of two trees may cost; Changed fails beyond it.
const MaxSpent = maxChanged

// Compare is Changed, and what the comparison cost. That of two trees costs no more than
// both comparisons with a third one.
func Compare(a, b *Tree) (changed []string, spent int, err error) {
	var w changes
	var before, after entry
	if a != nil {
		before = entry{mode: modeDir, hash: a.hash}
	}
	if b != nil {
		after = entry{mode: modeDir, hash: b.hash}
	}
	if err := w.compare(a, b, "", before, after); err != nil {
		return nil, w.spent, err
	}

	slices.Sort(w.paths)
	return slices.Compact(w.paths), w.spent, nil
}

type changes struct {
	paths []string
	depth int
	spent int
}

// spend counts a path, and a long one more.
func (w *changes) spend(at string) error {
	if w.spent += 1 + len(at)/128; w.spent > maxChanged {
		return fmt.Errorf("%w: more than %d", ErrTooManyChanges, maxChanged)
	}
	return nil
}

// compare records the differences under one path. An entry of mode 0 is absent.
func (w *changes) compare(a, b *Tree, at string, before, after entry) error {
	if before.hash == after.hash && before.mode == after.mode {
		return nil
	}
	if err := w.spend(at); err != nil {
		return err
	}

	for _, e := range []entry{before, after} {
		if e.mode != 0 && !e.isDir() {
			w.paths = append(w.paths, at)
		}
	}

	if !before.isDir() && !after.isDir() {
		return nil
	}
	if w.depth++; w.depth > maxDepth {
		return fmt.Errorf("%s: more than %d directories deep", at, maxDepth)
	}
	defer func() { w.depth-- }()

	old, err := listOf(a, at, before)
	if err != nil {
		return err
	}

	now, err := listOf(b, at, after)
	if err != nil {
		return err
	}

	for i, j := 0, 0; i < old.len() || j < now.len(); {
		var o, n entry
		order := 0
		switch {
		case i == old.len():
			order = +1
		case j == now.len():
			order = -1
		default:
			if bytes.Equal(old.raw(i), now.raw(j)) {
				i, j = i+1, j+1
				continue // the common case
			}
			order = bytes.Compare(old.name(i), now.name(j))
		}
		if order <= 0 {
			o, i = old.entry(i), i+1
		}
		if order >= 0 {
			n, j = now.entry(j), j+1
		}

		if o.hash == n.hash && o.mode == n.mode {
			continue // written with another mode that means the same
		}
		if err := w.compare(a, b, path.Join(at, cmp.Or(o.name, n.name)), o, n); err != nil {
			return err
		}
	}

	return nil
}

func listOf(t *Tree, at string, e entry) (listing, error) {
	if !e.isDir() || e.hash == (plumbing.Hash{}) {
		return listing{}, nil
	}
	entries, err := t.list(e.hash)
	if err != nil && at != "" {
		err = fmt.Errorf("%s: %w", at, err)
	}
	return entries, err
}

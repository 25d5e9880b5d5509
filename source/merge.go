// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Merged is what a merge of two trees makes, before anybody commits it.
type Merged struct {
	// Tree is nil if there are conflicts. What neither side has is kept in memory; its
	// hash is the one that git would write.
	Tree      *Tree
	Conflicts []Conflict // sorted by path
}

// Conflict is a path that two sides changed differently.
type Conflict struct {
	Path string
	// Ours and Theirs are what the sides did: "added", "edited", "removed" or
	// "replaced".
	Ours, Theirs string
}

// Merge merges what ours and theirs changed since base, file by file: a file that
// both changed differently is a conflict, whatever its lines say, and a renamed one
// is one that was removed and one that was added. A nil tree is empty. The trees are
// of one repository; ours can be the result of another Merge. The cost is that of
// what both sides changed, and limited as that of Changed.
func Merge(base, ours, theirs *Tree) (*Merged, error) {
	m := &merger{sides: [3]*Tree{base, ours, theirs}, made: map[plumbing.Hash][]byte{}}
	var roots versions
	for i, t := range m.sides {
		if t != nil {
			roots[i], m.behind = entry{mode: modeDir, hash: t.hash}, t.from
		}
	}
	if ours != nil {
		m.behind = ours.from
	}

	root, err := m.merge("", roots)
	switch {
	case err != nil:
		return nil, err
	case len(m.conflicts) > 0:
		slices.SortFunc(m.conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
		return &Merged{Conflicts: m.conflicts}, nil
	case root.mode == 0:
		root.hash, err = m.write(nil)
	}

	return &Merged{Tree: newTree(m, root.hash)}, err
}

// versions are the entries of one path: in base, in ours and in theirs. One of mode
// 0 is absent.
type versions [3]entry

const (
	inBase = iota
	inOurs
	inTheirs
)

// settled returns the version that a merge takes, unless both sides have changed it
// differently.
func (v versions) settled() (entry, bool) {
	switch {
	case v[inBase].same(v[inOurs]):
		return v[inTheirs], true
	case v[inBase].same(v[inTheirs]), v[inOurs].same(v[inTheirs]):
		return v[inOurs], true
	}
	return entry{}, false
}

func (e entry) same(o entry) bool {
	return e.mode == o.mode && e.hash == o.hash && (e.exec == o.exec || e.mode != modeFile)
}

// only returns the versions that are directories, or those that are not.
func (v versions) only(dirs bool) versions {
	for i, e := range v {
		if e.isDir() != dirs {
			v[i] = entry{}
		}
	}
	return v
}

// file merges versions that are no directories. Whether a file is executable is
// merged apart from its content.
func (v versions) file() (entry, bool) {
	if e, ok := v.settled(); ok {
		return e, true
	}
	if slices.ContainsFunc(v[:], func(e entry) bool { return !e.isFile() }) {
		return entry{}, false
	}

	content, mode := v, v
	for i := range v {
		content[i].exec = false
		mode[i].hash = plumbing.ZeroHash
	}
	e, ok := content.settled()
	executable, settled := mode.settled()
	e.exec = executable.exec
	return e, ok && settled
}

// conflict says what the sides did to a path.
func (v versions) conflict(at string) Conflict {
	did := func(now entry) string {
		was := v[inBase]
		switch {
		case was.mode == 0:
			return "added"
		case now.mode == 0:
			return "removed"
		case was.mode != now.mode:
			return "replaced"
		}
		return "edited"
	}
	return Conflict{at, did(v[inOurs]), did(v[inTheirs])}
}

// merger is a merge in progress, and the store of the directories that it makes.
type merger struct {
	sides     [3]*Tree
	conflicts []Conflict
	cost      changes // of which only the limits are used

	behind objects
	made   map[plumbing.Hash][]byte
}

// object implements objects.
func (m *merger) object(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	if b, ok := m.made[h]; ok {
		return plumbing.TreeObject, b, nil
	}
	return m.behind.object(h)
}

// merge merges one path. A file and a directory at one path do not get in each
// other's way if only one of them is left.
func (m *merger) merge(at string, v versions) (entry, error) {
	if e, ok := v.settled(); ok {
		return e, nil
	}
	if err := m.cost.spend(at); err != nil {
		return entry{}, err
	}

	file, ok := v.only(false).file()
	found := len(m.conflicts)
	dir, err := m.directory(at, v.only(true))
	if err != nil {
		return entry{}, err
	}

	if !ok || file.mode != 0 && (dir.mode != 0 || len(m.conflicts) > found) {
		m.conflicts = append(m.conflicts[:found], v.conflict(at))
		return entry{}, nil
	}
	if dir.mode != 0 {
		return dir, nil
	}
	return file, nil
}

// directory merges versions that are directories; one without files is absent.
func (m *merger) directory(at string, v versions) (entry, error) {
	if e, ok := v.settled(); ok {
		return e, nil
	}
	if m.cost.depth++; m.cost.depth > maxDepth {
		return entry{}, fmt.Errorf("%s: more than %d directories deep", at, maxDepth)
	}
	defer func() { m.cost.depth-- }()

	var lists [3][]entry
	for i, e := range v {
		list, err := listOf(m.sides[i], at, e)
		if err != nil {
			return entry{}, err
		}
		lists[i] = list.entries()
	}

	var merged []entry
	for {
		name, below := next(&lists)
		if name == "" {
			break
		}
		e, ok := below.settled() // the common case; do not build the path
		if !ok {
			var err error
			if e, err = m.merge(path.Join(at, name), below); err != nil {
				return entry{}, err
			}
		}
		if e.name = name; e.mode != 0 {
			merged = append(merged, e)
		}
	}

	if len(merged) == 0 {
		return entry{}, nil
	}
	hash, err := m.write(merged)
	return entry{mode: modeDir, hash: hash}, err
}

// next takes the first name off sorted lists, with its versions; "" if they are empty.
func next(lists *[3][]entry) (name string, v versions) {
	for _, list := range lists {
		if len(list) > 0 && (name == "" || list[0].name < name) {
			name = list[0].name
		}
	}
	for i, list := range lists {
		if len(list) > 0 && list[0].name == name {
			v[i], lists[i] = list[0], list[1:]
		}
	}
	return name, v
}

// write keeps a directory in memory, and returns its hash.
func (m *merger) write(entries []entry) (plumbing.Hash, error) {
	t := &object.Tree{Entries: make([]object.TreeEntry, len(entries))}
	for i, e := range entries {
		t.Entries[i] = object.TreeEntry{Name: e.name, Mode: e.fileMode(), Hash: e.hash}
	}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int { return cmp.Compare(sortName(a), sortName(b)) })

	var encoded plumbing.MemoryObject
	if err := t.Encode(&encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	r, err := encoded.Reader()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	b, err := io.ReadAll(r)
	m.made[encoded.Hash()] = b
	return encoded.Hash(), err
}

func (e entry) fileMode() filemode.FileMode {
	switch {
	case e.isDir():
		return filemode.Dir
	case e.mode == modeSymlink:
		return filemode.Symlink
	case e.mode == modeSubmodule:
		return filemode.Submodule
	case e.exec:
		return filemode.Executable
	}
	return filemode.Regular
}

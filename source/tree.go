// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
)

// Errors for reading an entry that is not a file. The entry is still listed: a
// symlink with fs.ModeSymlink, a submodule with fs.ModeIrregular.
var (
	ErrSymlink   = errors.New("symlink: not followed")
	ErrSubmodule = errors.New("submodules are not supported")
)

// Tree is a directory of a commit. It implements fs.FS, fs.ReadFileFS,
// fs.ReadDirFS and fs.StatFS, and is safe for concurrent use.
type Tree struct {
	from objects
	hash plumbing.Hash

	mu   sync.Mutex
	dirs map[plumbing.Hash]listing // the directories read so far, validated and sorted by name
	lost error                     // for the first missing object
}

// objects is where trees are read from.
type objects interface {
	// object reads an object of any type.
	object(h plumbing.Hash) (plumbing.ObjectType, []byte, error)
}

func newTree(from objects, h plumbing.Hash) *Tree {
	return &Tree{from: from, hash: h, dirs: map[plumbing.Hash]listing{}}
}

// Hash is equal for two trees with equal content.
func (t *Tree) Hash() string { return t.hash.String() }

// Empty reports whether there is nothing in it. git stores no such directory.
func (t *Tree) Empty() bool { return t.hash == emptyTree }

// Err is set if an object of the tree could not be read locally. A reader may
// have taken that for a mistake in the commit, so nothing may be concluded from
// what was read.
func (t *Tree) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// note records the error for Err.
func (t *Tree) note(err error) {
	if !IsUnavailable(err) {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	if t.lost == nil {
		t.lost = err
	}
}

// BlobHash is the hash of a file's content, and whether there is such a file.
func (t *Tree) BlobHash(name string) (string, bool) {
	e, err := t.find("stat", name)
	if err != nil || !e.isFile() {
		return "", false
	}
	return e.hash.String(), true
}

// Open implements fs.FS.
func (t *Tree) Open(name string) (fs.File, error) {
	e, err := t.find("open", name)
	if err != nil {
		return nil, err
	}

	if e.isDir() {
		entries, err := t.list(e.hash)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openDir{info: info{e, 0}, rest: t.dirEntries(entries)}, nil
	}

	b, err := t.read("open", name, e)
	if err != nil {
		return nil, err
	}

	return &openFile{info{e, int64(len(b))}, bytes.NewReader(b)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	e, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	return t.read("read", name, e)
}

// ReadDir implements fs.ReadDirFS.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}

	if !e.isDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}

	entries, err := t.list(e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}

	return t.dirEntries(entries), nil
}

// Stat implements fs.StatFS. It does not follow symlinks.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	e, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return t.info(e), nil
}

func (t *Tree) info(e entry) fs.FileInfo {
	if e.isFile() {
		return lazyInfo{info{e, 0}, t.from}
	}
	return info{e, 0}
}

func (t *Tree) read(op, name string, e entry) ([]byte, error) {
	var cause error
	switch {
	case e.isDir():
		cause = errors.New("is a directory")
	case e.mode == modeSymlink:
		cause = ErrSymlink
	case e.mode == modeSubmodule:
		cause = ErrSubmodule
	default:
		kind, b, err := t.from.object(e.hash)
		t.note(err)
		if err == nil && kind == plumbing.BlobObject {
			return b, nil
		}
		if cause = err; err == nil {
			cause = fmt.Errorf("object %s is a %s, not a file", e.hash, kind)
		}
	}

	return nil, &fs.PathError{Op: op, Path: name, Err: cause}
}

// maxDepth limits the depth of directories.
const maxDepth = 256

// find returns the entry at a path. The error names the part of the path that
// is not a directory.
func (t *Tree) find(op, name string) (entry, error) {
	wrong := func(path string, err error) (entry, error) {
		return entry{}, &fs.PathError{Op: op, Path: path, Err: err}
	}

	if !fs.ValidPath(name) {
		return wrong(name, fs.ErrInvalid)
	}

	at := entry{name: ".", mode: modeDir, hash: t.hash}
	if name == "." {
		return at, nil
	}

	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return wrong(name, fmt.Errorf("more than %d directories deep", maxDepth))
	}

	for i, part := range parts {
		switch {
		case at.mode == modeSymlink:
			return wrong(path.Join(parts[:i]...), ErrSymlink)
		case at.mode == modeSubmodule:
			return wrong(path.Join(parts[:i]...), ErrSubmodule)
		case !at.isDir():
			return wrong(name, fs.ErrNotExist)
		}

		entries, err := t.list(at.hash)
		if err != nil {
			return wrong(name, err)
		}

		e, there := entries.lookup(part)
		if !there {
			return wrong(name, fs.ErrNotExist)
		}

		at = e
	}

	return at, nil
}

// list returns the validated entries of a directory, sorted by name.
func (t *Tree) list(h plumbing.Hash) (listing, error) {
	t.mu.Lock()
	entries, ok := t.dirs[h]
	t.mu.Unlock()
	if ok {
		return entries, nil
	}

	entries, err := listingOf(t.from, h)
	if err != nil {
		t.note(err)
		return listing{}, err
	}
	if err := entries.check(h); err != nil {
		return listing{}, err
	}

	t.mu.Lock()
	t.dirs[h] = entries
	t.mu.Unlock()
	return entries, nil
}

func (t *Tree) dirEntries(entries listing) []fs.DirEntry {
	out := make([]fs.DirEntry, entries.len())
	for i := range out {
		out[i] = dirEntry{t, entries.entry(i)}
	}
	return out
}

// The modes that git writes. Older ones (100664) also mean a file.
const (
	modeDir       = 0o040000
	modeFile      = 0o100000
	modeSymlink   = 0o120000
	modeSubmodule = 0o160000
)

// entry is one entry of a tree object.
type entry struct {
	name string
	mode uint32 // one of the modes above
	exec bool
	hash plumbing.Hash
}

func (e entry) isDir() bool  { return e.mode == modeDir }
func (e entry) isFile() bool { return e.mode == modeFile }

func (r *Repo) entries(h plumbing.Hash) ([]entry, error) {
	l, err := listingOf(r, h)
	return l.entries(), err
}

// listingOf reads a tree object and sorts it by name.
func listingOf(from objects, h plumbing.Hash) (listing, error) {
	kind, b, err := from.object(h)
	if err != nil {
		return listing{}, fmt.Errorf("tree %s: %w", short(h), err)
	}
	if kind != plumbing.TreeObject {
		return listing{}, fmt.Errorf("tree %s: is a %s, not a tree", short(h), kind)
	}
	return newListing(h, b)
}

func parseMode(b []byte) (mode uint32, known bool) {
	if len(b) == 0 || len(b) > 6 {
		return 0, false
	}

	for i := range len(b) {
		if b[i] < '0' || b[i] > '7' {
			return 0, false
		}
		mode = mode<<3 | uint32(b[i]-'0')
	}

	switch mode &^ 0o7777 {
	case modeDir, modeFile, modeSymlink, modeSubmodule:
		return mode, true
	}

	return mode, false
}

// maxName is the limit of common file systems.
const maxName = 255

// validName refuses the names that no honest git client writes. Nothing is
// written to disk under them here, but someone else may check out the same
// commit.
func validName(name string) bool {
	return isSimpleName([]byte(name)) || isValidName(name)
}

// isValidName is validName, in full.
func isValidName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > maxName || !utf8.ValidString(name) {
		return false
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c == '/' || c == '\\' || c < ' ' || c == 0x7f }) {
		return false
	}
	return !isDotGit(name)
}

// isSimpleName reports whether a name is obviously valid, as nearly all are:
// one file of a commit needs a check of every name on its way.
func isSimpleName(name []byte) bool {
	if len(name) == 0 || len(name) > maxName || name[0] == '.' || name[0] == 'g' || name[0] == 'G' {
		return false
	}

	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '/' || c == '\\' {
			return false
		}
	}

	return true
}

// isDotGit also matches what Windows and macOS take for ".git".
func isDotGit(name string) bool {
	name = strings.Map(func(c rune) rune {
		if c >= 0x200c && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x206a && c <= 0x206f || c == 0xfeff {
			return -1
		}
		return c
	}, name)

	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// info implements fs.FileInfo.
type info struct {
	entry
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.entry.fsMode() }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.isDir() }
func (i info) Sys() any           { return nil }

// lazyInfo reads a file's object when its size is asked for, which is 0 if that
// fails. Most callers do not ask for the size.
type lazyInfo struct {
	info
	from objects
}

func (u lazyInfo) Size() int64 {
	_, b, _ := u.from.object(u.hash)
	return int64(len(b))
}

func (e entry) fsMode() fs.FileMode {
	switch {
	case e.isDir():
		return fs.ModeDir | 0o555
	case e.mode == modeSymlink:
		return fs.ModeSymlink | 0o777
	case e.mode == modeSubmodule:
		return fs.ModeIrregular
	case e.exec:
		return 0o555
	}

	return 0o444
}

type dirEntry struct {
	tree *Tree
	entry
}

func (d dirEntry) Name() string               { return d.name }
func (d dirEntry) IsDir() bool                { return d.isDir() }
func (d dirEntry) Type() fs.FileMode          { return d.fsMode().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.tree.info(d.entry), nil }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

type openFile struct {
	info
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }
func (f *openFile) Size() int64                { return f.info.size }

type openDir struct {
	info
	rest []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.rest) == 0 {
		return nil, io.EOF
	}

	if n <= 0 || n > len(d.rest) {
		n = len(d.rest)
	}

	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken, nil
}

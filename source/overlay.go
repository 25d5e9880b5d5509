// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Overlay is a tree with some files replaced or added: what a commit would
// contain before it is made.
type Overlay struct {
	*Tree
	files map[string][]byte
}

// With is the tree with files replaced or added; nil content removes a file.
func (t *Tree) With(files map[string][]byte) *Overlay { return &Overlay{t, files} }

// find is the entry of a file or directory, and whether only the overlay has
// it.
func (o *Overlay) find(op, name string) (e entry, made bool, err error) {
	e, err = o.Tree.find(op, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return e, false, err
	}

	for file, b := range o.files {
		switch {
		case b == nil:
		case file == name:
			return entry{name: path.Base(name), mode: modeFile, hash: plumbing.ComputeHash(plumbing.BlobObject, b)}, true, nil
		case strings.HasPrefix(file, name+"/"):
			return entry{name: path.Base(name), mode: modeDir}, true, nil
		}
	}

	return e, false, err
}

// Open implements fs.FS.
func (o *Overlay) Open(name string) (fs.File, error) {
	e, _, err := o.find("open", name)
	if err != nil {
		return nil, err
	}

	if b, ok := o.files[name]; ok {
		return &overlaid{info{e, int64(len(b))}, bytes.NewReader(b)}, nil
	}
	if !e.isDir() {
		return o.Tree.Open(name)
	}

	entries, err := o.ReadDir(name)
	if err != nil {
		return nil, err
	}

	return &openDir{info: info{e, 0}, rest: entries}, nil
}

// ReadFile implements fs.ReadFileFS.
func (o *Overlay) ReadFile(name string) ([]byte, error) {
	b, ok := o.files[name]
	if !ok {
		return o.Tree.ReadFile(name)
	}
	if _, _, err := o.find("read", name); err != nil {
		return nil, err
	}
	return bytes.Clone(b), nil
}

// ReadDir implements fs.ReadDirFS.
func (o *Overlay) ReadDir(name string) (entries []fs.DirEntry, err error) {
	_, made, err := o.find("readdir", name)
	if err != nil {
		return nil, err
	}

	if !made {
		if entries, err = o.Tree.ReadDir(name); err != nil {
			return nil, err
		}
	}

	there := map[string]bool{}
	for i, e := range entries {
		there[e.Name()] = true
		if _, ok := o.files[path.Join(name, e.Name())]; ok {
			entries[i] = overlaidEntry{e, o, path.Join(name, e.Name())}
		}
	}

	for file, b := range o.files {
		below, ok := strings.CutPrefix("/"+file, strings.TrimSuffix(path.Join("/", name), "/")+"/")
		child, _, _ := strings.Cut(below, "/")
		if !ok || b == nil || there[child] {
			continue
		}

		there[child] = true
		e, _, err := o.find("readdir", path.Join(name, child))
		if err != nil {
			return nil, err
		}

		entries = append(entries, overlaidEntry{dirEntry{o.Tree, e}, o, path.Join(name, child)})
	}

	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Stat implements fs.StatFS.
func (o *Overlay) Stat(name string) (fs.FileInfo, error) {
	e, made, err := o.find("stat", name)
	if err != nil {
		return nil, err
	}
	if b, ok := o.files[name]; ok || made {
		return info{e, int64(len(b))}, nil
	}
	return o.info(e), nil
}

// BlobHash is the hash that a file's content has or would have.
func (o *Overlay) BlobHash(name string) (string, bool) {
	b, ok := o.files[name]
	if !ok {
		return o.Tree.BlobHash(name)
	}
	return plumbing.ComputeHash(plumbing.BlobObject, b).String(), true
}

type overlaid struct {
	info fs.FileInfo
	*bytes.Reader
}

func (f *overlaid) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *overlaid) Close() error               { return nil }

// overlaidEntry is an entry that the tree has otherwise, or not at all.
type overlaidEntry struct {
	fs.DirEntry
	in   *Overlay
	path string
}

func (e overlaidEntry) Info() (fs.FileInfo, error) { return e.in.Stat(e.path) }

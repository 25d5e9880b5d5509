// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
)

// Overlay is a tree in which some of the files have other contents: what a
// commit would hold before there is one.
type Overlay struct {
	*Tree
	files map[string][]byte
}

// With is the tree as if files that it has were other ones.
func (t *Tree) With(files map[string][]byte) *Overlay { return &Overlay{t, files} }

// Open implements fs.FS.
func (o *Overlay) Open(name string) (fs.File, error) {
	b, ok := o.files[name]
	if !ok {
		return o.Tree.Open(name)
	}
	info, err := o.Stat(name)
	if err != nil {
		return nil, err
	}
	return &overlaid{info, bytes.NewReader(b)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (o *Overlay) ReadFile(name string) ([]byte, error) {
	b, ok := o.files[name]
	if !ok {
		return o.Tree.ReadFile(name)
	}
	if _, err := o.find("read", name); err != nil {
		return nil, err
	}
	return bytes.Clone(b), nil
}

// Stat implements fs.StatFS.
func (o *Overlay) Stat(name string) (fs.FileInfo, error) {
	b, ok := o.files[name]
	if !ok {
		return o.Tree.Stat(name)
	}
	e, err := o.find("stat", name)
	if err != nil {
		return nil, err
	}
	return info{e, int64(len(b))}, nil
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

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// hasher is a file system that knows the hashes of its files, as a git tree
// does.
type hasher interface {
	BlobHash(name string) (string, bool)
}

// state is what is at a path: the hash of a file's content, or one of the words
// below, none of which is a hash.
type state string

const (
	absent    state = "absent"
	directory state = "directory"
	special   state = "special" // a symlink or a submodule
)

// stateOf returns the state of a path. It never follows a symlink.
func stateOf(fsys fs.FS, name string) state {
	info, err := fs.Lstat(fsys, name)
	switch {
	case err != nil:
		return absent
	case info.IsDir():
		return directory
	case !info.Mode().IsRegular():
		return special
	}

	if h, ok := fsys.(hasher); ok {
		if hash, ok := h.BlobHash(name); ok {
			return state(hash)
		}
	}

	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return special
	}

	sum := sha256.Sum256(b)
	return state(hex.EncodeToString(sum[:]))
}

// read reads a regular file. The error for anything else says what it is.
func read(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, err
	}

	// A git tree refuses symlinks itself, with a better message.
	if _, git := fsys.(hasher); !git && info.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("symlink: not followed")}
	}

	return fs.ReadFile(fsys, name)
}

// mount is the tree's directory in the view. A path that leaves the tree with
// ".." ends up next to it, where nothing exists.
const mount = "/fleet's-tree"

// view shows kustomize one tree and nothing else, read-only, and records what
// kustomize reads and looks for.
type view struct {
	fsys    fs.FS
	served  map[string][]byte // replaces what the tree has
	reads   map[string]state
	outside string // the first reference that left the tree

	sized map[string]bool // files that were read
	bytes int             // of them, each once
	steps int             // that kustomize takes, as they were counted
}

func newView(fsys fs.FS) *view {
	return &view{fsys: fsys, served: map[string][]byte{}, reads: map[string]state{}, sized: map[string]bool{}}
}

var errOutside = errors.New("outside the fleet's tree")

// rel is the path relative to the tree.
func (v *view) rel(name string) (string, error) {
	clean := path.Clean(filepath.ToSlash(name))
	if clean == mount {
		return ".", nil
	}

	rel, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		if v.outside == "" {
			v.outside = name
		}
		return "", fmt.Errorf("%s: %w", name, errOutside)
	}

	return rel, nil
}

// stat returns what is at a path, and records it.
func (v *view) stat(rel string) state {
	if s, ok := v.reads[rel]; ok {
		return s
	}
	s := stateOf(v.fsys, rel)
	v.reads[rel] = s
	return s
}

// content is a file's content as kustomize sees it.
func (v *view) content(rel string) ([]byte, error) {
	v.stat(rel)
	if b, ok := v.served[rel]; ok {
		return b, nil
	}

	b, err := read(v.fsys, rel)
	if err == nil && !v.sized[rel] {
		v.sized[rel] = true
		v.bytes += len(b)
	}
	return b, err
}

// ReadFile implements filesys.FileSystem.
func (v *view) ReadFile(name string) ([]byte, error) {
	rel, err := v.rel(name)
	if err != nil {
		return nil, err
	}
	return v.content(rel)
}

// IsDir implements filesys.FileSystem.
func (v *view) IsDir(name string) bool {
	rel, err := v.rel(name)
	return err == nil && v.stat(rel) == directory
}

// Exists implements filesys.FileSystem.
func (v *view) Exists(name string) bool {
	rel, err := v.rel(name)
	return err == nil && v.stat(rel) != absent
}

// CleanedAbs implements filesys.FileSystem.
func (v *view) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	rel, err := v.rel(name)
	if err != nil {
		return "", "", err
	}

	abs := path.Join(mount, rel)
	switch v.stat(rel) {
	case absent:
		return "", "", fmt.Errorf("%s: %w", rel, fs.ErrNotExist)
	case directory:
		return filesys.ConfirmedDir(abs), "", nil
	}

	return filesys.ConfirmedDir(path.Dir(abs)), path.Base(abs), nil
}

var errReadOnly = errors.New("a commit is read-only")

// A build does not use the rest of filesys.FileSystem.

func (v *view) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (v *view) Mkdir(string) error                   { return errReadOnly }
func (v *view) MkdirAll(string) error                { return errReadOnly }
func (v *view) RemoveAll(string) error               { return errReadOnly }
func (v *view) WriteFile(string, []byte) error       { return errReadOnly }
func (v *view) Open(string) (filesys.File, error)    { return nil, errors.ErrUnsupported }
func (v *view) ReadDir(string) ([]string, error)     { return nil, errors.ErrUnsupported }
func (v *view) Glob(string) ([]string, error)        { return nil, errors.ErrUnsupported }
func (v *view) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }

// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Init creates an empty bare repository at dir whose HEAD is branch.
func Init(dir, branch string) (*Repo, error) {
	_, err := git.PlainInitWithOptions(dir, &git.PlainInitOptions{
		Bare:        true,
		InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName(branch)},
	})
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", dir, err)
	}
	return Open(dir)
}

// Edit is a commit to make on a branch.
type Edit struct {
	Branch string
	// On is the commit that the branch must be at; "" for any.
	On      string
	Message string
	// Author is a name and a mail address. When is the author and the commit date.
	Author, Mail string
	When         time.Time
	// Files by path; nil removes a file. Empty directories disappear with it.
	Files map[string][]byte
}

// Apply commits an edit on top of its branch, which it creates if necessary,
// and returns the commit's hash. Work trees are not touched.
func (r *Repo) Apply(e Edit) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	name := plumbing.NewBranchReferenceName(e.Branch)
	parent := plumbing.ZeroHash
	if old, err := r.refs.Reference(name); err == nil {
		parent = old.Hash()
	}
	if e.On != "" && e.On != parent.String() {
		return "", fmt.Errorf("branch %s: %w", e.Branch, ErrBranchMoved)
	}

	hash, err := r.writer().commit(parent, e)
	if err != nil {
		return "", fmt.Errorf("edit of %s: %w", e.Branch, err)
	}

	if err := r.move(name, parent, hash); err != nil {
		return "", fmt.Errorf("branch %s: %w", e.Branch, err)
	}

	return hash.String(), nil
}

// Draft commits an edit on top of parent without moving a branch: nobody sees
// it until it is pushed.
func (r *Repo) Draft(parent string, e Edit) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hash, err := r.writer().commit(plumbing.NewHash(parent), e)
	if err != nil {
		return "", fmt.Errorf("edit of %s: %w", parent, err)
	}
	return hash.String(), nil
}

// advance moves a branch from one commit to another, unless it has moved.
func (r *Repo) advance(branch, from, to string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.move(plumbing.NewBranchReferenceName(branch), plumbing.NewHash(from), plumbing.NewHash(to)); err != nil {
		return fmt.Errorf("branch %s: %w", branch, err)
	}
	return nil
}

func (r *Repo) writer() *writer {
	return &writer{filesystem.NewStorage(osfs.New(r.common, osfs.WithBoundOS()), cache.NewObjectLRUDefault())}
}

type writer struct{ store storer.EncodedObjectStorer }

// commit writes the commit of an edit; a zero parent makes a root commit.
func (w *writer) commit(on plumbing.Hash, e Edit) (plumbing.Hash, error) {
	c := &object.Commit{Message: e.Message}
	c.Author = object.Signature{Name: e.Author, Email: e.Mail, When: e.When}
	c.Committer = c.Author
	var old plumbing.Hash
	if !on.IsZero() {
		parent, err := object.GetCommit(w.store, on)
		if err != nil {
			return plumbing.ZeroHash, fmt.Errorf("commit %s: %w", short(on), err)
		}
		c.ParentHashes, old = []plumbing.Hash{on}, parent.TreeHash
	}

	var err error
	if c.TreeHash, err = w.tree(old, e.Files); err != nil {
		return plumbing.ZeroHash, err
	}

	return w.put(c)
}

// commitAfter is commit with a date that is not before the parent's.
func (w *writer) commitAfter(on plumbing.Hash, e Edit) (plumbing.Hash, error) {
	if !on.IsZero() {
		parent, err := object.GetCommit(w.store, on)
		if err != nil {
			return plumbing.ZeroHash, fmt.Errorf("commit %s: %w", short(on), err)
		}
		if parent.Committer.When.After(e.When) {
			e.When = parent.Committer.When.UTC()
		}
	}

	return w.commit(on, e)
}

// tree writes a tree: old, if any, with files edited.
func (w *writer) tree(old plumbing.Hash, files map[string][]byte) (plumbing.Hash, error) {
	entries := map[string]object.TreeEntry{}
	if !old.IsZero() {
		t, err := object.GetTree(w.store, old)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		for _, e := range t.Entries {
			entries[e.Name] = e
		}
	}

	below := map[string]map[string][]byte{}
	for name, content := range files {
		dir, rest, nested := strings.Cut(path.Clean(name), "/")
		switch {
		case !validName(dir):
			return plumbing.ZeroHash, fmt.Errorf("invalid path %q", name)
		case nested:
			if below[dir] == nil {
				below[dir] = map[string][]byte{}
			}
			below[dir][rest] = content
		case content == nil:
			delete(entries, dir)
		default:
			hash, err := w.blob(content)
			if err != nil {
				return plumbing.ZeroHash, err
			}
			mode := filemode.Regular
			if entries[dir].Mode == filemode.Executable {
				mode = filemode.Executable
			}
			entries[dir] = object.TreeEntry{Name: dir, Mode: mode, Hash: hash}
		}
	}

	for dir, files := range below {
		var was plumbing.Hash
		if e, ok := entries[dir]; ok {
			if e.Mode != filemode.Dir {
				return plumbing.ZeroHash, fmt.Errorf("%s is not a directory", dir)
			}
			was = e.Hash
		}

		hash, err := w.tree(was, files)
		if err != nil {
			return plumbing.ZeroHash, err
		}

		entries[dir] = object.TreeEntry{Name: dir, Mode: filemode.Dir, Hash: hash}
		if hash == emptyTree {
			delete(entries, dir)
		}
	}

	t := &object.Tree{Entries: slices.Collect(maps.Values(entries))}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return w.put(t)
}

// emptyTree is the hash of a tree without entries.
var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// sortName is the name by which git orders a tree: a directory's ends in a
// slash.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

type encoder interface {
	Encode(plumbing.EncodedObject) error
}

func (w *writer) put(o encoder) (plumbing.Hash, error) {
	encoded := w.store.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.store.SetEncodedObject(encoded)
}

func (w *writer) blob(content []byte) (plumbing.Hash, error) {
	return w.object(plumbing.BlobObject, content)
}

func (w *writer) object(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	encoded := w.store.NewEncodedObject()
	encoded.SetType(kind)
	out, err := encoded.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}

	if _, err := out.Write(content); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := out.Close(); err != nil {
		return plumbing.ZeroHash, err
	}

	return w.store.SetEncodedObject(encoded)
}

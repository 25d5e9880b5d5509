// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// Larger objects are not read: no manifest is that large, and a tree of that
// size has about a million entries.
const (
	MaxFile = 4 << 20
	maxTree = 64 << 20
)

// ErrTooLarge is wrapped by the error for a file above MaxFile.
var ErrTooLarge = errors.New("too large")

// unavailable is the error for an object that a commit refers to and that
// cannot be read locally. It says nothing about the commit.
type unavailable struct{ error }

func (e unavailable) Unwrap() error { return e.error }

// IsUnavailable reports whether an error is about this machine: an object could not be
// read here. Any other error about a commit or its tree is a fact that every machine
// finds.
func IsUnavailable(err error) bool {
	var lost unavailable
	return errors.As(err, &lost)
}

// Reads is how many objects were read, each as often as somebody asked for it.
func (r *Repo) Reads() int { return int(r.reads.Load()) }

// object reads an object of any type.
func (r *Repo) object(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	r.reads.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()

	kind, b, err := r.find(h)
	if err != nil && !errors.Is(err, ErrTooLarge) && r.stale() {
		// The packs may have changed by a push or repack.
		if err := r.reopen(); err != nil {
			return plumbing.InvalidObject, nil, unavailable{fmt.Errorf("repository %s: %w", r.path, err)}
		}
		kind, b, err = r.find(h)
	}

	if errors.Is(err, plumbing.ErrObjectNotFound) {
		r.damaged.Store(true)
		return plumbing.InvalidObject, nil, unavailable{fmt.Errorf("object %s is missing", h)}
	}

	if err != nil && !errors.Is(err, ErrTooLarge) {
		r.damaged.Store(true)
		return plumbing.InvalidObject, nil, unavailable{fmt.Errorf("object %s: %w", h, err)}
	}

	return kind, b, err
}

// fresh returns the stores, reopened if the packs have changed. r.mu is held.
func (r *Repo) fresh() []*store {
	if r.stale() {
		// An error shows when the stores are read.
		_ = r.reopen()
	}
	return r.stores
}

func (r *Repo) stale() bool {
	dirs, err := objectDirs(filepath.Join(r.common, "objects"))
	return err != nil || r.stampOf(dirs) != r.stamp
}

func (r *Repo) find(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	for _, s := range r.stores {
		o, err := s.EncodedObject(plumbing.AnyObject, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}

		if err != nil {
			return plumbing.InvalidObject, nil, err
		}

		b, err := content(o)
		return o.Type(), b, err
	}

	return plumbing.InvalidObject, nil, plumbing.ErrObjectNotFound
}

func content(o plumbing.EncodedObject) (b []byte, err error) {
	limit := int64(MaxFile)
	if o.Type() == plumbing.TreeObject {
		limit = maxTree
	}
	if o.Size() > limit {
		return nil, fmt.Errorf("%s of %d bytes is %w, at most %d are read", o.Type(), o.Size(), ErrTooLarge, limit)
	}

	reader, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()

	b = make([]byte, o.Size())
	if _, err := io.ReadFull(reader, b); err != nil {
		return nil, err
	}

	return b, nil
}

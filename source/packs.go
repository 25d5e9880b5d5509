// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// store is a directory of objects. go-git reads its packs and writes to it; the indexes of
// its packs are ours. It sees the packs that were there when it was first read from.
type store struct {
	*filesystem.ObjectStorage
	git     *dotgit.DotGit
	objects cache.Object
	packs   []*pack
	listed  bool
}

// pack is a pack of a store.
type pack struct {
	name  plumbing.Hash
	index *packIndex
	file  *packfile.Packfile // nil until something is read
}

func newStore(git *dotgit.DotGit, objects cache.Object) *store {
	options := filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: MaxFile}
	return &store{ObjectStorage: filesystem.NewObjectStorageWithOptions(git, objects, options), git: git, objects: objects}
}

// list reads the indexes of the packs, once.
func (s *store) list() error {
	if s.listed {
		return nil
	}

	names, err := s.git.ObjectPacks()
	if err != nil {
		return err
	}
	var packs []*pack
	for _, name := range names {
		index, err := s.readIndex(name)
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		packs = append(packs, &pack{name: name, index: index})
	}
	s.packs, s.listed = packs, true
	return nil
}

func (s *store) readIndex(name plumbing.Hash) (index *packIndex, err error) {
	f, err := s.git.ObjectPackIdx(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return readPackIndex(f, size)
}

// EncodedObject reads an object of a pack, or one of its own.
func (s *store) EncodedObject(_ plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	p, err := s.pack(h)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return s.loose(h)
	}

	if p.file == nil {
		f, err := s.git.ObjectPack(p.name)
		if err != nil {
			return nil, err
		}
		p.file = packfile.NewPackfileWithCache(p.index, s.git.Fs(), f, s.objects, MaxFile)
	}
	return p.file.Get(h)
}

// pack is that of an object; nil if none has it.
func (s *store) pack(h plumbing.Hash) (*pack, error) {
	if err := s.list(); err != nil {
		return nil, err
	}
	for _, p := range s.packs {
		if there, _ := p.index.Contains(h); there {
			return p, nil
		}
	}
	return nil, nil
}

// loose reads an object that has a file of its own.
func (s *store) loose(h plumbing.Hash) (o plumbing.EncodedObject, err error) {
	if o, ok := s.objects.Get(h); ok {
		return o, nil
	}

	f, err := s.git.Object(h)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, plumbing.ErrObjectNotFound
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := objfile.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	kind, size, err := r.Header()
	if err != nil {
		return nil, err
	}
	if size > MaxFile {
		return dotgit.NewEncodedObject(s.git, h, kind, size), nil
	}
	made := &plumbing.MemoryObject{}
	made.SetType(kind)
	if _, err := io.Copy(made, r); err != nil {
		return nil, err
	}
	s.objects.Put(made)
	return made, nil
}

// HasEncodedObject returns an error if an object is not there.
func (s *store) HasEncodedObject(h plumbing.Hash) error {
	p, err := s.pack(h)
	if p != nil || err != nil {
		return err
	}
	_, err = s.git.ObjectStat(h)
	if errors.Is(err, fs.ErrNotExist) {
		return plumbing.ErrObjectNotFound
	}
	return err
}

// Close closes what is read from.
func (s *store) Close() error {
	err := s.ObjectStorage.Close()
	for _, p := range s.packs {
		if p.file != nil {
			err = errors.Join(err, p.file.Close())
		}
	}
	s.packs, s.listed = nil, false
	return err
}

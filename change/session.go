// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/fairlead/fairlead/change/yamledit"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Change is an edit of the fleet, as the user requests it.
type Change interface {
	// Name returns the name from which a branch name is derived.
	Name() string
	// Check refuses options that are invalid for every fleet; the error is an
	// *OptionError. It must be called before Edit.
	Check() error
	// Edit prepares the change in a session.
	Edit(*Session) (Edit, error)
}

// OptionError is the error of a change whose options are invalid, or do not fit
// together. It is a usage error, not a failure.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

func optionf(format string, args ...any) error { return &OptionError{fmt.Errorf(format, args...)} }

// Options say which fleet is edited and where the edit is written: to the work
// tree, or with Commit or Push to a branch.
type Options struct {
	Repo, Ref, Path string // as the user has named them
	Commit          bool
	Push            string // branch of the remote; "" pushes nothing
	DryRun          bool
	// Credentials and Author are called when they are needed.
	Credentials func() (source.Auth, error)
	Author      func() (Author, error)
}

// Author is the author of an edit, and its time.
type Author struct {
	Name, Mail string
	When       time.Time
}

// String reads "Ann <ann@example.com>".
func (a Author) String() string { return a.Name + " <" + a.Mail + ">" }

// where is where an edit is written.
type where int

const (
	toWorkTree where = iota
	toBranch
	toRemote
	toNowhere // a dry run without a work tree
)

// Session is an edit in preparation: the commit that it goes on top of, and the
// files as they will be.
type Session struct {
	*history.States
	opt    Options
	where  where
	branch string // to commit on
	tree   *source.WorkTree

	base  *source.Commit
	state propagate.State  // folded up to base
	in    propagate.Commit // base, with the uncommitted changes in the files of the edit

	uncommitted map[string][]byte // files of the work tree that differ from base
	read        map[string][]byte // files as they were read
	files       map[string]*yamledit.File
	created     map[string][]byte // files that are new
	restored    map[string][]byte // files that are replaced as a whole
	notes       []string
}

// Open opens a session on the commit and the target that the options select.
func Open(states *history.States, opt Options) (*Session, error) {
	s := &Session{States: states, opt: opt, tree: states.Repo.WorkTree(), uncommitted: map[string][]byte{}, read: map[string][]byte{}, files: map[string]*yamledit.File{}, created: map[string][]byte{}, restored: map[string][]byte{}}
	var base string
	var err error
	switch {
	case opt.Push != "":
		base, err = s.toRemote()
	case opt.Commit:
		base, err = s.toBranch()
	default:
		base, err = s.toWorkTree()
	}

	if err != nil {
		return nil, err
	}
	if s.state, err = states.At(base); err != nil {
		return nil, err
	}
	if s.base, err = states.Repo.Commit(base); err != nil {
		return nil, err
	}

	return s, s.reread()
}

// State returns the state of the fleet before the edit.
func (s *Session) State() *propagate.State { return &s.state }

// Cluster returns a cluster of the fleet, uncommitted changes included.
func (s *Session) Cluster(name string) (*fleet.Cluster, bool) {
	return s.in.Snapshot.Clusters.Get(name)
}

// Template returns a template of the fleet, uncommitted changes included.
func (s *Session) Template(id object.ID) (*fleet.Template, bool) {
	return s.in.Snapshot.Templates.Get(id.Key())
}

// Notes returns what the user should know about the edit beside its plan.
func (s *Session) Notes() []string { return s.notes }

func (s *Session) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(s.notes, note) {
		s.notes = append(s.notes, note)
	}
}

// reread reads base again, uncommitted changes included.
func (s *Session) reread() (err error) {
	if s.in, err = s.History.Edited(s.base, &s.state, s.uncommitted); err != nil {
		return err
	}

	if s.in.Snapshot == nil {
		what := "commit " + source.Short(s.base.Hash) + " is refused"
		if len(s.uncommitted) > 0 {
			what += " with the uncommitted changes"
		}
		return fmt.Errorf("%s: %w; fix it first", what, s.in.Problems[0])
	}

	return nil
}

// load reads the file of a document. again reports whether the file has uncommitted
// changes, so that the fleet was read again.
func (s *Session) load(file string) (again bool, err error) {
	if s.files[file] != nil {
		return false, nil
	}
	tree, err := s.base.Tree(s.opt.Path)
	if err != nil {
		return false, err
	}
	text, err := tree.ReadFile(file)
	if err != nil {
		return false, err
	}

	if s.tree != nil && s.where == toWorkTree {
		there, err := s.tree.Read(s.inRepository(file))
		if err != nil {
			return false, err
		}
		if !bytes.Equal(there, text) {
			if !source.SameButLineEnds(there, text) {
				s.note("%s has uncommitted changes; the plan includes them", s.inRepository(file))
			}
			s.uncommitted[file], text, again = there, there, true
		}
	}
	if s.files[file], err = yamledit.Read(file, text); err != nil {
		return false, err
	}

	s.read[file] = text
	if again {
		err = s.reread()
	}

	return again, err
}

// create adds a new file to the edit. Neither base nor the work tree may have it.
func (s *Session) create(file string, text []byte) error {
	tree, err := s.base.Tree(s.opt.Path)
	if err != nil {
		return err
	}

	for at := file; at != "."; at = path.Dir(at) {
		info, err := tree.Stat(at)
		if errors.Is(err, fs.ErrNotExist) || err == nil && at != file && info.IsDir() {
			continue
		}
		return errors.Join(err, fmt.Errorf("%s already exists at %s: choose another file with --into", s.inRepository(at), source.Short(s.base.Hash)))
	}

	if err := s.vacant(file); err != nil {
		return err
	}

	s.created[file] = text
	return nil
}

// restore replaces a file of base, or adds one if now is nil.
func (s *Session) restore(file string, now, text []byte) error {
	if now == nil {
		return s.create(file, text)
	}

	s.read[file], s.restored[file] = now, text
	if s.tree == nil || s.where != toWorkTree {
		return nil
	}

	there, err := s.tree.Read(s.inRepository(file))
	switch {
	case err != nil:
		return err
	case bytes.Equal(there, now):
	case source.SameButLineEnds(there, now):
		s.read[file], s.restored[file] = there, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	default:
		return fmt.Errorf("%s has uncommitted changes: commit or stash them first", s.inRepository(file))
	}
	return nil
}

// vacant checks that the work tree does not have a new file.
func (s *Session) vacant(file string) error {
	if s.tree == nil {
		return nil
	}
	there, err := s.tree.Has(s.inRepository(file))
	if err == nil && there {
		err = fmt.Errorf("%s already exists and is not committed: commit it or remove it, or choose another file with --into", s.inRepository(file))
	}
	return err
}

func (s *Session) inRepository(file string) string { return path.Join(s.opt.Path, file) }

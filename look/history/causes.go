// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// mostTrials is how many edits are taken back, one at a time, to find out what each of
// them did. Beyond, the causes of a change are those that its file names tell.
const mostTrials = 64

// Causes returns, by template, the edited lines that made it what it is in the commit
// that was read last, on top of the state's: each edit is taken back and the tree
// rendered without it, so that a line of a kustomization or of a base is found as well
// as one of the manifest. What cannot be found out this way is left out.
func (h *History) Causes(on *propagate.State) (map[object.ID][]fleet.Origin, error) {
	base, err := h.base(on)
	if err != nil || base.tree == nil || h.last.build == nil || h.last.tree == nil {
		return nil, err
	}
	changed, err := source.Changed(base.tree, h.last.tree)
	switch {
	case errors.Is(err, source.ErrTooManyChanges):
		return nil, nil // so many that no line can be named
	case err != nil:
		return nil, err
	}

	t := &trial{h: h, causes: map[object.ID][]fleet.Origin{}}
	files := t.edits(base.tree, changed)
	if t.total > mostTrials {
		t.wholeFiles(files)
	} else {
		t.eachEdit(files)
	}
	t.ownFiles(files, base.build.Snapshot)
	return t.causes, base.tree.Err()
}

// trial finds out what edits do.
type trial struct {
	h      *History
	causes map[object.ID][]fleet.Origin
	total  int // edits
}

// editedFile is a file before and after; nil where it is not there.
type editedFile struct {
	name          string
	before, after []byte
	edits         []edit
}

// edits are those of files of which both sides can be read.
func (t *trial) edits(base *source.Tree, changed []string) (files []editedFile) {
	for _, name := range changed {
		before, err := base.ReadFile(name)
		after, headErr := t.h.last.tree.ReadFile(name)
		if unreadable(err) || unreadable(headErr) {
			continue
		}
		f := editedFile{name: name, before: before, after: after}
		f.edits = editsOf(before, after)
		t.total += len(f.edits)
		files = append(files, f)
	}
	return files
}

func unreadable(err error) bool { return err != nil && !errors.Is(err, fs.ErrNotExist) }

func (t *trial) eachEdit(files []editedFile) {
	for _, f := range files {
		for _, e := range f.edits {
			t.without(f.name, e.revert(f), e.line)
		}
	}
}

// wholeFiles takes back whole files, as long as they are not too many either.
func (t *trial) wholeFiles(files []editedFile) {
	if len(files) > mostTrials {
		return
	}
	for _, f := range files {
		t.without(f.name, f.before, f.edits[0].line)
	}
}

// without renders the tree with another content of a file, and notes which templates
// are different then. A tree that cannot be rendered tells nothing.
func (t *trial) without(file string, content []byte, line int) {
	head := t.h.last
	tree := head.tree.With(map[string][]byte{file: content})
	tried, err := t.h.renderer.Try(head.build, tree, []string{file}).Result()
	if err != nil {
		return
	}
	t.h.Renders += tried.Renders

	for d := range ordered.Diff(head.build.Snapshot.Templates, tried.Snapshot.Templates) {
		if d.Had && (!d.Has || d.Before.Digest != d.After.Digest) {
			t.add(d.Before.ID, fleet.Origin{File: file, Line: line})
		}
		if !d.Had {
			t.add(d.After.ID, fleet.Origin{File: file, Line: line}) // the edit removes it
		}
	}
}

// ownFiles adds, for templates of which nothing was found out, the edit of the file that
// they are written in.
func (t *trial) ownFiles(files []editedFile, before *fleet.Snapshot) {
	byName := map[string]editedFile{}
	for _, f := range files {
		byName[f.name] = f
	}
	for d := range ordered.Diff(before.Templates, t.h.last.build.Snapshot.Templates) {
		if !d.Has {
			continue
		}
		f, edited := byName[d.After.Origin.File]
		if t.causes[d.After.ID] != nil || !edited {
			continue
		}
		t.add(d.After.ID, fleet.Origin{File: f.name, Line: f.firstEdit(d.After.Origin.Line)})
	}
}

// firstEdit is the first edited line from a line on, or the line itself.
func (f *editedFile) firstEdit(line int) int {
	for _, e := range f.edits {
		if e.line >= line {
			return e.line
		}
	}
	return line
}

const mostCauses = 8 // of one template

func (t *trial) add(id object.ID, at fleet.Origin) {
	if known := t.causes[id]; len(known) < mostCauses && !slices.Contains(known, at) {
		t.causes[id] = append(known, at)
	}
}

// edit replaces some lines of a file by others.
type edit struct {
	line             int // the first line after the edit, from 1 on
	from, to         int // lines of the file after it, from 0 on
	oldFrom, oldUpTo int // lines of the file before
}

// revert is a file without the edit; nil is no file.
func (e edit) revert(f editedFile) []byte {
	if f.after == nil || f.before == nil {
		return f.before
	}
	before, after := lines(f.before), lines(f.after)
	return bytes.Join(slices.Concat(after[:e.from], before[e.oldFrom:e.oldUpTo], after[e.to:]), nil)
}

func lines(b []byte) [][]byte { return bytes.SplitAfter(b, []byte("\n")) }

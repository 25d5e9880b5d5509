// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/propagate"
)

// layout says which units a tree has. It is not altered once it is made, and
// trees share it as long as no kustomization or ignore file comes, goes, or
// changes what it means.
type layout struct {
	ignores ignores
	// dirs are the directories with a kustomization that the walk came by.
	dirs map[string]bool
	// uses are the kustomizations that each one uses, also those that the walk
	// left out.
	uses map[string][]string
	// roots are the kustomizations that nobody uses.
	roots map[string]bool
	// unparsed are the kustomizations that cannot be parsed, and why not. What
	// they use is then what they used when they last could.
	unparsed map[string]propagate.Problem
}

// walk comes by every directory of a tree, and lists its plain files.
func walk(fsys fs.FS) *walker {
	w := &walker{fsys: fsys, layout: &layout{
		ignores: ignores{}, dirs: map[string]bool{}, uses: map[string][]string{}, roots: map[string]bool{}, unparsed: map[string]propagate.Problem{},
	}}
	w.dir(".", false)
	return w
}

type walker struct {
	fsys     fs.FS
	layout   *layout
	files    []string
	problems []propagate.Problem
	// used is what a kustomization that cannot be parsed used when it last
	// could; nil when that does not matter, as the tree is refused for it.
	used func(dir string) (uses []string, known bool)
}

// lay finds what uses what, and the roots.
func (w *walker) lay() *layout {
	for _, dir := range slices.Sorted(maps.Keys(w.layout.dirs)) {
		w.follow(dir)
	}
	w.findRoots()
	return w.layout
}

// maxDepth bounds how deep directories are walked.
const maxDepth = 200

func (w *walker) wrong(file string, line int, format string, args ...any) {
	w.problems = append(w.problems, problem(file, line, fmt.Sprintf(format, args...)))
}

// dir walks one directory. owned is whether it stands below a kustomization.
func (w *walker) dir(dir string, owned bool) {
	if strings.Count(dir, "/") > maxDepth {
		w.wrong(dir, 0, "more than %d directories deep", maxDepth)
		return
	}
	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.wrong(dir, 0, "%s", cause(err))
		return
	}
	w.readIgnores(dir, entries)
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isKustomizationFile(e.Name()) && !e.IsDir() }) {
		w.layout.dirs[dir] = true
		owned = true
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if w.layout.ignores.skips(name, e.IsDir()) {
			continue
		}
		switch {
		case e.IsDir():
			w.dir(name, owned)
		case !isManifest(name) || owned && name != settingsFile || isKustomizationFile(name):
		default:
			w.files = append(w.files, name)
		}
	}
}

// notRegular says what a manifest is instead of a file.
func notRegular(fsys fs.FS, name string) string {
	if _, err := read(fsys, name); err != nil {
		return cause(err)
	}
	return "not a regular file"
}

func (w *walker) readIgnores(dir string, entries []fs.DirEntry) {
	for _, e := range entries {
		if !slices.Contains(ignoreFiles, e.Name()) || e.IsDir() {
			continue
		}
		name := path.Join(dir, e.Name())
		b, err := read(w.fsys, name)
		if err != nil {
			w.wrong(name, 0, "%s", cause(err))
			continue
		}
		w.layout.ignores[dir] = append(w.layout.ignores[dir], parseIgnore(b)...)
	}
}

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// follow finds what a kustomization uses, and what that uses.
func (w *walker) follow(dir string) {
	if _, done := w.layout.uses[dir]; done {
		return
	}
	uses, is, wrong := usesOf(w.fsys, dir)
	if !is {
		return // a file
	}
	if wrong != nil {
		if uses, is = w.asBefore(dir, *wrong); !is {
			return // building the unit that needs it says why
		}
	}
	w.layout.uses[dir] = uses
	for _, used := range uses {
		w.follow(used)
	}
}

// asBefore is what a kustomization used when it could be parsed. Without that
// its bases would look like roots, and be rendered on their own.
func (w *walker) asBefore(dir string, wrong propagate.Problem) (uses []string, known bool) {
	if w.used == nil {
		return nil, false
	}
	if uses, known = w.used(dir); !known {
		w.problems = append(w.problems, doubtful(wrong, "what it uses is not known, as it never could be parsed"))
		return nil, false
	}
	w.layout.unparsed[dir] = wrong
	return uses, true
}

// usesOf reads the kustomization of a directory, if it is one.
func usesOf(fsys fs.FS, dir string) (uses []string, is bool, wrong *propagate.Problem) {
	k, file, problems := readKustomization(dir, kustomizationFile(fsys, dir), func(name string) ([]byte, error) { return read(fsys, name) })
	switch {
	case file == "":
		return nil, false, nil
	case len(problems) > 0:
		return nil, true, &problems[0]
	}
	return k.uses(), true, nil
}

// unparsedFile names the kustomization of a directory that cannot be parsed,
// whatever its file is called.
func unparsedFile(dir string) string { return path.Join(dir, "kustomization.yaml") }

// findRoots takes what nobody uses. What is used, but from no root, is used
// in a circle.
func (w *walker) findRoots() {
	used := map[string]bool{}
	for _, uses := range w.layout.uses {
		for _, dir := range uses {
			used[dir] = true
		}
	}
	reached := map[string]bool{}
	var reach func(string)
	reach = func(dir string) {
		if reached[dir] {
			return
		}
		reached[dir] = true
		for _, next := range w.layout.uses[dir] {
			reach(next)
		}
	}
	for dir := range w.layout.dirs {
		if !used[dir] {
			w.layout.roots[dir] = true
			reach(dir)
		}
	}
	for dir := range w.layout.dirs {
		if !reached[dir] {
			// Building it tells the circle, field and line.
			w.layout.roots[dir] = true
		}
	}
}

// owned is whether a path stands below the directory of a kustomization.
func (l *layout) owned(name string) bool {
	return name != settingsFile && slices.ContainsFunc(parents(name), func(dir string) bool { return l.dirs[dir] })
}

// skipped is whether the walk does not come by a path.
func (l *layout) skipped(name string) bool {
	return slices.ContainsFunc(parents(name)[1:], func(dir string) bool { return l.ignores.skips(dir, true) }) || l.ignores.skips(name, false)
}

// reshapes is whether a change of this file may change the layout.
func (l *layout) reshapes(fsys fs.FS, name string) bool {
	base, dir := path.Base(name), path.Dir(name)
	if slices.Contains(ignoreFiles, base) {
		return true
	}
	if !isKustomizationFile(base) {
		return false
	}
	before, known := l.uses[dir]
	if _, unparsed := l.unparsed[dir]; !known || unparsed {
		return true
	}
	// The usual edit, of an image or a patch, leaves the uses as they were.
	after, is, wrong := usesOf(fsys, dir)
	return !is || wrong != nil || !slices.Equal(before, after)
}

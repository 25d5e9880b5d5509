// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// layout says which units a tree has. It is immutable once it is made, and
// trees share it until a kustomization or ignore file is added, removed, or
// changes its meaning.
type layout struct {
	ignores ignores
	// dirs are the directories in which the walk found a kustomization.
	dirs map[string]bool
	// uses maps each kustomization to those it uses, including ones that the walk
	// skipped.
	uses map[string][]string
	// roots are the kustomizations that no other one uses.
	roots map[string]bool
	// unparsed are the kustomizations that cannot be parsed, and why. Their uses
	// are those of when they last could be.
	unparsed map[string]fleet.Problem
}

// walk visits every directory of a tree and lists its plain files.
func walk(fsys fs.FS) *walker {
	w := &walker{fsys: fsys, layout: &layout{
		ignores: ignores{}, dirs: map[string]bool{}, uses: map[string][]string{}, roots: map[string]bool{}, unparsed: map[string]fleet.Problem{},
	}}
	w.dir(".", false)
	return w
}

type walker struct {
	fsys     fs.FS
	layout   *layout
	files    []string
	below    []string // manifests below kustomizations
	problems []fleet.Problem
	// What was visited so far, against the limits of a tree.
	entries, manifests, bytes, matches int
	stopped                            bool

	// used returns what a kustomization that cannot be parsed used when it last
	// could; nil if an error refuses the tree anyway.
	used func(dir string) (uses []string, known bool)
}

// resolve finds the uses and the roots.
func (w *walker) resolve() *layout {
	for _, dir := range slices.Sorted(maps.Keys(w.layout.dirs)) {
		w.follow(dir)
	}
	w.findRoots()
	return w.layout
}

// Limits of a tree, counted while it is walked.
const (
	maxDepth     = 200       // of directories
	maxEntries   = 1_000_000 // files and directories, those that are left out included
	maxManifests = 200_000   // plain files and kustomizations
	maxWalked    = 64 << 20  // bytes of their paths, and of all kustomizations
	maxMatches   = 100_000_000
)

func (w *walker) wrong(file, format string, args ...any) {
	w.problems = append(w.problems, problem(file, 0, fmt.Sprintf(format, args...)))
}

// stop ends the walk of a tree that is too large. One tree object can be in a tree any
// number of times, so seven of them can make ten million paths.
func (w *walker) stop(format string, args ...any) {
	if !w.stopped {
		w.stopped, w.problems = true, nil
		w.wrong("", format, args...)
	}
}

// visit counts the entries of a directory before they are looked at.
func (w *walker) visit(dir string, entries int) {
	w.entries += entries
	w.matches += product(w.layout.ignores.weight(dir), entries)
	switch {
	case w.entries > maxEntries:
		w.stop("the fleet's directory has more than %d files and directories: follow a smaller one, or leave some out with .fairleadignore", maxEntries)
	case w.matches > maxMatches:
		w.stop("the patterns of .fairleadignore would be compared with paths more than %d times", maxMatches)
	}
}

// take counts a manifest or a kustomization.
func (w *walker) take(name string, bytes int) {
	w.manifests++
	w.bytes += len(name) + bytes
	switch {
	case w.manifests > maxManifests:
		w.stop("the fleet's directory has more than %d manifests", maxManifests)
	case w.bytes > maxWalked:
		w.stop("the paths of manifests, and the kustomizations, have more than %d bytes together", maxWalked)
	}
}

// dir walks one directory. owned reports whether it is below a kustomization.
func (w *walker) dir(dir string, owned bool) {
	if w.stopped {
		return
	}
	if strings.Count(dir, "/") > maxDepth {
		w.wrong(dir, "more than %d directories deep", maxDepth)
		return
	}

	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.wrong(dir, "%s", cause(err))
		return
	}

	w.readIgnores(dir, entries)
	if w.visit(dir, len(entries)); w.stopped {
		return
	}

	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return isKustomizationFile(e.Name()) && !e.IsDir() && !w.layout.ignores.skips(path.Join(dir, e.Name()), false)
	}) {
		w.take(dir, 0)
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
		case !isManifest(name) || isKustomizationFile(name):
		case owned && name != settingsFile:
			w.below = append(w.below, name)
		default:
			w.take(name, 0)
			w.files = append(w.files, name)
		}
	}
}

// notRegular says why a manifest is not a regular file.
func notRegular(fsys fs.FS, name string) string {
	if _, err := read(fsys, name); err != nil {
		return cause(err)
	}
	return "not a regular file"
}

func (w *walker) readIgnores(dir string, entries []fs.DirEntry) {
	for _, file := range ignoreFiles {
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == file && !e.IsDir() }) {
			continue
		}

		name := path.Join(dir, file)
		b, err := read(w.fsys, name)
		if err != nil {
			w.wrong(name, "%s", cause(err))
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

// follow finds what a kustomization uses, recursively.
func (w *walker) follow(dir string) {
	if _, done := w.layout.uses[dir]; done {
		return
	}

	if w.stopped {
		return
	}

	uses, is, wrong := usesOf(w.fsys, dir)
	if !is {
		return // a file
	}
	if w.take(dir, sizeOfKustomization(w.fsys, dir)); w.stopped {
		return
	}

	if wrong != nil {
		if uses, is = w.lastUses(dir, *wrong); !is {
			return // building the unit that needs it reports why
		}
	}

	w.layout.uses[dir] = uses
	for _, used := range uses {
		w.follow(used)
	}
}

// lastUses is what a kustomization used when it could be parsed. Without it,
// its bases would look like roots and be rendered on their own.
func (w *walker) lastUses(dir string, wrong fleet.Problem) (uses []string, known bool) {
	if w.used == nil {
		return nil, false
	}

	if uses, known = w.used(dir); !known {
		w.problems = append(w.problems, ambiguousProblem(wrong, "what it uses is unknown, since it could never be parsed"))
		return nil, false
	}

	w.layout.unparsed[dir] = wrong
	return uses, true
}

// sizeOfKustomization is the size of a directory's kustomization.
func sizeOfKustomization(fsys fs.FS, dir string) (size int) {
	for _, name := range kustomizationFile(fsys, dir) {
		b, _ := read(fsys, path.Join(dir, name)) // what cannot be read is told of elsewhere
		size += len(b)
	}
	return size
}

// usesOf reads the uses of a directory's kustomization, if it has one.
func usesOf(fsys fs.FS, dir string) (uses []string, is bool, wrong *fleet.Problem) {
	k, file, problems := readKustomization(dir, kustomizationFile(fsys, dir), func(name string) ([]byte, error) { return read(fsys, name) })
	switch {
	case file == "":
		return nil, false, nil
	case len(problems) > 0:
		return nil, true, &problems[0]
	}
	return k.uses(), true, nil
}

// unparsedFile names a directory's kustomization that cannot be parsed,
// whatever its file is called.
func unparsedFile(dir string) string { return path.Join(dir, "kustomization.yaml") }

// findRoots collects the kustomizations that no other one uses. One that is
// used but not reachable from a root is part of a cycle.
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
			// Building it reports the cycle with field and line.
			w.layout.roots[dir] = true
		}
	}
}

// owned reports whether a path is below the directory of a kustomization.
func (l *layout) owned(name string) bool {
	return name != settingsFile && slices.ContainsFunc(parents(name), func(dir string) bool { return l.dirs[dir] })
}

// skipped reports whether the walk skips a path.
func (l *layout) skipped(name string) bool {
	return slices.ContainsFunc(parents(name)[1:], func(dir string) bool { return l.ignores.skips(dir, true) }) || l.ignores.skips(name, false)
}

// affectedBy reports whether a change of this file may change the layout.
func (l *layout) affectedBy(fsys fs.FS, name string) bool {
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

	// The common edit, of an image or a patch, does not change the uses.
	after, is, wrong := usesOf(fsys, dir)
	return !is || wrong != nil || !slices.Equal(before, after)
}

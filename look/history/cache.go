// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/compact"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Cache keeps folded states, so that not every look command folds a long history
// again. The commit, the path, the gates and the engine determine a state and make
// up its name: the cache needs no invalidation, and deleting it loses nothing but
// time. Like a checkpoint it holds no manifests.
type Cache struct {
	dir string

	// Recalls has trees that were rendered in another process not rendered again. An
	// object that cannot be read when it is asked for is then a panic with
	// fleet.Unavailable, so it is for commands, which end with that.
	Recalls  bool
	rendered int // units that the history had rendered when they were kept
}

// stateFormat is the format of the kept states.
const stateFormat = "fairlead state 6"

// maxCached is how many states of one fleet are kept, the most recently used ones.
const maxCached = 64

// DefaultCacheDir returns the directory under the user's cache directory.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "fairlead"), nil
}

// NewCache returns the cache of the states of a path with these gates, folded from
// the commit since ("" is the usual beginning).
func NewCache(dir, path, since string, gates map[string]bool) *Cache {
	key := []string{Engine, stateFormat, filepath.Clean(path), since}
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		key = append(key, fmt.Sprint(gate, "=", gates[gate]))
	}
	name := object.DigestOf([]byte(strings.Join(key, "\x00"))).String()
	return &Cache{dir: filepath.Join(dir, name[len("sha256:"):][:16])}
}

func (c *Cache) file(commit string) string { return filepath.Join(c.dir, commit+suffix) }

// suffix is that of the files of states.
const suffix = ".state"

// Has reports whether the cache has the state at a commit.
func (c *Cache) Has(commit string) bool {
	_, err := os.Stat(c.file(commit))
	return err == nil
}

// Folded is a state, and whether a commit up to it says where the fold begins
// (fold rule 1): if none does, a later one may.
type Folded struct {
	propagate.State
	Begun bool

	past *Past // nil if it is not known
}

// Load restores the state at a commit. A file that cannot be read is removed, and
// counts as missing.
func (c *Cache) Load(commit string, history *History) (Folded, bool) {
	raw, err := os.ReadFile(c.file(commit))
	if err != nil {
		return Folded{}, false
	}
	in, begun, err := decode(raw)
	if err != nil || in.Commit != commit {
		os.Remove(c.file(commit))
		return Folded{}, false
	}

	in.Rehydrated = true
	c.recall(history)
	state, err := Restore(in, history)
	if err != nil {
		os.Remove(c.file(commit))
		return Folded{}, false
	}

	now := time.Now()
	_ = os.Chtimes(c.file(commit), now, now) // without it the file is pruned sooner
	return Folded{State: state, Begun: begun}, true
}

// Keep stores a state. Errors are ignored: the next command folds again.
func (c *Cache) Keep(f *Folded) {
	raw, err := encode(f)
	if err != nil {
		return
	}
	c.write(c.file(f.Commit), raw)
	c.keepPast(f)
	c.prune()
}

func (c *Cache) pastFile(commit string) string { return filepath.Join(c.dir, commit+pastSuffix) }

// pastSuffix is that of the files of what a state does not show. Each belongs to the state
// of the same commit.
const pastSuffix = ".past"

func (c *Cache) hasPast(commit string) bool {
	_, err := os.Stat(c.pastFile(commit))
	return err == nil
}

func (c *Cache) keepPast(f *Folded) {
	if f.past == nil {
		return
	}
	if raw, err := f.past.encode(); err == nil {
		c.write(c.pastFile(f.Commit), raw)
	}
}

// past restores what is kept beside the state of a commit; nil if nothing is. A file that
// cannot be read is removed.
func (c *Cache) past(commit string) *Past {
	raw, err := os.ReadFile(c.pastFile(commit))
	if err != nil {
		return nil
	}
	past, err := decodePast(raw)
	if err != nil {
		os.Remove(c.pastFile(commit))
		return nil
	}
	return past
}

// write writes a file, all of it or nothing.
func (c *Cache) write(file string, raw []byte) {
	if os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(raw)
	if closeErr := tmp.Close(); err != nil || closeErr != nil || os.Rename(tmp.Name(), file) != nil {
		os.Remove(tmp.Name())
	}
}

// prune removes the least recently used states, and temporary files that a killed
// process left.
func (c *Cache) prune() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}

	used := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case strings.HasSuffix(e.Name(), suffix):
			used[e.Name()] = info.ModTime()
		case strings.HasSuffix(e.Name(), pastSuffix) && c.Has(strings.TrimSuffix(e.Name(), pastSuffix)):
			// It goes with its state.
		case e.Name() != unitsFile && time.Since(info.ModTime()) > time.Hour:
			os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}

	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int {
		return cmp.Or(used[b].Compare(used[a]), cmp.Compare(a, b))
	})
	for _, name := range names[min(len(names), maxCached):] {
		os.Remove(filepath.Join(c.dir, name))
		os.Remove(c.pastFile(strings.TrimSuffix(name, suffix)))
	}
}

// encode encodes a state, and decode decodes it.
func encode(f *Folded) ([]byte, error) {
	w := &compact.Writer{}
	w.Bool(f.Begun)
	err := f.Save().Write(w)
	return w.Bytes(stateFormat), err
}

func decode(raw []byte) (saved *propagate.Saved, begun bool, err error) {
	r, err := compact.NewReader(stateFormat, raw)
	if err != nil {
		return nil, false, err
	}
	begun = r.Bool()
	if saved, err = propagate.ReadSaved(r); err == nil {
		err = r.Done()
	}
	return saved, begun, err
}

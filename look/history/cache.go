// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Cache keeps folded states, so that not every look command folds a long history
// again. The commit, the path, the gates and the engine determine a state and make
// up its name: the cache needs no invalidation, and deleting it loses nothing but
// time. Like a checkpoint it holds no manifests.
type Cache struct{ dir string }

// cacheFormat is the format of the kept states.
const cacheFormat = 5

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
	key := []string{Engine, fmt.Sprint(cacheFormat), filepath.Clean(path), since}
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		key = append(key, fmt.Sprint(gate, "=", gates[gate]))
	}
	name := object.DigestOf([]byte(strings.Join(key, "\x00"))).String()
	return &Cache{filepath.Join(dir, name[len("sha256:"):][:16])}
}

func (c *Cache) file(commit string) string { return filepath.Join(c.dir, commit+".gz") }

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
}

// Load restores the state at a commit. A file that cannot be read is removed, and
// counts as missing.
func (c *Cache) Load(commit string, history *History) (Folded, bool) {
	raw, err := os.ReadFile(c.file(commit))
	if err != nil {
		return Folded{}, false
	}
	in, err := decode(raw)
	if err != nil || in.Commit != commit {
		os.Remove(c.file(commit))
		return Folded{}, false
	}

	in.Rehydrated = true
	state, err := Restore(in.Saved, history)
	if err != nil {
		os.Remove(c.file(commit))
		return Folded{}, false
	}

	now := time.Now()
	_ = os.Chtimes(c.file(commit), now, now) // without it the file is pruned sooner
	return Folded{state, in.Begun}, true
}

// Keep stores a state. Errors are ignored: the next command folds again.
func (c *Cache) Keep(f *Folded) {
	raw, err := encode(f)
	if err != nil || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(raw)
	if closeErr := tmp.Close(); err != nil || closeErr != nil || os.Rename(tmp.Name(), c.file(f.Commit)) != nil {
		os.Remove(tmp.Name())
		return
	}

	c.prune()
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
		case strings.HasSuffix(e.Name(), ".gz"):
			used[e.Name()] = info.ModTime()
		case time.Since(info.ModTime()) > time.Hour:
			os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}

	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int {
		return cmp.Or(used[b].Compare(used[a]), cmp.Compare(a, b))
	})
	for _, name := range names[min(len(names), maxCached):] {
		os.Remove(filepath.Join(c.dir, name))
	}
}

// cached is a propagate.Saved as JSON has it, whose keys are texts.
type cached struct {
	*propagate.Saved
	Begun                bool
	Bindings             map[string]propagate.BindingRecord
	Tombstones, Detached map[string]propagate.TombstoneRecord
}

// encode encodes a state, and thaw decodes it. gzip adds a checksum.
func encode(f *Folded) ([]byte, error) {
	saved := f.Save()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}

	err = json.NewEncoder(w).Encode(cached{saved, f.Begun, texts(saved.Bindings), texts(saved.Tombstones), texts(saved.Detached)})
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}

	return b.Bytes(), err
}

func decode(raw []byte) (*cached, error) {
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r) // to the end, where the checksum is
	if err != nil {
		return nil, err
	}

	in := cached{Saved: &propagate.Saved{}}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}

	in.Saved.Bindings, in.Saved.Tombstones, in.Saved.Detached = ids(in.Bindings), ids(in.Tombstones), ids(in.Detached)
	return &in, nil
}

func texts[V any](records map[object.ID]V) map[string]V {
	out := make(map[string]V, len(records))
	for id, r := range records {
		out[id.Key()] = r
	}
	return out
}

func ids[V any](records map[string]V) map[object.ID]V {
	out := make(map[object.ID]V, len(records))
	for key, r := range records {
		if id, ok := object.ParseKey(key); ok {
			out[id] = r
		}
	}
	return out
}

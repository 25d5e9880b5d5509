// SPDX-License-Identifier: Apache-2.0

package reconcile

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

	"github.com/fairlead/fairlead/propagate"
)

// Cache keeps states that look commands folded, so that a long history is not
// folded again for every look. A state follows from the commit, the path, the
// gates and the engine, and these are its name: it needs no invalidation, and
// deleting it loses nothing but time. Like a checkpoint it holds no manifest.
type Cache struct{ dir string }

// maxCached is how many states of one fleet are kept, the last used ones.
const maxCached = 64

// DefaultCacheDir is under the user's cache directory.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "fairlead"), nil
}

// NewCache is the cache of what is folded under a path with these gates, from
// the commit that the fold begins at ("" is the usual one).
func NewCache(dir, path, since string, gates map[string]bool) *Cache {
	key := []string{engine, fmt.Sprint(format), filepath.Clean(path), since}
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		key = append(key, fmt.Sprint(gate, "=", gates[gate]))
	}
	name := propagate.DigestOf([]byte(strings.Join(key, "\x00"))).String()
	return &Cache{filepath.Join(dir, name[len("sha256:"):][:16])}
}

func (c *Cache) file(commit string) string { return filepath.Join(c.dir, commit+".gz") }

// Has is whether the state at a commit is kept.
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

// Load makes the state at a commit again. What cannot be read counts as not
// there.
func (c *Cache) Load(commit string, history *History) (Folded, bool) {
	raw, err := os.ReadFile(c.file(commit))
	if err != nil {
		return Folded{}, false
	}
	in, err := thaw(raw)
	if err != nil || in.Commit != commit {
		os.Remove(c.file(commit))
		return Folded{}, false
	}
	in.Revealed = true
	state, err := restore(in.Saved, history)
	if err != nil {
		os.Remove(c.file(commit))
		return Folded{}, false
	}
	now := time.Now()
	_ = os.Chtimes(c.file(commit), now, now) // it is thrown away sooner without
	return Folded{state, in.Begun}, true
}

// Keep stores a state. That it could not is no news to anybody: the next look
// folds again.
func (c *Cache) Keep(f *Folded) {
	raw, err := freeze(f)
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

// prune lets the longest unused states go, and what a process that ended left
// half written.
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
	Begun          bool
	Bindings       map[string]propagate.BindingRecord
	Departed, Left map[string]propagate.AbsenceRecord
}

// freeze writes a state; thaw reads it. gzip has a checksum of its own.
func freeze(f *Folded) ([]byte, error) {
	saved := f.Save()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	err = json.NewEncoder(w).Encode(cached{saved, f.Begun, texts(saved.Bindings), texts(saved.Departed), texts(saved.Left)})
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return b.Bytes(), err
}

func thaw(raw []byte) (*cached, error) {
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
	in.Saved.Bindings, in.Saved.Departed, in.Saved.Left = ids(in.Bindings), ids(in.Departed), ids(in.Left)
	return &in, nil
}

func texts[V any](records map[propagate.ID]V) map[string]V {
	out := make(map[string]V, len(records))
	for id, r := range records {
		out[id.Key()] = r
	}
	return out
}

func ids[V any](records map[string]V) map[propagate.ID]V {
	out := make(map[propagate.ID]V, len(records))
	for key, r := range records {
		if id, ok := propagate.ParseKey(key); ok {
			out[id] = r
		}
	}
	return out
}

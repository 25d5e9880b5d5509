// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Directory is a member as a directory of YAML files, one per object, that the
// member's own tools apply (see fileOf). What is released keeps its file, with
// the marks by which those tools leave the object alone.
func Directory(dir string) member.Member { return &directory{root: dir} }

type directory struct {
	root string
	// writing goes on in one place at a time: where a file belongs depends on the others.
	writing sync.Mutex
	swept   sync.Once
}

// CreatesNamespaces: the file of a namespace goes along.
func (*directory) CreatesNamespaces() {}

// at reads the file of an object, and says where it is or would be.
func (d *directory) at(ref member.Ref) (path string, o map[string]any, there bool, err error) {
	path = d.in(fileApart(ref))
	o, there, err = d.read(path)
	if err != nil || there {
		return path, o, there, err
	}
	plain := d.in(fileOf(ref))
	o, there, err = d.read(plain)
	if isAnotherKind(o, ref) {
		return path, nil, false, err
	}
	return plain, o, there, err
}

// in is a path in the directory.
func (d *directory) in(file string) string { return filepath.Join(d.root, filepath.FromSlash(file)) }

// sweep removes what a process that was killed left half-written, before the first
// file is written.
func (d *directory) sweep() {
	d.swept.Do(func() {
		for _, pattern := range []string{leftover, filepath.Join("*", leftover)} {
			found, _ := filepath.Glob(filepath.Join(escaped(d.root), pattern))
			for _, path := range found {
				_ = os.Remove(path) // it does no harm where it stays
			}
		}
	})
}

// leftover matches the files that replace writes first.
const leftover = ".new-*"

// escaped is a path as a pattern that matches nothing else.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (d *directory) uid(path string) types.UID {
	rel, err := filepath.Rel(d.root, path)
	if err != nil {
		rel = path
	}
	return types.UID(object.DigestOf([]byte(filepath.ToSlash(rel))).String())
}

// read returns an object, nil when the file holds none, and whether there is
// such a file.
func (d *directory) read(path string) (o map[string]any, there bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, &member.Error{Reason: member.Unavailable, Err: err}
	}
	return parseFile(raw), true, nil
}

func (d *directory) List(_ context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		ref := member.Ref{GroupVersionKind: gvk, Namespace: namespace}
		folder, prefix := filepath.Join(d.root, filepath.FromSlash(path.Dir(fileIn(ref, "")))), filesOf(ref)
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(member.Found{}, &member.Error{Reason: member.Unavailable, Err: err})
			return
		}
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), prefix) || !strings.HasSuffix(entry.Name(), ".yaml") {
				continue
			}
			path := filepath.Join(folder, entry.Name())
			o, _, err := d.read(path)
			if err != nil {
				yield(member.Found{}, err)
				return
			}
			if o == nil || member.RefOf(o).Kind != ref.Kind || !isFileOf(member.RefOf(o), fileIn(ref, entry.Name())) {
				continue
			}
			f := foundIn(o)
			f.UID = d.uid(path)
			if !yield(*f, nil) {
				return
			}
		}
	}
}

// Get finds what cannot be read as something that is not ours.
func (d *directory) Get(_ context.Context, ref member.Ref) (*member.Found, error) {
	path, o, there, err := d.at(ref)
	if !there || err != nil {
		return nil, err
	}
	return d.found(ref, path, o), nil
}

func (d *directory) found(ref member.Ref, path string, o map[string]any) *member.Found {
	f := &member.Found{}
	if o != nil {
		f = foundIn(o)
	}
	f.ID, f.UID = ref.ID(), d.uid(path)
	return f
}

// Replicas knows none: what an autoscaler does is not written here.
func (d *directory) Replicas(context.Context, member.Ref) (int64, bool, error) { return 0, false, nil }

// Published reads spec.replicas of an object's file.
func (d *directory) Published(_ context.Context, ref member.Ref) (int64, bool, error) {
	_, o, _, err := d.at(ref)
	n, ok := replicasIn(o)
	return n, ok, err
}

// Apply writes the file, all of it or nothing, after that of its namespace where
// there is none.
func (d *directory) Apply(_ context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.sweep()
	ref := member.RefOf(manifest)
	path, o, there, err := d.at(ref)
	if err != nil {
		return member.Applied{}, err
	}
	var was *member.Found
	if there {
		was = d.found(ref, path, o)
	}
	if was == nil && opt.UID != "" {
		return member.Applied{}, &member.Error{Reason: member.Gone, Err: errors.New("the file is gone")}
	}
	if was != nil && isForeign(was, opt) {
		return member.Applied{}, member.NotOurs(was.Labels)
	}
	raw, err := fileText(manifest)
	if err == nil {
		err = d.ensureNamespace(ref.Namespace, opt)
	}
	if err == nil {
		err = put(path, raw)
	}
	if err != nil {
		return member.Applied{}, err
	}
	return member.Applied{UID: d.uid(path), Created: was == nil}, nil
}

// ensureNamespace writes the file of a namespace that something is in. One that is there
// may be the fleet's, ours of before, or anybody's.
func (d *directory) ensureNamespace(namespace string, opt member.ApplyOptions) error {
	ref, ok := namespaceRef(namespace)
	if !ok {
		return nil
	}
	_, err := os.Stat(d.in(fileOf(ref)))
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return &member.Error{Reason: member.Unavailable, Err: err}
	}
	return d.write(d.in(fileOf(ref)), namespaceFile(namespace, opt))
}

func (d *directory) write(path string, manifest map[string]any) error {
	raw, err := fileText(manifest)
	if err != nil {
		return err
	}
	return put(path, raw)
}

// put leaves a file alone that is so already.
func put(path string, raw []byte) error {
	if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, raw) {
		return closed(path)
	}
	if err := replace(path, raw); err != nil {
		return &member.Error{Reason: member.Unavailable, Err: err}
	}
	return nil
}

// What is published may be a Secret, so nobody else reads it, whatever the umask.
const (
	ofFiles   = 0o600
	ofFolders = 0o700
)

// closed has a file that is there already be read by nobody else.
func closed(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm() != ofFiles {
		err = os.Chmod(path, ofFiles)
	}
	if err != nil {
		return &member.Error{Reason: member.Unavailable, Err: err}
	}
	return nil
}

// ensureFolder makes a folder, and those that it is in.
func ensureFolder(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, ofFolders); err != nil {
		return err
	}
	return os.Chmod(folder, ofFolders)
}

// replace puts a file in place of another at once.
func replace(path string, raw []byte) error {
	if err := ensureFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), leftover)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(raw)
	if err == nil {
		err = f.Chmod(ofFiles)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Adopt has nothing to do: a file has one owner.
func (d *directory) Adopt(context.Context, member.Ref) error { return nil }

// Release leaves the file without our marks, and with those that keep the
// object.
func (d *directory) Release(_ context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.sweep()
	path, o, _, err := d.at(ref)
	if err != nil || o == nil || foundIn(o).Whose(of, uid != "") != object.Ours {
		return err
	}
	return d.write(path, letGo(o))
}

// Delete removes the file, and its folder when it was the last one. That of a
// namespace or of a definition stays where something needs it.
func (d *directory) Delete(_ context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.sweep()
	path, o, there, err := d.at(ref)
	if err != nil || !there || d.found(ref, path, o).Whose(of, uid != "") != object.Ours {
		return err
	}
	if object.IsPrerequisite(ref.ID()) && o != nil {
		needed, err := needsOf(ref, o).someIn(os.DirFS(d.root), func(string) bool { return false })
		if err != nil {
			return err
		}
		if needed {
			return d.write(path, stayingFile(o, of))
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &member.Error{Reason: member.Unavailable, Err: err}
	}
	// It fails as long as there are other files, which is what is wanted.
	_ = os.Remove(filepath.Dir(path))
	return nil
}

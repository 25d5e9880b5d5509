// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Directory is a member as a directory of YAML files, one per object, that the
// member's own tools apply (see fileOf). What is released keeps its file, with
// the marks by which those tools leave the object alone.
func Directory(dir string) member.Member { return &directory{dir} }

type directory struct{ root string }

// CreatesNamespaces: the file of a namespace goes along.
func (*directory) CreatesNamespaces() {}

func (d *directory) path(ref member.Ref) string {
	return filepath.Join(d.root, filepath.FromSlash(fileOf(ref)))
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
		folder, prefix := filepath.Dir(d.path(ref)), filesOf(ref)
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
			if o == nil || fileOf(member.RefOf(o)) != fileIn(ref, entry.Name()) {
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
	path := d.path(ref)
	o, there, err := d.read(path)
	if !there || err != nil {
		return nil, err
	}
	f := &member.Found{}
	if o != nil {
		f = foundIn(o)
	}
	f.ID, f.UID = ref.ID(), d.uid(path)
	return f, nil
}

// Replicas knows none: what an autoscaler does is not written here.
func (d *directory) Replicas(context.Context, member.Ref) (int64, bool, error) { return 0, false, nil }

// Published reads spec.replicas of an object's file.
func (d *directory) Published(_ context.Context, ref member.Ref) (int64, bool, error) {
	o, _, err := d.read(d.path(ref))
	n, ok := replicasIn(o)
	return n, ok, err
}

// Apply writes the file, all of it or nothing, after that of its namespace where
// there is none.
func (d *directory) Apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	ref := member.RefOf(manifest)
	path := d.path(ref)
	was, err := d.Get(ctx, ref)
	if err != nil {
		return member.Applied{}, err
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
	_, err := os.Stat(d.path(ref))
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return &member.Error{Reason: member.Unavailable, Err: err}
	}
	return d.write(d.path(ref), namespaceFile(namespace, opt))
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
		return nil
	}
	if err := replace(path, raw); err != nil {
		return &member.Error{Reason: member.Unavailable, Err: err}
	}
	return nil
}

// replace puts a file in place of another at once.
func replace(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(raw)
	if err == nil {
		err = f.Chmod(0o644)
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
	path := d.path(ref)
	o, _, err := d.read(path)
	if err != nil || o == nil || foundIn(o).Whose(of, uid != "") != object.Ours {
		return err
	}
	return d.write(path, letGo(o))
}

// Delete removes the file, and its folder when it was the last one. That of a
// namespace or of a definition stays where something needs it.
func (d *directory) Delete(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	was, err := d.Get(ctx, ref)
	if err != nil || was == nil || was.Whose(of, uid != "") != object.Ours {
		return err
	}
	path := d.path(ref)
	if object.IsPrerequisite(ref.ID()) {
		o, _, err := d.read(path)
		if err != nil || o == nil {
			return err
		}
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

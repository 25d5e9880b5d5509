// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/propagate"
)

// Directory is a member as a directory of YAML files, one per object, that the
// member's own tools apply: NAMESPACE/kind.group_name.yaml, cluster-scoped
// objects in _cluster. What those tools do with a file that goes is theirs,
// so a released object needs their mark before.
func Directory(dir string) Member { return &directory{dir} }

type directory struct{ root string }

// The member's own tools make the namespaces that are not in git.
func (*directory) keepsNamespaces() {}

func (d *directory) path(ref Ref) string {
	folder := "_cluster"
	if ref.Namespace != "" {
		folder = safe(ref.Namespace)
	}
	kind := strings.ToLower(ref.Kind)
	if ref.Group != "" {
		kind += "." + ref.Group
	}
	return filepath.Join(d.root, folder, safe(kind)+"_"+safe(ref.Name)+".yaml")
}

// safe writes every byte that a file system may not like as %XX, so that no
// name leaves the directory and no two names meet.
func safe(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' && i > 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func (d *directory) uid(path string) types.UID {
	rel, err := filepath.Rel(d.root, path)
	if err != nil {
		rel = path
	}
	return types.UID(propagate.DigestOf([]byte(filepath.ToSlash(rel))).String())
}

// read returns nil when there is no such file.
func (d *directory) read(path string) (map[string]any, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Reason: Unavailable, Err: err}
	}
	var o map[string]any
	if err := yaml.Unmarshal(raw, &o); err != nil || o == nil {
		return nil, &Error{Reason: Invalid, Err: fmt.Errorf("%s is not an object", path)}
	}
	return o, nil
}

func (d *directory) found(path string, o map[string]any) *Found {
	ref := refOf(o)
	meta, _ := o["metadata"].(map[string]any)
	return &Found{
		ID:          ref.ID(),
		UID:         d.uid(path),
		Labels:      stringMap(meta["labels"]),
		Annotations: stringMap(meta["annotations"]),
	}
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := map[string]string{}
	for key, value := range m {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

func (d *directory) List(_ context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		pattern := d.path(Ref{GroupVersionKind: gvk, Namespace: namespace})
		folder, prefix := filepath.Split(strings.TrimSuffix(pattern, ".yaml"))
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Found{}, &Error{Reason: Unavailable, Err: err})
			return
		}
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), prefix) || !strings.HasSuffix(entry.Name(), ".yaml") {
				continue
			}
			path := filepath.Join(folder, entry.Name())
			o, err := d.read(path)
			if err != nil {
				yield(Found{}, err)
				return
			}
			if o != nil && !yield(*d.found(path, o), nil) {
				return
			}
		}
	}
}

func (d *directory) Get(_ context.Context, ref Ref) (*Found, error) {
	path := d.path(ref)
	o, err := d.read(path)
	if o == nil || err != nil {
		return nil, err
	}
	return d.found(path, o), nil
}

// Replicas knows none: what an autoscaler does is not written here.
func (d *directory) Replicas(context.Context, Ref) (int64, bool, error) { return 0, false, nil }

// Apply writes the file, all of it or nothing.
func (d *directory) Apply(ctx context.Context, manifest map[string]any, opt ApplyOptions) (Applied, error) {
	ref := refOf(manifest)
	path := d.path(ref)
	was, err := d.Get(ctx, ref)
	if err != nil {
		return Applied{}, err
	}
	if was == nil && opt.UID != "" {
		return Applied{}, &Error{Reason: Gone, Err: errors.New("the file is gone")}
	}
	if was != nil && !was.Ours() && !opt.Force {
		return Applied{}, &Error{Reason: Foreign, Err: errForeign}
	}
	raw, err := yaml.Marshal(manifest)
	if err != nil {
		return Applied{}, &Error{Reason: Invalid, Err: err}
	}
	if err := replace(path, raw); err != nil {
		return Applied{}, &Error{Reason: Unavailable, Err: err}
	}
	return Applied{UID: d.uid(path), Created: was == nil}, nil
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
func (d *directory) Adopt(context.Context, Ref) error { return nil }

// Release removes the file.
func (d *directory) Release(ctx context.Context, ref Ref, uid types.UID) error {
	return d.Delete(ctx, ref, uid)
}

// Delete removes the file, and its folder when it was the last one.
func (d *directory) Delete(ctx context.Context, ref Ref, _ types.UID) error {
	was, err := d.Get(ctx, ref)
	if err != nil || was == nil || !was.Ours() {
		return err
	}
	path := d.path(ref)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{Reason: Unavailable, Err: err}
	}
	// It fails as long as there are other files, which is what is wanted.
	_ = os.Remove(filepath.Dir(path))
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/object"
)

// Member is one cluster, as little of it as dispatch needs. Its errors are of
// type *Error without Cluster and ID, which the Dispatcher adds.
type Member interface {
	// List yields the metadata of every object of a kind in a namespace; ""
	// is every namespace, or the cluster's own. Managers are left out.
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[Found, error]
	// Get reads the metadata of one object; nil when it is absent.
	Get(ctx context.Context, ref Ref) (*Found, error)
	// Replicas reads spec.replicas of a live object. It reports false when
	// there is no such number.
	Replicas(ctx context.Context, ref Ref) (int64, bool, error)
	// Apply is one server-side apply by Manager.
	Apply(ctx context.Context, manifest map[string]any, opt ApplyOptions) (Applied, error)
	// Adopt makes us the owner of the fields that earlier client-side
	// managers set, so that a forced Apply leaves what the manifest says.
	Adopt(ctx context.Context, ref Ref) error
	// Release removes our marks and nothing else. An object that is gone, has
	// another UID or is not ours, as of says, is left alone.
	Release(ctx context.Context, ref Ref, uid types.UID, of object.Marker) error
	// Delete removes the object in the background. An object that is gone, has
	// another UID or is another fleet's is left alone. The caller has looked at
	// the live object, if there is one besides its file.
	Delete(ctx context.Context, ref Ref, uid types.UID, of object.Marker) error
}

// Found is the metadata of an object on a member.
type Found struct {
	ID              object.ID
	UID             types.UID
	ResourceVersion string
	Labels          map[string]string
	Annotations     map[string]string
	Managers        []metav1.ManagedFieldsEntry
	Deleting        bool
}

// Whose says to whom the object belongs; known that the inventory has its UID.
func (f *Found) Whose(m object.Marker, known bool) object.Whose {
	return m.Whose(f.Labels, f.Annotations, known)
}

// Ours reports whether the object is ours by its marks alone.
func (f *Found) Ours(m object.Marker) bool { return f.Whose(m, false) == object.Ours }

// Digest is of the content that the object bears; zero without one.
func (f *Found) Digest() object.Digest {
	d, _ := object.ParseDigest(f.Annotations[object.AnnotationDigest])
	return d
}

// ApplyOptions are of one Apply.
type ApplyOptions struct {
	// Force takes fields from other managers. Without it their ownership is
	// the error Foreign.
	Force bool
	// UID, unless empty, is the object that must be there; another one, or
	// none, is the error Gone.
	UID types.UID
	// Marker knows which objects are ours.
	Marker object.Marker
	// Namespace is the fleet's document of the object's namespace, nil without
	// one. Only a NamespaceCreator asks for it.
	Namespace func() map[string]any
}

// Applied is what a member answers to Apply.
type Applied struct {
	UID      types.UID
	Created  bool
	Deleting bool // it is on its way out, and so is what was applied
	// Fields and Version of the object as it is now; zero where not known.
	Fields  Fields
	Version uint64
	// Managers are those of an object that was not created and whose UID was
	// not given.
	Managers []metav1.ManagedFieldsEntry
}

// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Reader reads live objects of a member.
type Reader interface {
	// OursWhole yields the objects of a kind that have our label.
	OursWhole(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error]
	// Read returns one object; nil if it is absent.
	Read(ctx context.Context, ref member.Ref) (map[string]any, error)
}

// Difference is one object of a cluster that is not as wanted.
type Difference struct {
	Object object.ID
	Note   string // what is wrong with the object as a whole
	// From and To are the commits whose content the differences are between.
	From, To string
	Origin   fleet.Origin // of its template
	Fields   []push.Difference
}

// Drift compares what was released to a cluster with what it has. It returns the
// fields of the released manifests that differ in the live objects.
func Drift(ctx context.Context, state *propagate.State, of object.Marker, cluster string, member Reader, asked func(object.ID) bool) ([]Difference, error) {
	live, err := readLive(ctx, state, cluster, member, asked)
	if err != nil {
		return nil, err
	}

	l := newComparing(state)
	var all []Difference
	for b := range state.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || w.Released == nil || !asked(b.ID) {
			continue
		}
		c := Difference{Object: b.ID, To: w.Released.Revision, Origin: l.origin(b)}
		object := live[b.ID]
		manifest := state.Manifest(b.ID, w.Released)
		if object != nil {
			if w.Blocked == "" && l.scalers.Retain(b, w) {
				manifest = withoutReplicas(manifest)
			}
			c.Fields = push.Drift(object, manifest)
			c.From = commitIn((&unstructured.Unstructured{Object: object}).GetAnnotations())
		}
		if c.Note = wrong(object, of); c.Note != "" || len(c.Fields) > 0 {
			all = append(all, c)
		}
	}

	for a := range state.Tombstones.Values() {
		gone := state.Removal(cluster, a.ID)
		if gone == nil || live[a.ID] == nil || wrong(live[a.ID], of) != "" || onCluster(state, a.ID, cluster) {
			continue
		}
		if object.IsNeeded(a.ID, (&unstructured.Unstructured{Object: live[a.ID]}).GetAnnotations()[object.AnnotationDigest]) {
			continue
		}
		c := Difference{Object: a.ID, Note: "it is to be deleted", From: gone.Released.Revision, To: gone.Commit}
		if gone.Preserve {
			c.Note = "our marks are to be removed"
		}
		all = append(all, c)
	}

	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Object.Key(), b.Object.Key()) })
	return all, nil
}

func onCluster(state *propagate.State, id object.ID, cluster string) bool {
	b := state.Bindings.At(id.Key())
	return b != nil && b.Work(cluster) != nil
}

// wrong returns what is wrong with an object as a whole, or "".
func wrong(live map[string]any, of object.Marker) string {
	if live == nil {
		return "it is missing"
	}

	u := &unstructured.Unstructured{Object: live}
	seen := (&inspection{of: of}).observe(u.GetLabels(), u.GetAnnotations())
	if !seen.Ours {
		return "it is there and not ours" + seen.ofFleet()
	}
	return ""
}

// withoutReplicas returns a manifest without the field that an autoscaler owns.
func withoutReplicas(manifest map[string]any) map[string]any {
	spec, ok := manifest["spec"].(map[string]any)
	if !ok {
		return manifest
	}
	manifest, spec = maps.Clone(manifest), maps.Clone(spec)
	delete(spec, "replicas")
	manifest["spec"] = spec
	return manifest
}

// origin returns where a binding's template is, or was.
func (l comparing) origin(b *propagate.Binding) fleet.Origin {
	if t := l.state.Snapshot.Templates.At(b.Key()); t != nil {
		return t.Origin
	}
	return b.Active.Template.Origin
}

// readLive reads the released and the removed objects from a cluster. Kinds with
// many objects are listed; what a list does not have is read one by one, since it may
// exist and not be ours.
func readLive(ctx context.Context, state *propagate.State, cluster string, m Reader, asked func(object.ID) bool) (map[object.ID]map[string]any, error) {
	refs := map[schema.GroupVersionKind]map[object.ID]bool{}
	note := func(id object.ID, apiVersion string, wanted bool) {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil || !asked(id) {
			return
		}
		gvk := gv.WithKind(id.Kind)
		if refs[gvk] == nil {
			refs[gvk] = map[object.ID]bool{}
		}
		refs[gvk][id] = wanted || refs[gvk][id]
	}
	for b := range state.Bindings.Values() {
		if w := b.Work(cluster); w != nil && w.Released != nil {
			note(b.ID, w.Released.APIVersion, true)
		}
	}

	for a := range state.Tombstones.Values() {
		if gone := state.Removal(cluster, a.ID); gone != nil {
			note(a.ID, gone.Released.APIVersion, false)
		}
	}

	live := map[object.ID]map[string]any{}
	kinds := slices.SortedFunc(maps.Keys(refs), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, gvk := range kinds {
		if len(refs[gvk]) > few {
			for obj, err := range m.OursWhole(ctx, gvk) {
				if err := served(err); err != nil {
					return nil, err
				}
				if err != nil {
					break
				}
				o := &unstructured.Unstructured{Object: obj}
				id := object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
				if _, known := refs[gvk][id]; known {
					live[id] = obj
				}
			}
		}
		for id, wanted := range refs[gvk] {
			if live[id] != nil || !wanted && len(refs[gvk]) > few {
				continue
			}
			object, err := m.Read(ctx, member.Ref{GroupVersionKind: gvk, Namespace: id.Namespace, Name: id.Name})
			if err := served(err); err != nil {
				return nil, err
			}
			if object != nil {
				live[id] = object
			}
		}
	}

	return live, nil
}

// HeldChanges compares, from git alone, what was released to a cluster with what it
// gets when its holds are lifted.
func HeldChanges(state *propagate.State, cluster string, asked func(object.ID) bool) []Difference {
	l := newComparing(state)
	var all []Difference
	for b := range state.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || !w.Held || !asked(b.ID) {
			continue
		}
		c := Difference{Object: b.ID, To: w.Want.Revision, Origin: l.origin(b)}
		var before map[string]any
		if w.Released != nil {
			before, c.From = state.Manifest(b.ID, w.Released), w.Released.Revision
		}
		switch {
		case w.Blocked != "":
			c.Note = w.Blocked
		case w.Released != nil && w.Released.Digest == w.Want.Digest:
			continue
		default:
			c.Fields = push.Changes(before, state.Manifest(b.ID, w.Want))
		}
		if w.Released == nil && c.Note == "" {
			c.Note = "it is new"
		}
		all = append(all, c)
	}

	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Object.Key(), b.Object.Key()) })
	return all
}

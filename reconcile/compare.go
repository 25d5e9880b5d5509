// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

// Reader is a member as a comparison reads it.
type Reader interface {
	// OursWhole yields what bears our label.
	OursWhole(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error]
	// Read reads one object; nil when it is absent.
	Read(ctx context.Context, ref dispatch.Ref) (map[string]any, error)
}

// Comparison is one object of a cluster that is not as it is to be.
type Comparison struct {
	Object propagate.ID
	Note   string // what is wrong with it as a whole
	// From and To are the commits whose content the differences are between.
	From, To    string
	Origin      propagate.Origin // of its template
	Differences []dispatch.Difference
}

// Drifted compares what was released to a cluster with what it has: of the
// fields that the released manifests set, those that are otherwise.
func Drifted(ctx context.Context, state *propagate.State, cluster string, member Reader, asked func(propagate.ID) bool) ([]Comparison, error) {
	live, err := readLive(ctx, state, cluster, member, asked)
	if err != nil {
		return nil, err
	}
	l := newLevel(state)
	var all []Comparison
	for b := range state.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || w.Released == nil || !asked(b.ID) {
			continue
		}
		c := Comparison{Object: b.ID, To: w.Released.Revision, Origin: l.origin(b)}
		object := live[b.ID]
		manifest := state.Manifest(b.ID, w.Released)
		if object != nil {
			if w.Blocked == "" && l.retains(b, w) {
				manifest = withoutReplicas(manifest)
			}
			c.Differences = dispatch.Drift(object, manifest)
			c.From = commitIn((&unstructured.Unstructured{Object: object}).GetAnnotations())
		}
		if c.Note = wrong(object); c.Note != "" || len(c.Differences) > 0 {
			all = append(all, c)
		}
	}
	for a := range state.Departed.Values() {
		gone := state.Departure(cluster, a.ID)
		if gone == nil || live[a.ID] == nil || wrong(live[a.ID]) != "" || onCluster(state, a.ID, cluster) {
			continue
		}
		if dispatch.Unplaced(a.ID, (&unstructured.Unstructured{Object: live[a.ID]}).GetAnnotations()[dispatch.AnnotationDigest]) {
			continue
		}
		c := Comparison{Object: a.ID, Note: "it is to be deleted", From: gone.Released.Revision, To: gone.Commit}
		if gone.Preserve {
			c.Note = "our marks are to be taken off"
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Comparison) int { return compare(a.Object, b.Object) })
	return all, nil
}

func onCluster(state *propagate.State, id propagate.ID, cluster string) bool {
	b := state.Bindings.At(id.Key())
	return b != nil && b.Work(cluster) != nil
}

// wrong is what there is to say of an object as a whole.
func wrong(live map[string]any) string {
	switch {
	case live == nil:
		return "it is missing"
	case (&unstructured.Unstructured{Object: live}).GetLabels()[dispatch.LabelManaged] != "true":
		return "it is there and not ours"
	}
	return ""
}

// withoutReplicas is a manifest without the field that an autoscaler owns.
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

// origin is where a binding's template stands, or stood.
func (l level) origin(b *propagate.Binding) propagate.Origin {
	if t := l.state.Snapshot.Templates.At(b.Key()); t != nil {
		return t.Origin
	}
	return b.Active.Template.Origin
}

// readLive reads whole what the state has to do with on a cluster. Kinds are
// listed; what a list does not have is read by itself, as it can be there and
// not be ours.
func readLive(ctx context.Context, state *propagate.State, cluster string, member Reader, asked func(propagate.ID) bool) (map[propagate.ID]map[string]any, error) {
	refs := map[schema.GroupVersionKind]map[propagate.ID]bool{}
	note := func(id propagate.ID, apiVersion string, wanted bool) {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil || !asked(id) {
			return
		}
		gvk := gv.WithKind(id.Kind)
		if refs[gvk] == nil {
			refs[gvk] = map[propagate.ID]bool{}
		}
		refs[gvk][id] = wanted || refs[gvk][id]
	}
	for b := range state.Bindings.Values() {
		if w := b.Work(cluster); w != nil && w.Released != nil {
			note(b.ID, w.Released.APIVersion, true)
		}
	}
	for a := range state.Departed.Values() {
		if gone := state.Departure(cluster, a.ID); gone != nil {
			note(a.ID, gone.Released.APIVersion, false)
		}
	}
	live := map[propagate.ID]map[string]any{}
	kinds := slices.SortedFunc(maps.Keys(refs), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, gvk := range kinds {
		if len(refs[gvk]) > few {
			for object, err := range member.OursWhole(ctx, gvk) {
				if err := served(err); err != nil {
					return nil, err
				}
				if err != nil {
					break
				}
				o := &unstructured.Unstructured{Object: object}
				id := propagate.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
				if _, known := refs[gvk][id]; known {
					live[id] = object
				}
			}
		}
		for id, wanted := range refs[gvk] {
			if live[id] != nil || !wanted && len(refs[gvk]) > few {
				continue
			}
			object, err := member.Read(ctx, dispatch.Ref{GroupVersionKind: gvk, Namespace: id.Namespace, Name: id.Name})
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

// Pending compares, from git alone, what was released to a cluster with what
// it gets when its hold is lifted.
func Pending(state *propagate.State, cluster string, asked func(propagate.ID) bool) []Comparison {
	l := newLevel(state)
	var all []Comparison
	for b := range state.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || !w.Held || !asked(b.ID) {
			continue
		}
		c := Comparison{Object: b.ID, To: w.Want.Revision, Origin: l.origin(b)}
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
			c.Differences = dispatch.Changes(before, state.Manifest(b.ID, w.Want))
		}
		if w.Released == nil && c.Note == "" {
			c.Note = "it is new"
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Comparison) int { return compare(a.Object, b.Object) })
	return all
}

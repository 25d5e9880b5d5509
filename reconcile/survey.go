// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/interpret"
)

// Asker is a member as a survey asks it.
type Asker interface {
	// Ours and OursWhole yield what bears our label, its metadata or all of it.
	Ours(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[dispatch.Found, error]
	OursWhole(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error]
	// List yields the metadata of everything of a kind in a namespace.
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[dispatch.Found, error]
	// Get reads the metadata of one object; nil when it is absent.
	Get(ctx context.Context, ref dispatch.Ref) (*dispatch.Found, error)
}

// Sight is what a cluster was seen to have of one object.
type Sight struct {
	Ours     bool
	Digest   string // that it bears
	Revision string // the commit that it is of
	// Replicas that it is told to have, and of those that are available; -1
	// where the kind has none.
	Replicas, Available int64

	Health   propagate.Health
	Progress interpret.Progress
	Why      string         // it is no further
	Status   map[string]any // as far as it is worth knowing
	Unclear  error          // of the script that was to tell health or status
}

// Sights are what a cluster was seen to have, of what the fleet has to do with.
type Sights map[propagate.ID]*Sight

// Survey asks one member for everything that a state has released to its
// cluster, or had released and does not want there any more. It believes the
// marks that the objects bear, so it asks nobody else.
func Survey(ctx context.Context, state *propagate.State, cluster string, member Asker) (Sights, error) {
	s := &survey{state: state, member: member, sights: Sights{}, wanted: map[propagate.ID]bool{}}
	for gvk := range s.kinds(cluster) {
		if err := s.ours(ctx, gvk); err != nil {
			return nil, err
		}
	}
	return s.sights, s.missing(ctx, cluster)
}

type survey struct {
	state  *propagate.State
	member Asker
	sights Sights
	wanted map[propagate.ID]bool
}

// kinds are those that the state has to do with on a cluster, sorted. What is
// there can be of an older version than what is wanted.
func (s *survey) kinds(cluster string) iter.Seq[schema.GroupVersionKind] {
	found := map[schema.GroupVersionKind]bool{}
	note := func(id propagate.ID, apiVersion string) {
		if gv, err := schema.ParseGroupVersion(apiVersion); err == nil {
			found[gv.WithKind(id.Kind)] = true
			s.wanted[id] = true
		}
	}
	for b := range s.state.Bindings.Values() {
		if w := b.Work(cluster); w != nil {
			note(b.ID, apiVersionOf(w))
		}
	}
	for a := range s.state.Departed.Values() {
		if gone := s.state.Departure(cluster, a.ID); gone != nil {
			note(a.ID, gone.Released.APIVersion)
		}
	}
	return slices.Values(slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupVersionKind) int {
		return cmp.Compare(a.String(), b.String())
	}))
}

// apiVersionOf is the version by which a work's object is found.
func apiVersionOf(w *propagate.Work) string {
	if w.Released != nil {
		return w.Released.APIVersion
	}
	return w.Want.APIVersion
}

// ours notes what bears our label. A kind that is not served has no objects.
func (s *survey) ours(ctx context.Context, gvk schema.GroupVersionKind) error {
	if !s.state.Reports(gvk.GroupVersion().String(), gvk.Kind) {
		for found, err := range s.member.Ours(ctx, gvk) {
			if err != nil {
				return served(err)
			}
			if s.wanted[found.ID] {
				s.sights[found.ID] = sightOf(found.Labels, found.Annotations)
			}
		}
		return nil
	}
	for object, err := range s.member.OursWhole(ctx, gvk) {
		if err != nil {
			return served(err)
		}
		o := &unstructured.Unstructured{Object: object}
		id := propagate.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		if s.wanted[id] {
			s.sights[id] = s.reported(o)
		}
	}
	return nil
}

// served is nil for the error of a kind that the member does not serve.
func served(err error) error {
	if errors.Is(err, dispatch.NotServed) {
		return nil
	}
	return err
}

func sightOf(labels, annotations map[string]string) *Sight {
	return &Sight{
		Ours:     labels[dispatch.LabelManaged] == "true",
		Digest:   annotations[dispatch.AnnotationDigest],
		Revision: commitIn(annotations),
		Replicas: -1,
		Health:   propagate.Healthy,
		Progress: interpret.Current,
	}
}

// commitIn is the commit that an object bears; "" for what is none, since
// anybody may write there.
func commitIn(annotations map[string]string) string {
	hash := annotations[dispatch.AnnotationRevision]
	if len(hash) < 40 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return hash
}

// reported is the sight of an object that says how it does.
func (s *survey) reported(o *unstructured.Unstructured) *Sight {
	seen := sightOf(o.GetLabels(), o.GetAnnotations())
	var unhealthy, unreflected error
	seen.Health, unhealthy = s.state.Health(o.Object)
	seen.Progress, seen.Why = s.state.Progress(o.Object, seen.Health)
	seen.Status, unreflected = s.state.StatusOf(o.Object)
	seen.Unclear = errors.Join(unhealthy, unreflected)
	if n, ok, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); ok {
		seen.Replicas = n
		seen.Available, _, _ = unstructured.NestedInt64(o.Object, "status", "availableReplicas")
	}
	return seen
}

// few is how many objects of a kind and namespace are read one by one.
const few = 3

// missing looks at what was released and does not bear our label: it can be
// somebody else's.
func (s *survey) missing(ctx context.Context, cluster string) error {
	type place struct {
		schema.GroupVersionKind
		namespace string
	}
	missing := map[place]map[propagate.ID]bool{}
	for b := range s.state.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || s.sights[b.ID] != nil {
			continue
		}
		gv, err := schema.ParseGroupVersion(apiVersionOf(w))
		if err != nil {
			continue
		}
		at := place{gv.WithKind(b.Kind), b.Namespace}
		if missing[at] == nil {
			missing[at] = map[propagate.ID]bool{}
		}
		missing[at][b.ID] = true
	}
	for at, ids := range missing {
		if len(ids) > few {
			for found, err := range s.member.List(ctx, at.GroupVersionKind, at.namespace) {
				if err != nil {
					if err := served(err); err != nil {
						return err
					}
					break
				}
				if ids[found.ID] {
					s.sights[found.ID] = sightOf(found.Labels, found.Annotations)
				}
			}
			continue
		}
		for id := range ids {
			found, err := s.member.Get(ctx, dispatch.Ref{GroupVersionKind: at.GroupVersionKind, Namespace: id.Namespace, Name: id.Name})
			if err := served(err); err != nil {
				return err
			}
			if found != nil {
				s.sights[id] = sightOf(found.Labels, found.Annotations)
			}
		}
	}
	return nil
}

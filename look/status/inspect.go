// SPDX-License-Identifier: Apache-2.0

package status

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

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Inspector reads what Inspect needs from a member.
type Inspector interface {
	// Ours and OursWhole yield the objects of a kind that have our label: Ours their
	// metadata, OursWhole all of them.
	Ours(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[member.Found, error]
	OursWhole(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error]
	// List yields the metadata of everything of a kind in a namespace.
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error]
	// Get returns the metadata of one object; nil if it is absent.
	Get(ctx context.Context, ref member.Ref) (*member.Found, error)
}

// Observation is what was observed of one object on one cluster.
type Observation struct {
	Ours     bool
	Fleet    string // whose it is, if it bears our mark and is another fleet's
	Digest   string // of its annotation
	Revision string // of its annotation: the commit of its content
	// Replicas is how many it should have, -1 if the kind has none, and Available how
	// many of them are available.
	Replicas, Available int64

	Health   propagate.Health
	Progress interpret.Progress
	Why      string         // the reason for Progress
	Status   map[string]any // the part that is collected
	Unclear  error          // of the scripts that determine health and status
}

// Observations are what was observed on one cluster, of the objects that the fleet
// wants or has removed there.
type Observations map[object.ID]*Observation

// Inspect reads from one member everything that a state has released to its cluster,
// or has released and no longer wants there. The marks on the objects tell what they
// are, and of knows which are the fleet's, so no other source is needed.
func Inspect(ctx context.Context, state *propagate.State, of object.Marker, cluster string, member Inspector) (Observations, error) {
	s := &inspection{state: state, of: of, member: member, observed: Observations{}, wanted: map[object.ID]bool{}}
	for gvk := range s.kinds(cluster) {
		if err := s.ours(ctx, gvk); err != nil {
			return nil, err
		}
	}
	return s.observed, s.missing(ctx, cluster)
}

type inspection struct {
	state    *propagate.State
	of       object.Marker
	member   Inspector
	observed Observations
	wanted   map[object.ID]bool
}

// kinds returns the kinds of the works and removals on a cluster, sorted. What is
// there may have an older API version than what is wanted.
func (s *inspection) kinds(cluster string) iter.Seq[schema.GroupVersionKind] {
	found := map[schema.GroupVersionKind]bool{}
	note := func(id object.ID, apiVersion string) {
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

	for a := range s.state.Tombstones.Values() {
		if gone := s.state.Removal(cluster, a.ID); gone != nil {
			note(a.ID, gone.Released.APIVersion)
		}
	}

	return slices.Values(slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupVersionKind) int {
		return cmp.Compare(a.String(), b.String())
	}))
}

// apiVersionOf returns the version by which a work's object is read.
func apiVersionOf(w *propagate.Work) string {
	if w.Released != nil {
		return w.Released.APIVersion
	}
	return w.Want.APIVersion
}

// ours observes the objects that have our label. A kind that is not served has none.
func (s *inspection) ours(ctx context.Context, gvk schema.GroupVersionKind) error {
	if !s.state.Reports(gvk.GroupVersion().String(), gvk.Kind) {
		for found, err := range s.member.Ours(ctx, gvk) {
			if err != nil {
				return served(err)
			}
			if s.wanted[found.ID] {
				s.observed[found.ID] = s.observe(found.Labels, found.Annotations)
			}
		}
		return nil
	}
	for obj, err := range s.member.OursWhole(ctx, gvk) {
		if err != nil {
			return served(err)
		}
		o := &unstructured.Unstructured{Object: obj}
		id := object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		if s.wanted[id] {
			s.observed[id] = s.reported(o)
		}
	}

	return nil
}

// served returns nil for the error of a kind that the member does not serve.
func served(err error) error {
	if errors.Is(err, member.NotServed) {
		return nil
	}
	return err
}

func (s *inspection) observe(labels, annotations map[string]string) *Observation {
	whose, name := s.of.Whose(labels, annotations, false), ""
	if whose == object.AnotherFleets {
		name = cmp.Or(labels[object.LabelFleet], "without a name")
	}
	return &Observation{
		Ours:     whose == object.Ours,
		Fleet:    name,
		Digest:   annotations[object.AnnotationDigest],
		Revision: commitIn(annotations),
		Replicas: -1,
		Health:   propagate.Healthy,
		Progress: interpret.Current,
	}
}

// commitIn returns the commit of an object's revision annotation, or "" if it is not
// a hash: anybody may have written it.
func commitIn(annotations map[string]string) string {
	hash := annotations[object.AnnotationRevision]
	if len(hash) < 40 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return hash
}

// reported observes an object of a kind that reports its status.
func (s *inspection) reported(o *unstructured.Unstructured) *Observation {
	seen := s.observe(o.GetLabels(), o.GetAnnotations())
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

// few is how many objects of a kind and namespace are read one by one at most.
const few = 3

// missing observes what was released and does not have our label: it may exist and
// not be ours.
func (s *inspection) missing(ctx context.Context, cluster string) error {
	type place struct {
		schema.GroupVersionKind
		namespace string
	}
	missing := map[place]map[object.ID]bool{}
	for b := range s.state.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || s.observed[b.ID] != nil {
			continue
		}
		gv, err := schema.ParseGroupVersion(apiVersionOf(w))
		if err != nil {
			continue
		}
		at := place{gv.WithKind(b.Kind), b.Namespace}
		if missing[at] == nil {
			missing[at] = map[object.ID]bool{}
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
					s.observed[found.ID] = s.observe(found.Labels, found.Annotations)
				}
			}
			continue
		}
		for id := range ids {
			found, err := s.member.Get(ctx, member.Ref{GroupVersionKind: at.GroupVersionKind, Namespace: id.Namespace, Name: id.Name})
			if err := served(err); err != nil {
				return err
			}
			if found != nil {
				s.observed[id] = s.observe(found.Labels, found.Annotations)
			}
		}
	}

	return nil
}

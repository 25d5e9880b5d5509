// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"iter"
	"sync"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// desired is what a state wants, as dispatch queries it.
type desired struct {
	state   *propagate.State
	scalers *propagate.Scalers
	indexed func() *byCluster
	source  func() member.Source // nil if it is not needed
	marker  object.Marker
}

// byCluster has a state's works and removals, each in the order of the keys.
type byCluster struct {
	placed map[string][]placed
	gone   map[string][]object.ID
}

// placed is a work of a binding.
type placed struct {
	*propagate.Binding
	work int
}

func newDesired(state *propagate.State) desired {
	return desired{
		state:   state,
		scalers: propagate.NewScalers(state),
		marker:  state.Marker(),
		indexed: sync.OnceValue(func() *byCluster { return indexed(state) }),
	}
}

// indexed walks a state once for all clusters: a query of everything on one cluster is
// followed by the same for the others.
func indexed(state *propagate.State) *byCluster {
	by := &byCluster{map[string][]placed{}, map[string][]object.ID{}}
	for b := range state.Bindings.Values() {
		for i := range b.Works {
			cluster := b.Works[i].Cluster
			by.placed[cluster] = append(by.placed[cluster], placed{b, i})
		}
	}

	for a := range state.Tombstones.Values() {
		for _, g := range a.Clusters {
			by.gone[g.Cluster] = append(by.gone[g.Cluster], a.ID)
		}
	}

	return by
}

// Source returns the commit of the state.
func (d desired) Source() member.Source { return d.source() }

// Marker returns by what the fleet knows its objects.
func (d desired) Marker() object.Marker { return d.marker }

// Desire returns what the state wants of one object on one cluster.
func (d desired) Desire(cluster string, id object.ID) dispatch.Desire {
	b := d.state.Bindings.At(id.Key())
	if b != nil {
		if w := b.Work(cluster); w != nil {
			return d.wanted(b, w)
		}
	}
	return d.removed(id, d.state.Removal(cluster, id))
}

func (d desired) removed(id object.ID, gone *propagate.Removal) dispatch.Desire {
	switch {
	case gone == nil:
		return dispatch.Desire{Verb: dispatch.Leave}
	case gone.Preserve:
		return dispatch.Desire{Verb: dispatch.Orphan, APIVersion: gone.Released.APIVersion}
	}
	return dispatch.Desire{Verb: dispatch.Delete, APIVersion: gone.Released.APIVersion, After: d.acknowledgements(d.state.Awaits(gone.Cluster, id))}
}

// acknowledgements returns what is awaited as the clusters will acknowledge it.
func (d desired) acknowledgements(awaited []propagate.Awaited) (all []dispatch.Acknowledgement) {
	for _, a := range awaited {
		wanted := dispatch.Acknowledgement{Cluster: a.Cluster, ID: a.ID}
		if a.Content != nil {
			wanted.Digest, wanted.APIVersion = a.Content.Digest, a.Content.APIVersion
		}
		if a.Content != nil && a.Preserve && d.state.Pulls(a.Cluster) {
			wanted.Digest = object.KeptDigest(wanted.Digest)
		}
		all = append(all, wanted)
	}
	return all
}

func (d desired) wanted(b *propagate.Binding, w *propagate.Work) dispatch.Desire {
	if w.Blocked != "" {
		return blocked(w)
	}
	if w.Held {
		return dispatch.Desire{Verb: dispatch.Hold, APIVersion: w.Want.APIVersion}
	}

	want := dispatch.Desire{
		Verb:           dispatch.Apply,
		APIVersion:     w.Want.APIVersion,
		Digest:         w.Want.Digest,
		Overwrite:      b.Overwrites(w.Want),
		Manifest:       func() (map[string]any, error) { return d.state.Manifest(b.ID, w.Want), nil },
		RetainReplicas: d.scalers.Retain(b, w),
	}
	if len(w.After) > 0 {
		want.After, want.Replicas = d.acknowledgements(d.state.AwaitsShare(b, w)), w.Want.Replicas
	}
	if w.Preserve && d.state.Pulls(w.Cluster) {
		return keptFromPruning(want)
	}

	return want
}

// blocked leaves what was released to the member, and fails with the reason.
func blocked(w *propagate.Work) dispatch.Desire {
	return dispatch.Desire{
		Verb:       dispatch.Apply,
		APIVersion: w.Want.APIVersion,
		Digest:     object.DigestOf([]byte(w.Blocked)),
		Manifest:   func() (map[string]any, error) { return nil, errors.New(w.Blocked) },
	}
}

// Desires yields what is wanted on a cluster or was removed from it. An object that is
// wanted again under a hold after its removal is yielded twice, with the same desire.
func (d desired) Desires(cluster string) iter.Seq2[object.ID, dispatch.Desire] {
	return func(yield func(object.ID, dispatch.Desire) bool) {
		by := d.indexed()
		for _, p := range by.placed[cluster] {
			if !yield(p.ID, d.wanted(p.Binding, &p.Works[p.work])) {
				return
			}
		}
		for _, id := range by.gone[cluster] {
			if !yield(id, d.Desire(cluster, id)) {
				return
			}
		}
	}
}

// Namespace returns the fleet's manifest of a namespace (fold rule 27): what is released
// to the cluster, or what would be if the fleet does not place it there.
func (d desired) Namespace(cluster, name string) map[string]any {
	id := object.ID{Kind: "Namespace", Name: name}
	if b := d.state.Bindings.At(id.Key()); b != nil {
		w := b.Work(cluster)
		if w != nil && (w.Released == nil || w.Released.Template == nil) {
			return nil // it is held: its content must not be released
		}
		if w != nil {
			return d.state.Manifest(id, w.Released)
		}
	}

	return d.state.ManifestFor(id, cluster)
}

// keptFromPruning marks what is published to a pull cluster for preservation:
// its own tools delete what disappears, unless the object itself says not to.
func keptFromPruning(want dispatch.Desire) dispatch.Desire {
	manifest := want.Manifest
	want.Digest = object.KeptDigest(want.Digest)
	want.Manifest = func() (map[string]any, error) {
		m, err := manifest()
		if err != nil {
			return nil, err
		}
		annotations := m["metadata"].(map[string]any)["annotations"].(map[string]any)
		object.KeepOurs(annotations)
		annotations[object.AnnotationDigest] = want.Digest.String()
		return m, nil
	}

	return want
}

// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"iter"
	"sync"
	"unique"

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
	gone   map[string][]dispatch.Key
}

// placed is a work of a binding.
type placed struct {
	*propagate.Binding
	key  dispatch.Key
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
	by := &byCluster{map[string][]placed{}, map[string][]dispatch.Key{}}
	for b := range state.Bindings.Values() {
		key := unique.Make(b.ID)
		for i := range b.Works {
			cluster := b.Works[i].Cluster
			by.placed[cluster] = append(by.placed[cluster], placed{b, key, i})
		}
	}

	for a := range state.Tombstones.Values() {
		key := unique.Make(a.ID)
		for _, g := range a.Clusters {
			by.gone[g.Cluster] = append(by.gone[g.Cluster], key)
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
	want := dispatch.Desire{Want: wantGone(gone)}
	if want.Verb == dispatch.Delete {
		want.After = d.acknowledgements(d.state.Awaits(gone.Cluster, id))
	}
	return want
}

// wantGone is what becomes of what was removed.
func wantGone(gone *propagate.Removal) dispatch.Want {
	switch {
	case gone == nil:
		return dispatch.Want{Verb: dispatch.Leave}
	case gone.Preserve:
		return dispatch.Want{Verb: dispatch.Orphan, APIVersion: gone.Released.APIVersion}
	}
	return dispatch.Want{Verb: dispatch.Delete, APIVersion: gone.Released.APIVersion}
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

// want is what becomes of a work. What is published to a pull cluster for preservation
// has another digest than what is sent.
func (d desired) want(w *propagate.Work) dispatch.Want {
	want := dispatch.Want{Verb: dispatch.Apply, APIVersion: w.Want.APIVersion, Digest: w.Want.Digest}
	switch {
	case w.Blocked != "":
		want.Digest = object.DigestOf([]byte(w.Blocked))
	case w.Held:
		want.Verb, want.Digest = dispatch.Hold, object.Digest{}
	case d.keeps(w):
		want.Digest = object.KeptDigest(want.Digest)
	}
	return want
}

// keeps reports whether a work is marked for preservation on its cluster.
func (d desired) keeps(w *propagate.Work) bool { return w.Preserve && d.state.Pulls(w.Cluster) }

func (d desired) wanted(b *propagate.Binding, w *propagate.Work) dispatch.Desire {
	want := dispatch.Desire{Want: d.want(w)}
	switch {
	case w.Blocked != "":
		// What was released stays on the member, and the reason is the failure.
		want.Manifest = func() (map[string]any, error) { return nil, errors.New(w.Blocked) }
		return want
	case w.Held:
		return want
	}

	state := d.state // a manifest holds on to no more than that
	want.Manifest = func() (map[string]any, error) { return state.Manifest(b.ID, w.Want), nil }
	want.Overwrite, want.RetainReplicas = b.Overwrites(w.Want), d.scalers.Retain(b, w)
	if len(w.After) > 0 {
		want.After, want.Replicas = d.acknowledgements(d.state.AwaitsShare(b, w)), w.Want.Replicas
	}
	if d.keeps(w) {
		return keptFromPruning(want)
	}

	return want
}

// Wants yields what is wanted on a cluster or was removed from it. An object that is
// wanted again under a hold after its removal is yielded twice, alike.
func (d desired) Wants(cluster string) iter.Seq2[dispatch.Key, dispatch.Want] {
	return func(yield func(dispatch.Key, dispatch.Want) bool) {
		by := d.indexed()
		for _, p := range by.placed[cluster] {
			if !yield(p.key, d.want(&p.Works[p.work])) {
				return
			}
		}
		for _, key := range by.gone[cluster] {
			if !yield(key, d.Desire(cluster, key.Value()).Want) {
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

// keptFromPruning marks what is published to a pull cluster for preservation, and has the
// digest of that: its own tools delete what disappears, unless the object itself says not
// to.
func keptFromPruning(want dispatch.Desire) dispatch.Desire {
	manifest := want.Manifest
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

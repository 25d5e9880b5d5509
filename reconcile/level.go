// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"iter"
	"sync"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

// level is a state as dispatch asks about it.
type level struct {
	state   *propagate.State
	scalers *scalers
	indexed func() *byCluster
	source  func() dispatch.Source // nil: nobody asks
}

// byCluster are a state's works and what departed, each in the order of the
// keys.
type byCluster struct {
	placed map[string][]placed
	gone   map[string][]propagate.ID
}

// placed is a work of a binding.
type placed struct {
	*propagate.Binding
	work int
}

func newLevel(state *propagate.State) level {
	return level{
		state:   state,
		scalers: &scalers{},
		indexed: sync.OnceValue(func() *byCluster { return indexed(state) }),
	}
}

// indexed walks a state once for all clusters: whoever asks for everything on
// one of them asks for all others next.
func indexed(state *propagate.State) *byCluster {
	by := &byCluster{map[string][]placed{}, map[string][]propagate.ID{}}
	for b := range state.Bindings.Values() {
		for i := range b.Works {
			cluster := b.Works[i].Cluster
			by.placed[cluster] = append(by.placed[cluster], placed{b, i})
		}
	}
	for a := range state.Departed.Values() {
		for _, g := range a.Clusters {
			by.gone[g.Cluster] = append(by.gone[g.Cluster], a.ID)
		}
	}
	return by
}

// Source is the commit that a state is of.
func (l level) Source() dispatch.Source { return l.source() }

// Desire is what a state wants of one object on one cluster.
func (l level) Desire(cluster string, id propagate.ID) dispatch.Desire {
	b := l.state.Bindings.At(id.Key())
	if b != nil {
		if w := b.Work(cluster); w != nil {
			return l.wanted(b, w)
		}
	}
	return ofDeparted(l.state.Departure(cluster, id))
}

func ofDeparted(gone *propagate.Gone) dispatch.Desire {
	switch {
	case gone == nil:
		return dispatch.Desire{Verb: dispatch.Leave}
	case gone.Preserve:
		return dispatch.Desire{Verb: dispatch.Release, APIVersion: gone.Released.APIVersion}
	}
	return dispatch.Desire{Verb: dispatch.Delete, APIVersion: gone.Released.APIVersion}
}

func (l level) wanted(b *propagate.Binding, w *propagate.Work) dispatch.Desire {
	if w.Blocked != "" {
		return blocked(w)
	}
	if w.Held {
		return dispatch.Desire{Verb: dispatch.Hold, APIVersion: w.Want.APIVersion}
	}
	d := dispatch.Desire{
		Verb:           dispatch.Apply,
		APIVersion:     w.Want.APIVersion,
		Digest:         w.Want.Digest,
		Overwrite:      b.Overwrites(w.Want),
		Manifest:       func() (map[string]any, error) { return l.state.Manifest(b.ID, w.Want), nil },
		RetainReplicas: l.retains(b, w),
	}
	if w.Preserve && l.pulls(w.Cluster) {
		return keptFromPruning(d)
	}
	return d
}

// blocked keeps what was released to the member, and says what is wrong.
func blocked(w *propagate.Work) dispatch.Desire {
	return dispatch.Desire{
		Verb:       dispatch.Apply,
		APIVersion: w.Want.APIVersion,
		Digest:     propagate.DigestOf([]byte(w.Blocked)),
		Manifest:   func() (map[string]any, error) { return nil, errors.New(w.Blocked) },
	}
}

// Desires yields what is wanted on a cluster or has departed from it. What is
// wanted again under a hold after it departed comes twice, with one answer.
func (l level) Desires(cluster string) iter.Seq2[propagate.ID, dispatch.Desire] {
	return func(yield func(propagate.ID, dispatch.Desire) bool) {
		by := l.indexed()
		for _, p := range by.placed[cluster] {
			if !yield(p.ID, l.wanted(p.Binding, &p.Works[p.work])) {
				return
			}
		}
		for _, id := range by.gone[cluster] {
			if !yield(id, l.Desire(cluster, id)) {
				return
			}
		}
	}
}

// Namespace is the fleet's document of a namespace (fold rule 27): what is
// released to the cluster, or what would be where the fleet does not place it.
func (l level) Namespace(cluster, name string) map[string]any {
	id := propagate.ID{Kind: "Namespace", Name: name}
	if b := l.state.Bindings.At(id.Key()); b != nil {
		w := b.Work(cluster)
		if w != nil && (w.Released == nil || w.Released.Template == nil) {
			return nil // it is held: its content must not slip through
		}
		if w != nil {
			return l.state.Manifest(id, w.Released)
		}
	}
	return l.state.Unplaced(id, cluster)
}

// pulls is whether a cluster's own tools apply what is published for it.
func (l level) pulls(cluster string) bool {
	c, ok := l.state.Snapshot.Clusters.Get(cluster)
	return ok && c.Spec.SyncMode == clusterv1alpha1.Pull
}

// keptFromPruning marks what is published to a pull cluster for preservation:
// its own tools delete what disappears, unless the object itself says not to.
func keptFromPruning(d dispatch.Desire) dispatch.Desire {
	manifest := d.Manifest
	d.Digest = keptDigest(d.Digest)
	d.Manifest = func() (map[string]any, error) {
		m, err := manifest()
		if err != nil {
			return nil, err
		}
		annotations := m["metadata"].(map[string]any)["annotations"].(map[string]any)
		dispatch.KeepFromPruning(annotations)
		annotations[dispatch.AnnotationDigest] = d.Digest.String()
		return m, nil
	}
	return d
}

// keptDigest is of a content with these marks.
func keptDigest(d propagate.Digest) propagate.Digest {
	return propagate.DigestOf([]byte("preserved\n" + d.String()))
}

// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"iter"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

// level is a state as dispatch asks about it.
type level struct {
	state   *propagate.State
	scalers *scalers
	source  func() dispatch.Source // nil: nobody asks
}

func newLevel(state *propagate.State) level { return level{state: state, scalers: &scalers{}} }

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
	gone := l.state.Departure(cluster, id)
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

// Keys yields what is wanted on a cluster or has departed from it.
func (l level) Keys(cluster string) iter.Seq[propagate.ID] {
	return func(yield func(propagate.ID) bool) {
		for b := range l.state.Bindings.Values() {
			if b.Work(cluster) != nil && !yield(b.ID) {
				return
			}
		}
		for a := range l.state.Departed.Values() {
			if l.state.Departure(cluster, a.ID) != nil && !yield(a.ID) {
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

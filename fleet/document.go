// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"iter"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// Document is a document of any kind.
type Document struct {
	kind  Kind
	Value any // a pointer, such as *Policy; nil for no document
}

// ID is the identity of the document as an object. It has no name if there can
// only be one of its kind.
func (d Document) ID() object.ID { return d.kind.id(d.Value) }

// Movable reports whether there is a document, and it may be in any file.
func (d Document) Movable() bool { return d.Value != nil && d.ID().Name != "" }

// Origin is the position of the document in its commit.
func (d Document) Origin() Origin { return d.kind.origin(d.Value) }

// In reports whether a snapshot has a document of the same identity.
func (d Document) In(s *Snapshot) bool { return d.kind.has(s, d.kind.key(d.Value)) }

// String reads "Cluster eu-1".
func (d Document) String() string {
	id := d.ID()
	if id.Name == "" {
		return id.Kind
	}
	return id.String()
}

// ID is the identity of the policy as an object.
func (p *Policy) ID() object.ID {
	return object.ID{Group: policyv1alpha1.GroupVersion.Group, Kind: p.Ref.Kind(), Namespace: p.Ref.Namespace, Name: p.Ref.Name}
}

// ID is the identity of the override as an object.
func (r OverrideRef) ID() object.ID {
	return object.ID{Group: policyv1alpha1.GroupVersion.Group, Kind: r.Kind(), Namespace: r.Namespace, Name: r.Name}
}

// ID is the identity of the Cluster document as an object.
func (c *Cluster) ID() object.ID {
	return object.ID{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster", Name: c.Name}
}

// Edited yields the documents that a step from before to after creates, changes
// or removes, of the kinds that say when two are the same. before may be nil.
// Moving a document to another line or file is not an edit.
func Edited(before, after *Snapshot) iter.Seq[object.ID] {
	if before == nil {
		before = EmptySnapshot
	}
	return func(yield func(object.ID) bool) {
		for _, k := range kinds {
			if !k.edited(before, after, yield) {
				return
			}
		}
	}
}

func (k *kind[V]) edited(before, after *Snapshot, yield func(object.ID) bool) bool {
	told, ok := k.held.(told[V])
	if !ok {
		return true
	}

	for d := range ordered.Diff(k.load(before), k.load(after)) {
		if d.Had && d.Has && told.Same(d.Before, d.After) {
			continue
		}

		document := d.After
		if !d.Has {
			document = d.Before
		}
		if !yield(k.ID(document)) {
			return false
		}
	}

	return true
}

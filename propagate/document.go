// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"iter"
	"maps"
	"reflect"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/ordered"
)

// Every document of a snapshot has an ID, as the object that it is.

func (p *Policy) id() ID {
	return ID{policyv1alpha1.GroupVersion.Group, p.Ref.Kind(), p.Ref.Namespace, p.Ref.Name}
}

func (r OverrideRef) id() ID {
	return ID{policyv1alpha1.GroupVersion.Group, r.Kind(), r.Namespace, r.Name}
}

func (c *Cluster) id() ID {
	return ID{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster", Name: c.Name}
}

// Edited yields the templates, policies, overrides and clusters that a step
// from one snapshot to another creates, changes or removes. A move to another
// line or file changes nothing.
func Edited(before, after *Snapshot) iter.Seq[ID] {
	if before == nil {
		before = empty
	}
	return func(yield func(ID) bool) {
		_ = edited(before.Templates, after.Templates, yield, func(t *Template) ID { return t.ID },
			func(a, b *Template) bool { return a.Digest == b.Digest }) &&
			edited(before.Policies, after.Policies, yield, (*Policy).id, func(a, b *Policy) bool {
				return a.Activate == b.Activate && maps.Equal(a.Labels, b.Labels) && reflect.DeepEqual(a.Spec, b.Spec) &&
					reflect.DeepEqual(a.Holds, b.Holds) && reflect.DeepEqual(a.Waves, b.Waves)
			}) &&
			edited(before.Overrides, after.Overrides, yield, func(o *Override) ID { return o.Ref.id() },
				func(a, b *Override) bool { return reflect.DeepEqual(a.Spec, b.Spec) }) &&
			edited(before.Clusters, after.Clusters, yield, (*Cluster).id,
				func(a, b *Cluster) bool { return reflect.DeepEqual(a.Cluster, b.Cluster) })
	}
}

func edited[V comparable](before, after ordered.Map[V], yield func(ID) bool, id func(V) ID, same func(a, b V) bool) bool {
	for d := range ordered.Diff(before, after) {
		if d.Had && d.Has && same(d.Before, d.After) {
			continue
		}
		document := d.After
		if !d.Has {
			document = d.Before
		}
		if !yield(id(document)) {
			return false
		}
	}
	return true
}

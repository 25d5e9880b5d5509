// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scale is how a kind counts its replicas.
type scale struct {
	// field of the spec has their number, and otherwise is what an API server or a
	// controller makes of an absent one.
	field     string
	otherwise int64
	// available counts the available ones, availableReplicas if "".
	available string

	// Kinds without such a field count in functions. write may be nil: then each
	// cluster gets the object as it is. It edits a copy of the spec that it may
	// change itself, but not what that contains.
	count func(object map[string]any) (n int64, ok bool)
	write func(spec map[string]any, replicas int64)

	// needs are pods that ask for what a replica asks for, the kind's pod templates
	// if nil.
	needs func(object map[string]any) []map[string]any
}

// Replicas is the number of replicas that an object wants, and pod templates that
// ask for what they need: as one of them can be any of these, it needs the most of
// each. The placement of the first counts. ok is false where the kind has no
// replicas, or their number is none.
func (k *Kind) Replicas(object map[string]any) (n int64, pods []map[string]any, ok bool) {
	if k.replicas == nil {
		return 0, nil, false
	}

	if k.replicas.count != nil {
		n, ok = k.replicas.count(object)
	} else if n, ok = integral(mapAt(object, "spec")[k.replicas.field]); ok && mapAt(object, "spec")[k.replicas.field] == nil {
		n = k.replicas.otherwise
	}
	if !ok {
		return 0, nil, false
	}

	if k.replicas.needs != nil {
		return n, k.replicas.needs(object), true
	}
	return n, k.PodTemplates(object), true
}

// Divides reports whether a cluster's share of the replicas can be written.
func (k *Kind) Divides() bool {
	return k != nil && k.replicas != nil && (k.replicas.field != "" || k.replicas.write != nil)
}

// ReplicaField is the field of the spec that has the number of replicas, "" without
// one.
func (k *Kind) ReplicaField() string {
	if k == nil || k.replicas == nil {
		return ""
	}
	return k.replicas.field
}

// KindScales reports whether a known kind has its number of replicas in
// spec.replicas, in the version that is known.
func KindScales(gk schema.GroupKind) bool {
	k := kinds[gk]
	return k != nil && k.replicas != nil && k.replicas.field == "replicas"
}

// Share returns the object with a cluster's share of its replicas. An absent
// number stays absent: who scales the object in the cluster keeps it. A share of
// 0 is of a state that did not know the kind, and changes nothing. The result
// shares values with the object.
func (k *Kind) Share(object map[string]any, replicas int64) map[string]any {
	spec, ok := object["spec"].(map[string]any)
	if !k.Divides() || !ok || replicas == 0 {
		return object
	}
	if k.replicas.field != "" && spec[k.replicas.field] == nil {
		return object
	}

	object, spec = maps.Clone(object), maps.Clone(spec)
	object["spec"] = spec
	if k.replicas.write != nil {
		k.replicas.write(spec, replicas)
	} else {
		spec[k.replicas.field] = replicas
	}
	return object
}

// always is the count of a kind that is one pod.
func always(n int64) func(map[string]any) (int64, bool) {
	return func(map[string]any) (int64, bool) { return n, true }
}

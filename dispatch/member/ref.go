// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/object"
)

// errNotOurs is the cause of the reason Foreign.
var errNotOurs = errors.New("already exists in the cluster and is not ours: set conflictResolution: Overwrite to adopt it")

// NotOurs is the error of an object with these labels that is in the place of one
// of ours.
func NotOurs(labels map[string]string) *Error {
	err := errNotOurs
	switch name := labels[object.LabelFleet]; {
	case object.IsManaged(labels) && name != "":
		err = fmt.Errorf("already exists in the cluster and belongs to the fleet %q: set conflictResolution: Overwrite to take it over", name)
	case object.IsManaged(labels):
		err = errors.New("already exists in the cluster and belongs to another fleet, which gave it no name: set conflictResolution: Overwrite to take it over")
	}
	return &Error{Reason: Foreign, Err: err}
}

// Identity is what a manifest must have to name an object.
func Identity(ref Ref) map[string]any {
	meta := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		meta["namespace"] = ref.Namespace
	}
	return map[string]any{
		"apiVersion": ref.GroupVersion().String(),
		"kind":       ref.Kind,
		"metadata":   meta,
	}
}

// RefTo is where an object is, in a version of its kind.
func RefTo(id object.ID, apiVersion string) Ref {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return Ref{schema.GroupVersionKind{Group: id.Group, Version: gv.Version, Kind: id.Kind}, id.Namespace, id.Name}
}

// RefOf reads what a manifest says it is.
func RefOf(manifest map[string]any) Ref {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	meta, _ := manifest["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	return Ref{schema.FromAPIVersionAndKind(apiVersion, kind), namespace, name}
}

// Ref is where an object stands on a member.
type Ref struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// ID is the Ref without the version.
func (r Ref) ID() object.ID {
	return object.ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// NamespaceKind is the kind of namespaces.
var NamespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

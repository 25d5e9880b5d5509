// SPDX-License-Identifier: Apache-2.0

package object

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/printable"
)

// ID identifies an object: API group, kind, namespace and name, but not version
// or file (fold rule 8).
type ID struct {
	Group, Kind, Namespace, Name string
}

// Key is the ID as a map key. Keys sort by namespace, then kind, then name,
// cluster-scoped objects first.
func (id ID) Key() string {
	return id.Namespace + "/" + id.Kind + "." + id.Group + "/" + id.Name
}

// String reads "Deployment shop/web", or "ClusterRole reader".
func (id ID) String() string {
	if id.Namespace == "" {
		return printable.Line(id.Kind + " " + id.Name)
	}
	return printable.Line(id.Kind + " " + id.Namespace + "/" + id.Name)
}

// GroupKind is the type part of the ID.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// ParseKey is the inverse of Key. It reports false for any other text.
func ParseKey(key string) (ID, bool) {
	namespace, rest, ok := strings.Cut(key, "/")
	if !ok {
		return ID{}, false
	}

	kind, name, ok := strings.Cut(rest, "/")
	if !ok {
		return ID{}, false
	}

	kind, group, ok := strings.Cut(kind, ".")
	return ID{Group: group, Kind: kind, Namespace: namespace, Name: name}, ok
}

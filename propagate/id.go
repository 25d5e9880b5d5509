// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID is what makes two documents the same object: API group, kind, namespace
// and name; never the version, never the file (fold rule 8).
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
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// GroupKind is the type part of the ID.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// ParseKey is the inverse of Key. It reports false for what Key never makes.
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

// Origin is where in a commit a document stands.
type Origin struct {
	File string
	Line int // 1 is the first line; 0 when only the file is known
}

// Problem is one reason to refuse a commit.
type Problem struct {
	Origin
	Message string
}

// Error reads "file:line: message".
func (p Problem) Error() string {
	if p.File == "" {
		return p.Message
	}
	return p.Origin.String() + ": " + p.Message
}

// String reads "file:line", or "file" when the line is not known.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return o.File + ":" + strconv.Itoa(o.Line)
}

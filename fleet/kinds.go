// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are kinds of documents, in the order in which messages list them and
// edits are told.
type Kinds []Kind

// known are the kinds of documents. A new kind is one file, which says what it
// is, and one line here. It is a function because Go infers the types of a kind
// in a function's body, but not at package level.
func known() Kinds {
	return Kinds{
		templateKind,
		kindOf(policies{}),
		kindOf(overrides{}),
		kindOf(clusters{}),
		kindOf(interpreters{}),
		kindOf(rebalancers{}),
		kindOf(settings{}),
	}
}

// A kind is the same value everywhere, so they are made once.
var kinds = known()

// Known returns the kinds that fairlead understands.
func Known() Kinds { return slices.Clone(kinds) }

// Find returns the kind that a document's apiVersion and kind name; nil if
// none.
func (k Kinds) Find(gv schema.GroupVersion, name string) Kind {
	for _, kind := range k {
		if n := kind.names(); n.GroupVersion == gv && slices.Contains(n.Kinds, name) {
			return kind
		}
	}
	return nil
}

// In returns what the kinds of a group are called. If there are any, the group
// has no other kinds.
func (k Kinds) In(group string) (names []string) {
	for _, kind := range k {
		if n := kind.names(); n.GroupVersion.Group == group {
			names = append(names, n.Kinds...)
		}
	}
	return names
}

// Version returns the version of a kind of a group; "" if there is none.
func (k Kinds) Version(group, name string) string {
	for _, kind := range k {
		if n := kind.names(); n.GroupVersion.Group == group && slices.Contains(n.Kinds, name) {
			return n.GroupVersion.Version
		}
	}
	return ""
}

// Named reports whether a kind of any group has this name.
func (k Kinds) Named(name string) bool {
	return slices.ContainsFunc(k, func(kind Kind) bool { return slices.Contains(kind.names().Kinds, name) })
}

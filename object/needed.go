// SPDX-License-Identifier: Apache-2.0

package object

import "k8s.io/apimachinery/pkg/runtime"

// AsNeeded returns a copy of an object with our marks but without a digest: it
// is ours, but no policy placed it.
func AsNeeded(doc map[string]any, m Marker) map[string]any {
	doc = runtime.DeepCopyJSON(doc)
	meta := Section(doc, "metadata")
	m.Mark(Section(meta, "labels"))
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		delete(annotations, AnnotationDigest)
	}
	return doc
}

// IsNeeded reports whether an object of ours with this digest, "" for none,
// exists only because other objects need it. The fleet may have left an object
// of that name running before; that decision was not about this one.
func IsNeeded(id ID, digest string) bool {
	return IsPrerequisite(id) && digest == ""
}

// IsNamespace reports whether an object is a namespace.
func IsNamespace(id ID) bool { return id.GroupKind() == Namespace }

// IsPrerequisite reports whether other objects cannot exist without it: it is a
// namespace or a definition.
func IsPrerequisite(id ID) bool {
	return IsNamespace(id) || id.GroupKind() == CRD
}

// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// The marks on an object in a member (decision 27).
const (
	// LabelManaged marks the object as ours.
	LabelManaged = "fairlead.dev/managed"
	// LabelFleet is the name of the fleet that the object is of (decision 33).
	LabelFleet = "fairlead.dev/fleet"
	// AnnotationBinding is the namespace and name of its binding.
	AnnotationBinding = "fairlead.dev/binding"
	// AnnotationRevision is the commit that last changed its content. It is not
	// part of the digest, and never by itself a reason to write (fold rule 19).
	AnnotationRevision = "fairlead.dev/revision"
	// AnnotationDigest is the digest of its content.
	AnnotationDigest = "fairlead.dev/digest"
	// AnnotationKept are the annotations on a published file by which we keep its object
	// from being pruned, where its template did not ask for them.
	AnnotationKept = "fairlead.dev/kept"
)

// IsBookkeeping reports whether a label or annotation belongs to Karmada or to
// us (decision 1). Like Karmada, it looks for ".karmada.io" anywhere in the
// key.
func IsBookkeeping(key string) bool {
	return strings.Contains(key, ".karmada.io") || IsOurs(key)
}

// IsOurs reports whether a label or annotation is in the fairlead.dev domain.
func IsOurs(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "fairlead.dev" || strings.HasSuffix(domain, ".fairlead.dev")
}

// IsReserved reports whether Karmada uses this key for its own bookkeeping, or
// we do. Neither is copied from a template to members: Karmada's so that both
// can share a cluster (decision 27), ours because only we write them there.
func IsReserved(key string) bool {
	return karmadasKeys[key] || IsOurs(key)
}

var karmadasKeys = map[string]bool{
	"karmada.io/managed": true,
	"karmada.io/system":  true,

	"propagationpolicy.karmada.io/name":                true,
	"propagationpolicy.karmada.io/namespace":           true,
	"propagationpolicy.karmada.io/permanent-id":        true,
	"clusterpropagationpolicy.karmada.io/name":         true,
	"clusterpropagationpolicy.karmada.io/permanent-id": true,

	"resourcebinding.karmada.io/name":                true,
	"resourcebinding.karmada.io/namespace":           true,
	"resourcebinding.karmada.io/permanent-id":        true,
	"clusterresourcebinding.karmada.io/name":         true,
	"clusterresourcebinding.karmada.io/permanent-id": true,

	"work.karmada.io/name":         true,
	"work.karmada.io/namespace":    true,
	"work.karmada.io/permanent-id": true,

	"resourcetemplate.karmada.io/uid":                 true,
	"resourcetemplate.karmada.io/generation":          true,
	"resourcetemplate.karmada.io/managed-labels":      true,
	"resourcetemplate.karmada.io/managed-annotations": true,
}

// SPDX-License-Identifier: Apache-2.0

package object

import (
	"maps"
	"slices"
	"strings"
)

// Protection returns the label or annotation by which another tool, or its
// user, protects an object from deletion; "" without one.
//
// What we set ourselves protects from nothing.
func Protection(annotations, labels map[string]string) string {
	own := strings.Split(annotations[AnnotationKept], ",")
	for _, marks := range []map[string]string{annotations, labels} {
		for _, key := range slices.Sorted(maps.Keys(marks)) {
			if protects(key, marks[key]) && !slices.Contains(own, key) {
				return key
			}
		}
	}
	return ""
}

func protects(key, value string) bool {
	switch key {
	case fluxPrune:
		return strings.EqualFold(value, "disabled")
	case argoOptions:
		for option := range strings.SplitSeq(value, ",") {
			if o := strings.TrimSpace(option); o == "Prune=false" || o == "Delete=false" {
				return true
			}
		}
	case "helm.sh/resource-policy":
		return value == "keep"
	case "resourcetemplate.karmada.io/deletion-protected":
		return value == "Always"
	}

	return false
}

const (
	// With these an object asks Flux and Argo CD not to prune it.
	fluxPrune   = "kustomize.toolkit.fluxcd.io/prune"
	argoOptions = "argocd.argoproj.io/sync-options"
	// FluxApply configures how Flux applies an object.
	FluxApply = "kustomize.toolkit.fluxcd.io/ssa"
)

// KeptDigest is of a content that bears the marks of KeepOurs.
func KeptDigest(d Digest) Digest { return DigestOf([]byte("kept\n" + d.String())) }

// KeepOurs adds what KeepFromPruning adds to an object that is ours, and which of it
// its template did not ask for.
func KeepOurs(annotations map[string]any) {
	var own []string
	for _, key := range []string{argoOptions, fluxPrune} {
		if said, _ := annotations[key].(string); !protects(key, said) {
			own = append(own, key)
		}
	}

	KeepFromPruning(annotations)
	if len(own) > 0 {
		annotations[AnnotationKept] = strings.Join(own, ",")
	}
}

// KeepFromPruning adds the annotations that keep Flux and Argo CD from pruning
// the object when its file is removed.
func KeepFromPruning(annotations map[string]any) {
	annotations[fluxPrune] = "disabled"
	said, _ := annotations[argoOptions].(string)
	options := []string{"Prune=false", "Delete=false"}
	for option := range strings.SplitSeq(said, ",") {
		option = strings.TrimSpace(option)
		if name, _, _ := strings.Cut(option, "="); option != "" && name != "Prune" && name != "Delete" {
			options = append(options, option)
		}
	}

	annotations[argoOptions] = strings.Join(options, ",")
}

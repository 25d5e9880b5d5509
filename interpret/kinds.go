// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is what is known, without a script, of a kind that Kubernetes does not
// serve: OpenKruise's, Flux's, Argo's and so on, those that Karmada knows. A script
// for one of its functions replaces that part. What is absent here holds as for
// any other kind: no replicas, nothing goes along, healthy once observed, and the
// whole status.
type Kind struct {
	APIVersion string // a kind is known in one version
	Kind       string

	replicas *scale
	pods     []string // paths of its pod templates
	names    []naming // what it names besides
	healthy  func(observed) bool
	failed   func(observed) string // why waiting does not help, "" if it does
	reports  *reflection
	adds     func(*aggregate) map[string]any
}

// kinds are all of them. A kind is an entry of its project's file.
var kinds = byGroupKind(kruise, flux, argo, kubeflow, kyverno, ray, batch)

func byGroupKind(projects ...[]*Kind) map[schema.GroupKind]*Kind {
	all := map[schema.GroupKind]*Kind{}
	for _, k := range slices.Concat(projects...) {
		all[schema.FromAPIVersionAndKind(k.APIVersion, k.Kind).GroupKind()] = k
	}
	return all
}

// KindOf is what is known of a kind in a version, nil if nothing.
func KindOf(gk schema.GroupKind, apiVersion string) *Kind {
	if k := kinds[gk]; k != nil && k.APIVersion == apiVersion {
		return k
	}
	return nil
}

// KindRequires reports whether objects of a known kind can require others, in
// the version that is known.
func KindRequires(gk schema.GroupKind) bool {
	k := kinds[gk]
	return k != nil && len(k.pods)+len(k.names) > 0
}

// kindOf is what is known of the kind that an object is of, nil if nothing.
func kindOf(gk schema.GroupKind, object map[string]any) *Kind {
	apiVersion, _ := object["apiVersion"].(string)
	return KindOf(gk, apiVersion)
}

// at yields the values at a path of an object. A step * goes to each item of a
// list, or to each field of an object in the order of their names. The path "" is
// the object itself.
func at(value any, path string) []any {
	if path == "" {
		return []any{value}
	}
	step, rest, _ := strings.Cut(path, ".")

	var next []any
	switch value := value.(type) {
	case map[string]any:
		if step != "*" {
			next = append(next, value[step])
			break
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			next = append(next, value[name])
		}
	case []any:
		if step == "*" {
			next = value
		}
	}

	var found []any
	for _, v := range next {
		if v != nil {
			found = append(found, at(v, rest)...)
		}
	}
	return found
}

// mapAt is the object at a path, nil without one.
func mapAt(object map[string]any, path string) map[string]any {
	for _, v := range at(object, path) {
		m, _ := v.(map[string]any)
		return m
	}
	return nil
}

// textAt is the text at a path, "" without one.
func textAt(object map[string]any, path string) string {
	for _, v := range at(object, path) {
		s, _ := v.(string)
		return s
	}
	return ""
}

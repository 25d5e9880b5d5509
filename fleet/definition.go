// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Defines reports whether a CustomResourceDefinition, as a decoded document,
// serves the group, kind and version of a template.
func Defines(definition map[string]any, t *Template) bool {
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	if group != t.Group || kind != t.Kind {
		return false
	}

	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		served, _ := m["served"].(bool)
		return served && group+"/"+name == t.APIVersion
	})
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	crd       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespace = schema.GroupKind{Kind: "Namespace"}
)

// placesAPI says for a cluster whether the fleet brings it the definition of
// t's kind (fold rule 15). Definitions are placed before everything else in a
// step, so that a kind and its first object can come in one commit.
func (st *step) placesAPI(t *Template) func(cluster string) bool {
	return func(cluster string) bool {
		b := st.next.definition(t)
		return b != nil && b.Work(cluster) != nil
	}
}

// definitionMoved is whether this step has changed where that definition is.
func (st *step) definitionMoved(t *Template) bool {
	return st.prev.definition(t) != st.next.definition(t)
}

// definition is the binding of the definition of t's kind, nil when the fleet
// does not place it.
func (s *State) definition(t *Template) *Binding {
	for definition := range under(s.index.templates, "apiextensions.k8s.io/v1", crd.Kind) {
		if defines(definition.Object, t) {
			return s.Bindings.At(definition.Key())
		}
	}
	return nil
}

// definedBy yields the templates whose kind a definition brings.
func (st *step) definedBy(definition *Template) iter.Seq[*Template] {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return func(yield func(*Template) bool) {
		for _, v := range versions {
			m, _ := v.(map[string]any)
			name, _ := m["name"].(string)
			for t := range under(st.next.index.templates, group+"/"+name, kind) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

func defines(definition map[string]any, t *Template) bool {
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

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// placesAPI reports for a cluster whether the fleet brings it the definition of
// t's kind (fold rule 15). Definitions are placed before everything else in a
// step, so that a kind and its first object can come in one commit.
func (s *State) placesAPI(t *fleet.Template) func(cluster string) bool {
	return func(cluster string) bool {
		b := s.definition(t)
		return b != nil && b.Work(cluster) != nil
	}
}

// definition is the binding of the definition of t's kind, nil when the fleet
// does not place it.
func (s *State) definition(t *fleet.Template) *Binding {
	for definition := range under(s.index.templates, "apiextensions.k8s.io/v1", object.CRD.Kind) {
		if fleet.Defines(definition.Object(), t) {
			return s.Bindings.At(definition.Key())
		}
	}
	return nil
}

// definedBy yields the templates whose kind a definition brings.
func (ix *index) definedBy(definition *fleet.Template) iter.Seq[*fleet.Template] {
	group, _, _ := unstructured.NestedString(definition.Object(), "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object(), "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object(), "spec", "versions")
	return func(yield func(*fleet.Template) bool) {
		for _, v := range versions {
			m, _ := v.(map[string]any)
			name, _ := m["name"].(string)
			for t := range under(ix.templates, group+"/"+name, kind) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

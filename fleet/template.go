// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// NewTemplate makes a template of a decoded document and takes ownership of it:
// the caller must not use obj afterwards. An object of a namespaced kind without a
// namespace is in "default" (fold rule 8), and so is one of a kind of which nothing
// tells the scope (decision 54).
func NewTemplate(obj map[string]any, scope object.Scope, origin Origin, unit string) (*Template, []Problem) {
	c := &check{origin: origin}
	u := &unstructured.Unstructured{Object: obj}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		c.at("apiVersion", "apiVersion: %v", err)
	}

	for _, f := range []struct{ name, value string }{
		{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()},
	} {
		if f.value == "" {
			c.at(f.name, "%s is required", f.name)
		}
	}

	if len(c.problems) > 0 {
		return nil, c.problems
	}

	assumed := false
	namespaced, known := scope(gv.Group, u.GetKind())
	switch {
	case known && !namespaced && u.GetNamespace() != "":
		unstructured.RemoveNestedField(obj, "metadata", "namespace")
	case (namespaced || !known) && u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
		assumed = !known
	}

	id := object.ID{Group: gv.Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	object.StripServerFields(obj)
	written := object.DigestJSON(obj)
	update := object.DigestJSON(withoutBookkeeping(obj))
	unset := setDefaults(id.GroupKind(), u.GetAPIVersion(), obj)

	t := &Template{
		ID:         id,
		APIVersion: u.GetAPIVersion(),
		Labels:     u.GetLabels(),
		manifest:   &manifest{object: obj},
		Unset:      unset,
		Digest:     written,
		Update:     update,
		Origin:     origin,
		Unit:       unit,
		Demand:     newDemand(id, u.GetAPIVersion(), obj),
		Assumed:    assumed,
	}

	t.readImmediate(c, u.GetAnnotations())
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return t, nil
}

// templates is the kind of everything that is sent to clusters. Its documents
// are not decoded into a type, and need the scope of their kind: NewTemplate
// reads them.
type templates struct{}

var templateKind = &kind[*Template]{held: templates{}}

// Document returns the template as a document.
func (t *Template) Document() Document { return Document{templateKind, t} }

func (templates) ID(t *Template) object.ID  { return t.ID }
func (templates) Key(t *Template) string    { return t.Key() }
func (templates) Origin(t *Template) Origin { return t.Origin }

// Equal does not compare the objects: the digest covers them.
func (templates) Equal(a, b *Template) bool {
	return a == b || a.Digest == b.Digest && a.ID == b.ID && a.Origin == b.Origin && a.Unit == b.Unit && a.Assumed == b.Assumed
}

// Same implements told.
func (templates) Same(a, b *Template) bool { return a.Digest == b.Digest }

func (templates) Load(s *Snapshot) ordered.Map[*Template]       { return s.Templates }
func (templates) Store(s *Snapshot, all ordered.Map[*Template]) { s.Templates = all }

// setDefaults sets the defaults of Karmada's API server that later rules rely
// on (decision 25), and returns the fields of the spec that had none.
func setDefaults(gk schema.GroupKind, apiVersion string, object map[string]any) (unset []string) {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return nil
	}

	switch gk {
	case deployment, replicaSet, statefulSet:
		if spec["replicas"] == nil {
			unset = []string{"replicas"}
		}
	case Job:
		if spec["parallelism"] == nil && spec["completions"] == nil {
			unset = []string{"completions"}
		}
		if spec["parallelism"] == nil {
			unset = append(unset, "parallelism")
		}
	default:
		if field := interpret.KindOf(gk, apiVersion).ReplicaField(); field != "" && spec[field] == nil {
			unset = []string{field}
		}
	}

	for _, field := range unset {
		spec[field] = int64(1)
	}
	return unset
}

// withoutBookkeeping is obj as decision 1 compares it: a change of Karmada's or
// our own labels and annotations is not an update of a template.
func withoutBookkeeping(obj map[string]any) map[string]any {
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		return obj
	}

	meta, obj = maps.Clone(meta), maps.Clone(obj)
	obj["metadata"] = meta

	for _, field := range []string{"labels", "annotations"} {
		object.RemoveKeys(obj, field, object.IsBookkeeping)
	}

	return obj
}

// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldManager is Kubernetes' own: it merges an apply, and keeps
// managedFields for every writer. Those of the built-in kinds are shared.
func (k *kind) fieldManager(subresource string) (*managedfields.FieldManager, error) {
	if k.typed == nil {
		return k.newFieldManager(subresource)
	}
	key := managerKey{k.GroupVersionKind, subresource}
	if known, ok := managers.Load(key); ok {
		return known.(*managedfields.FieldManager), nil
	}
	made, err := k.newFieldManager(subresource)
	if err == nil {
		managers.Store(key, made)
	}
	return made, err
}

type managerKey struct {
	schema.GroupVersionKind
	subresource string
}

// managers is a cache: what is in it follows from its key.
var managers sync.Map

func (k *kind) newFieldManager(subresource string) (*managedfields.FieldManager, error) {
	make := managedfields.NewDefaultFieldManager
	if k.typed == nil {
		make = managedfields.NewDefaultCRDFieldManager
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if k.status {
		// A writer does not own what its write cannot set.
		fields := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		if subresource == "status" {
			fields = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		}
		for _, v := range k.versions {
			gv := schema.GroupVersion{Group: k.Group, Version: v}
			reset[fieldpath.APIVersion(gv.String())] = fieldpath.NewExcludeSetFilter(fields)
		}
	}
	gv := k.GroupVersion()
	return make(k.converter, asIs{}, asIs{}, asIs{}, k.GroupVersionKind, gv, subresource, reset)
}

// asIs is what a real server has conversion, defaulting and construction for.
// Objects are kept as they are, so another version is another apiVersion.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error { return nil }

func (asIs) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if gv, isGV := target.(schema.GroupVersion); isGV && gv.Group == gvk.Group {
		to, ok = gv.WithKind(gvk.Kind), true
	}
	u, isUnstructured := in.(*unstructured.Unstructured)
	if !ok || !isUnstructured || to == gvk {
		return in, nil
	}
	content := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		content[key] = value
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(to)
	return out, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

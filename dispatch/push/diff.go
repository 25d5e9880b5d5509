// SPDX-License-Identifier: Apache-2.0

package push

import (
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fairlead/fairlead/object"
)

// Difference is one field that an object has otherwise than another.
type Difference struct {
	Path          string
	Before, After any // nil where the field is not set
	// Redacted is set for what a Secret holds: that it differs is all that is
	// told, and the values are nil.
	Redacted bool
}

// Drift are the fields that a manifest sets and a live object has otherwise,
// Before being live. What others set is theirs, and what a server makes of a
// value without changing its meaning is no difference.
func Drift(live, manifest map[string]any) []Difference {
	if object.IsEncrypted(manifest) && live != nil && !object.IsEncrypted(live) {
		// The cluster's own tool has decrypted it, and we cannot.
		manifest = map[string]any{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": manifest["metadata"]}
	}
	return compare(live, manifest, false)
}

// Changes are all the fields in which two manifests of an object differ; nil is
// no object.
func Changes(before, after map[string]any) []Difference {
	return compare(before, after, true)
}

func compare(before, after map[string]any, both bool) []Difference {
	b, a := newFields(before), newFields(after)
	paths := a.set
	if both {
		paths = a.set.Union(b.set)
	}
	var found []Difference
	paths.Leaves().Iterate(func(path fieldpath.Path) {
		if ignored(path) {
			return
		}
		path = path.Copy()
		if d, differs := difference(b, a, path, both); differs {
			found = append(found, d)
		}
	})
	sort.SliceStable(found, func(i, j int) bool { return found[i].Path < found[j].Path })
	return slices.CompactFunc(found, func(x, y Difference) bool { return x.Path == y.Path })
}

func difference(b, a *fields, path fieldpath.Path, both bool) (Difference, bool) {
	d := Difference{Path: spell(path)}
	was, had := b.at(path)
	is, has := a.at(path)
	switch {
	case had == unset && has != kept || has == unset && had != kept:
		return d, false
	case had != unset && has != unset && (equal(was, is) || !both && covers(is, was)):
		return d, false
	}
	d.Before, d.After = was, is
	if (a.secret || b.secret) && holdsValues(path) {
		d.Before, d.After, d.Redacted = nil, nil, true
	}
	return d, true
}

// holdsValues reports whether a field of a Secret holds its values. kubectl leaves a
// whole manifest in an annotation, and other tools do alike. A field that nobody knows
// may be a value that is indented wrongly.
func holdsValues(path fieldpath.Path) bool {
	switch *path[0].FieldName {
	case "type", "immutable":
		return false
	case "metadata":
		return len(path) > 1 && path[1].FieldName != nil && *path[1].FieldName == "annotations"
	}
	return true
}

// ignored are our own marks, and what names the object.
func ignored(path fieldpath.Path) bool {
	if path[0].FieldName == nil {
		return true
	}
	switch *path[0].FieldName {
	case "apiVersion", "kind", "status":
		return true
	case "metadata":
		if len(path) < 2 || path[1].FieldName == nil {
			return false
		}
		switch *path[1].FieldName {
		case "name", "namespace":
			return true
		case "labels", "annotations":
			return len(path) > 2 && path[2].FieldName != nil && object.IsOurs(*path[2].FieldName)
		}
	}
	return false
}

// fields are what an object sets, by the schema of its kind.
type fields struct {
	object, canonical map[string]any
	set               *fieldpath.Set
	secret            bool
}

// schemas of the kinds of Kubernetes: which lists have keys, and which. Other
// kinds are taken as they are: a list is one value.
var schemas = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

func newFields(manifest map[string]any) *fields {
	f := &fields{set: fieldpath.NewSet()}
	if manifest == nil {
		return f
	}
	u := &unstructured.Unstructured{Object: manifest}
	gvk := u.GroupVersionKind()
	if f.secret = gvk.Group == "" && gvk.Kind == "Secret"; f.secret {
		manifest = object.Stored(manifest)
		u.Object = manifest
	}
	f.object, f.canonical = manifest, canonical(u)
	var v *typed.TypedValue
	var err error
	if scheme.Scheme.Recognizes(gvk) {
		v, err = schemas().ObjectToTyped(u, typed.AllowDuplicates)
	}
	if v == nil || err != nil {
		v, err = managedfields.NewDeducedTypeConverter().ObjectToTyped(u)
	}
	if err != nil {
		return f
	}
	if set, err := v.ToFieldSet(); err == nil {
		f.set = set
	}
	return f
}

// canonical is an object of a kind of Kubernetes as a server would write it: an
// amount of 1000m is one of 1.
func canonical(u *unstructured.Unstructured) map[string]any {
	known, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, known) != nil {
		return u.Object
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(known)
	if err != nil {
		return u.Object
	}
	return object
}

// presence is whether an object has a value.
type presence int

const (
	unset presence = iota
	// implied is a value that a server leaves out, because its absence says
	// the same.
	implied
	kept
)

// at is the value at a path, as a server would write it.
func (f *fields) at(path fieldpath.Path) (any, presence) {
	if v, ok := lookUp(f.canonical, path); ok && v != nil {
		if list, ok := v.([]any); ok && len(list) == 0 {
			return v, implied
		}
		return v, kept
	}
	if v, ok := lookUp(f.object, path); ok && v != nil {
		return v, implied
	}
	return nil, unset
}

func lookUp(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			m, _ := v.(map[string]any)
			next, ok := m[*e.FieldName]
			if !ok {
				return nil, false
			}
			v = next
		default:
			list, _ := v.([]any)
			i := slices.IndexFunc(list, func(item any) bool { return isItem(item, e) })
			if e.Index != nil {
				i = *e.Index
			}
			if i < 0 || i >= len(list) {
				return nil, false
			}
			v = list[i]
		}
	}
	return v, true
}

// isItem reports whether an item of a list is the one that an element of a path
// names: by its value, or by its keys. A key that it does not set has its
// default.
func isItem(item any, e fieldpath.PathElement) bool {
	if e.Value != nil {
		return equal(item, (*e.Value).Unstructured())
	}
	m, ok := item.(map[string]any)
	if !ok || e.Key == nil {
		return false
	}
	for _, key := range *e.Key {
		if has, set := m[key.Name]; set && !equal(has, key.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// equal reports whether two values say the same. JSON has two kinds of whole
// numbers.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
}

// covers reports whether a live value has all that is wanted of it. A server adds
// fields to the items of a list, but no items.
func covers(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		m, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for key, v := range want {
			if had, set := m[key]; v != nil && (!set || !covers(v, had)) {
				return false
			}
		}
		return true
	case []any:
		list, ok := have.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !covers(want[i], list[i]) {
				return false
			}
		}
		return true
	}
	return equal(want, have)
}

// spell writes a path as people do: spec.containers[name=web].image.
func spell(path fieldpath.Path) string {
	var b strings.Builder
	for i, e := range path {
		switch {
		case e.FieldName != nil && strings.ContainsAny(*e.FieldName, "./[] "):
			b.WriteString("[" + *e.FieldName + "]")
		case e.FieldName != nil:
			if i > 0 {
				b.WriteString(".")
			}
			b.WriteString(*e.FieldName)
		case e.Key != nil:
			var keys []string
			for _, key := range *e.Key {
				keys = append(keys, key.Name+"="+plain(key.Value))
			}
			b.WriteString("[" + strings.Join(keys, ",") + "]")
		case e.Value != nil:
			b.WriteString("[=" + plain(*e.Value) + "]")
		case e.Index != nil:
			b.WriteString("[" + strconv.Itoa(*e.Index) + "]")
		}
	}
	return b.String()
}

func plain(v value.Value) string {
	if v.IsString() {
		return v.AsString()
	}
	return value.ToString(v)
}

// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

// validate holds names to their rules, and workloads to the two that people
// meet: a selector must match, and does not change.
func validate(k *kind, now, was *unstructured.Unstructured, exists bool) error {
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	switch name := now.GetName(); {
	case name == "":
		errs = append(errs, field.Required(meta.Child("name"), "name or generateName is required"))
	case k.Group == "rbac.authorization.k8s.io":
		for _, message := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(meta.Child("name"), name, message))
		}
	case k.Kind == "Service" && k.Group == "":
		for _, message := range validation.NameIsDNS1035Label(name, false) {
			errs = append(errs, field.Invalid(meta.Child("name"), name, message))
		}
	default:
		for _, message := range validation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(meta.Child("name"), name, message))
		}
	}
	if k.Group == "apps" && k.Kind != "ControllerRevision" {
		errs = append(errs, validateSelector(now, was, exists)...)
	}
	if k.Group == "" && (k.Kind == "ConfigMap" || k.Kind == "Secret") && was.Object["immutable"] == true {
		for _, name := range []string{"data", "binaryData", "immutable"} {
			if !reflect.DeepEqual(now.Object[name], was.Object[name]) {
				errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.GroupVersionKind.GroupKind(), now.GetName(), errs)
}

func validateSelector(now, was *unstructured.Unstructured, exists bool) field.ErrorList {
	spec := field.NewPath("spec")
	selector, _, _ := unstructured.NestedMap(now.Object, "spec", "selector")
	match, _, _ := unstructured.NestedStringMap(now.Object, "spec", "selector", "matchLabels")
	labels, _, _ := unstructured.NestedStringMap(now.Object, "spec", "template", "metadata", "labels")
	var errs field.ErrorList
	if len(selector) == 0 {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	}
	for key, value := range match {
		if labels[key] != value {
			errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), labels, "`selector` does not match template `labels`"))
			break
		}
	}
	if exists {
		before, _, _ := unstructured.NestedMap(was.Object, "spec", "selector")
		if !reflect.DeepEqual(selector, before) {
			errs = append(errs, field.Invalid(spec.Child("selector"), selector, "field is immutable"))
		}
	}
	return errs
}

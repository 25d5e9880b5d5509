// SPDX-License-Identifier: Apache-2.0

package object

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StripServerFields removes, in place, the fields that only a server writes and
// those that make no sense in another cluster (digest §5.6).
func StripServerFields(object map[string]any) {
	delete(object, "status")
	meta, _ := object["metadata"].(map[string]any)
	for _, field := range []string{
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation",
		"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
	} {
		delete(meta, field)
	}

	for _, field := range []string{"labels", "annotations"} {
		if m, ok := meta[field].(map[string]any); ok && len(m) == 0 {
			delete(meta, field)
		}
	}

	stripKind(object)
}

// NotApplied returns the fields of a template that somebody means to have an effect and
// that StripServerFields removes, with why; none for most.
func NotApplied(object map[string]any) (fields []Unapplied) {
	meta, _ := object["metadata"].(map[string]any)
	if list, _ := meta["finalizers"].([]any); len(list) > 0 {
		fields = append(fields, Unapplied{"metadata.finalizers", "the controller that takes a finalizer off sets it, and without one the object could never be deleted"})
	}
	if list, _ := meta["ownerReferences"].([]any); len(list) > 0 {
		fields = append(fields, Unapplied{"metadata.ownerReferences", "they name a UID, which differs on every cluster"})
	}
	if spec, _ := object["spec"].(map[string]any); object["kind"] == "Job" && spec["ttlSecondsAfterFinished"] != nil {
		fields = append(fields, Unapplied{"spec.ttlSecondsAfterFinished", "a finished Job stays until its template is removed, so that it counts as finished and is not run again"})
	}
	return fields
}

// Unapplied is a field that is in git and on no cluster.
type Unapplied struct{ Path, Why string }

// stripKind removes the fields that one cluster's controllers filled in.
func stripKind(object map[string]any) {
	switch object["kind"] {
	case "Deployment":
		RemoveKeys(object, "annotations", func(key string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/revision") })
	case "Job":
		unstructured.RemoveNestedField(object, "spec", "ttlSecondsAfterFinished")
		if manual, _, _ := unstructured.NestedBool(object, "spec", "manualSelector"); manual {
			return
		}
		unstructured.RemoveNestedField(object, "spec", "selector")
		for _, label := range jobLabels {
			unstructured.RemoveNestedField(object, "spec", "template", "metadata", "labels", label)
		}
	case "Service":
		if ip, _, _ := unstructured.NestedString(object, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(object, "spec", "clusterIP")
			unstructured.RemoveNestedField(object, "spec", "clusterIPs")
		}
	case "Secret":
		if object["type"] == "kubernetes.io/service-account-token" {
			delete(object, "data")
			unstructured.RemoveNestedField(object, "metadata", "annotations", "kubernetes.io/service-account.uid")
		}
	case "PersistentVolumeClaim":
		unstructured.RemoveNestedField(object, "metadata", "annotations", "volume.kubernetes.io/selected-node")
	}
}

// RemoveKeys removes keys from metadata.labels or metadata.annotations. It
// edits a copy of that map, and removes the map if it becomes empty.
func RemoveKeys(object map[string]any, field string, remove func(string) bool) {
	meta, _ := object["metadata"].(map[string]any)
	m, ok := meta[field].(map[string]any)
	if !ok {
		return
	}

	m = maps.Clone(m)
	maps.DeleteFunc(m, func(key string, _ any) bool { return remove(key) })

	if len(m) == 0 {
		delete(meta, field)
		return
	}

	meta[field] = m
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewTemplate makes a template of a decoded document, which it takes over:
// the caller must not use object afterwards. A namespaced kind that names no
// namespace is in "default" (fold rule 8).
func NewTemplate(object map[string]any, scope Scope, origin Origin, unit string) (*Template, []Problem) {
	c := &check{origin: origin}
	u := &unstructured.Unstructured{Object: object}
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

	namespaced, known := scope(gv.Group, u.GetKind())
	switch {
	case known && !namespaced && u.GetNamespace() != "":
		unstructured.RemoveNestedField(object, "metadata", "namespace")
	case known && namespaced && u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
	}
	id := ID{Group: gv.Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	strip(object)
	setDefaults(id.GroupKind(), object)
	return &Template{
		ID:         id,
		APIVersion: u.GetAPIVersion(),
		Labels:     u.GetLabels(),
		Object:     object,
		Digest:     digestJSON(object),
		Update:     digestJSON(withoutBookkeeping(object)),
		Origin:     origin,
		Unit:       unit,
		asks:       newAsks(id, object),
	}, nil
}

// strip removes what only a server writes, and what cannot hold in another
// cluster (digest §5.6).
func strip(object map[string]any) {
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

// stripKind removes the fields that one cluster's controllers have filled in.
func stripKind(object map[string]any) {
	switch object["kind"] {
	case "Deployment":
		removeKeys(object, "annotations", func(key string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/revision") })
	case "Job":
		unstructured.RemoveNestedField(object, "spec", "ttlSecondsAfterFinished")
		if manual, _, _ := unstructured.NestedBool(object, "spec", "manualSelector"); manual {
			return
		}
		unstructured.RemoveNestedField(object, "spec", "selector")
		for _, label := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
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

// setDefaults fills in what Karmada gets from its API server and the rules
// below rely on (decision 25).
func setDefaults(gk schema.GroupKind, object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	switch gk {
	case deployment, replicaSet, statefulSet:
		if spec["replicas"] == nil {
			spec["replicas"] = int64(1)
		}
	case job:
		if spec["parallelism"] == nil && spec["completions"] == nil {
			spec["completions"] = int64(1)
		}
		if spec["parallelism"] == nil {
			spec["parallelism"] = int64(1)
		}
	}
}

// withoutBookkeeping is object as decision 1 compares it: labels and
// annotations of Karmada's and ours are no update of a template.
func withoutBookkeeping(object map[string]any) map[string]any {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	meta, object = maps.Clone(meta), maps.Clone(object)
	object["metadata"] = meta
	for _, field := range []string{"labels", "annotations"} {
		removeKeys(object, field, isBookkeeping)
	}
	return object
}

// isBookkeeping is decision 1's rule: Karmada's keys are those that hold
// ".karmada.io" anywhere, as Karmada itself tests it.
func isBookkeeping(key string) bool {
	return strings.Contains(key, ".karmada.io") || isOurs(key)
}

// isOurs is whether a label or annotation is in the fairlead.dev domain.
func isOurs(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "fairlead.dev" || strings.HasSuffix(domain, ".fairlead.dev")
}

// removeKeys removes keys from metadata.labels or metadata.annotations, on a
// copy of that map, and the map itself when nothing is left of it.
func removeKeys(object map[string]any, field string, remove func(string) bool) {
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

// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TemplateOf turns a live object into a manifest as an author would have
// written it: without the fields that servers and controllers fill in, and
// without the marks of the tool that applied it. Applying it to the object
// again changes nothing in its spec: the missing fields are not owned by a
// manager whose fields an adoption takes over, or the server keeps them, or
// they cannot be changed.
func TemplateOf(live map[string]any) map[string]any {
	template := runtime.DeepCopyJSON(live)
	delete(template, "status")
	dropNullTimes(template)
	u := &unstructured.Unstructured{Object: template}
	meta := map[string]any{"name": u.GetName()}
	if namespace := u.GetNamespace(); namespace != "" {
		meta["namespace"] = namespace
	}

	for _, field := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		marks, _, _ := unstructured.NestedMap(template, "metadata", field)
		for key, value := range marks {
			if !filledIn(u.GetKind(), key) {
				kept[key] = value
			}
		}

		if len(kept) > 0 {
			meta[field] = kept
		}
	}

	template["metadata"] = meta
	dropKind(template, written(live))
	return template
}

// dropNullTimes removes the creationTimestamp: null that servers add to
// templates inside an object, and metadata that becomes empty.
func dropNullTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok {
			if at, there := meta["creationTimestamp"]; there && at == nil {
				delete(meta, "creationTimestamp")
			}
			if len(meta) == 0 && v["spec"] != nil {
				delete(v, "metadata")
			}
		}
		for _, child := range v {
			dropNullTimes(child)
		}
	case []any:
		for _, child := range v {
			dropNullTimes(child)
		}
	}
}

// filledIn reports whether a label or annotation is bookkeeping: of kubectl, a
// controller, Karmada, or ours.
func filledIn(kind, key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch key {
	case "resourcetemplate.karmada.io/retain-replicas", "resourcetemplate.karmada.io/deletion-protected":
		return false // these are requests
	case "kubectl.kubernetes.io/last-applied-configuration", "deprecated.daemonset.template.generation",
		"control-plane.alpha.kubernetes.io/leader", "endpoints.kubernetes.io/last-change-trigger-time":
		return true
	}

	switch kind {
	case "Deployment", "ReplicaSet":
		if domain == "deployment.kubernetes.io" {
			return true
		}
	case "Job":
		if slices.Contains(jobLabels, key) || key == "batch.kubernetes.io/job-tracking" {
			return true
		}
	case "Namespace":
		if key == "kubernetes.io/metadata.name" {
			return true
		}
	case "PersistentVolume", "PersistentVolumeClaim":
		switch key {
		case "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by",
			"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node":
			return true
		}
	}

	return IsOurs(key) || domain == "karmada.io" || strings.HasSuffix(domain, ".karmada.io")
}

// jobLabels are added to a Job and its pods by the server.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// dropKind removes the fields of a kind that the cluster filled in. A field
// that can also be requested stays if someone requested it.
func dropKind(o map[string]any, asked *fieldpath.Set) {
	drop := func(fields ...string) { unstructured.RemoveNestedField(o, fields...) }
	unlessAsked := func(fields ...string) {
		path := fieldpath.Path{}
		for _, field := range fields {
			path = append(path, fieldpath.PathElement{FieldName: &field})
		}
		if !asked.Has(path) {
			drop(fields...)
		}
	}

	gvk := (&unstructured.Unstructured{Object: o}).GroupVersionKind()
	switch gvk.GroupKind().String() {
	case "Service":
		if ip, _, _ := unstructured.NestedString(o, "spec", "clusterIP"); ip != "None" {
			drop("spec", "clusterIP")
			drop("spec", "clusterIPs")
		}
		unlessAsked("spec", "healthCheckNodePort")
		dropNodePorts(o, asked)
	case "Job.batch":
		if manual, _, _ := unstructured.NestedBool(o, "spec", "manualSelector"); manual {
			return
		}
		drop("spec", "selector")
		for _, label := range jobLabels {
			drop("spec", "template", "metadata", "labels", label)
		}
		dropEmpty(o, "spec", "template", "metadata", "labels")
		dropEmpty(o, "spec", "template", "metadata")
	case "PersistentVolumeClaim":
		unlessAsked("spec", "volumeName")
	case "PersistentVolume":
		if !asked.Has(fieldpath.MakePathOrDie("spec", "claimRef", "name")) {
			drop("spec", "claimRef")
		}
	case "StatefulSet.apps":
		claims, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "volumeClaimTemplates")
		for _, claim := range items(claims) {
			delete(claim, "status")
		}
	case "ServiceAccount":
		name, _, _ := unstructured.NestedString(o, "metadata", "name")
		for _, field := range []string{"secrets", "imagePullSecrets"} {
			dropItems(o, field, func(secret map[string]any) bool {
				called, _ := secret["name"].(string)
				return strings.HasPrefix(called, name+"-token-") || strings.HasPrefix(called, name+"-dockercfg-")
			})
		}
	case "Pod":
		unlessAsked("spec", "nodeName")
		dropTokens(o)
	case "Namespace":
		drop("spec") // the finalizers
	}
}

func dropEmpty(o map[string]any, fields ...string) {
	if m, ok, _ := unstructured.NestedMap(o, fields...); ok && len(m) == 0 {
		unstructured.RemoveNestedField(o, fields...)
	}
}

// dropNodePorts removes allocated ports.
func dropNodePorts(service map[string]any, asked *fieldpath.Set) {
	ports, _, _ := unstructured.NestedFieldNoCopy(service, "spec", "ports")
	for _, port := range items(ports) {
		number, _ := port["port"].(int64)
		protocol, _ := port["protocol"].(string)
		if !asked.Has(fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", number, "protocol", protocol), "nodePort")) {
			delete(port, "nodePort")
		}
	}
}

// tokenVolume is the name prefix of the volume with a pod's own token,
// tokenPath its mount path.
const (
	tokenVolume = "kube-api-access-"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// dropTokens removes what every cluster injects into each pod.
func dropTokens(pod map[string]any) {
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return
	}

	dropItems(spec, "volumes", func(volume map[string]any) bool {
		name, _ := volume["name"].(string)
		return strings.HasPrefix(name, tokenVolume) && volume["projected"] != nil
	})

	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, container := range items(spec[field]) {
			dropItems(container, "volumeMounts", func(mount map[string]any) bool {
				name, _ := mount["name"].(string)
				return strings.HasPrefix(name, tokenVolume) && mount["mountPath"] == tokenPath
			})
		}
	}
}

// dropItems removes items of a list, and the list if it becomes empty.
func dropItems(m map[string]any, field string, drop func(map[string]any) bool) {
	list, ok := m[field].([]any)
	if !ok {
		return
	}

	list = slices.DeleteFunc(list, func(item any) bool {
		o, ok := item.(map[string]any)
		return ok && drop(o)
	})
	if m[field] = list; len(list) == 0 {
		delete(m, field)
	}
}

// items are the objects of a list.
func items(list any) (all []map[string]any) {
	l, _ := list.([]any)
	for _, item := range l {
		if o, ok := item.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

// written are the fields that a client from outside the cluster wrote, which an
// adoption transfers to us.
func written(live map[string]any) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, m := range (&unstructured.Unstructured{Object: live}).GetManagedFields() {
		applied := m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == ""
		var fields fieldpath.Set
		if m.FieldsV1 == nil || !IsClientSide(m) && !applied || fields.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		all = all.Union(&fields)
	}

	return all
}

// ControllerOf names the controller that owns a live object and would recreate
// it; "" without one.
func ControllerOf(live map[string]any) string {
	owner := metav1.GetControllerOfNoCopy(&unstructured.Unstructured{Object: live})
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + owner.Name
}

// ScalerOf names the controller that sets the replicas of a live object. It is
// "" without one, or if a label of the object already leaves replicas alone.
func ScalerOf(live map[string]any) string {
	u := &unstructured.Unstructured{Object: live}
	if u.GetLabels()["resourcetemplate.karmada.io/retain-replicas"] == "true" {
		return ""
	}

	for _, m := range u.GetManagedFields() {
		var fields fieldpath.Set
		if m.Subresource != "scale" || !IsController(m.Manager) || m.FieldsV1 == nil || fields.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		if fields.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
			return m.Manager
		}
	}

	return ""
}

// Keepers names the other tools that manage a live object, each with the mark
// that shows it.
func Keepers(live map[string]any) (keepers []string) {
	u := &unstructured.Unstructured{Object: live}
	return KeepersOf(u.GetLabels(), u.GetAnnotations())
}

// KeepersOf is Keepers of an object with these labels and annotations.
func KeepersOf(labels, annotations map[string]string) (keepers []string) {
	for _, k := range []struct {
		name  string
		marks map[string]string
		key   string
	}{
		{"Karmada", labels, "karmada.io/managed"},
		{"Helm", annotations, "meta.helm.sh/release-name"},
		{"Flux", labels, "kustomize.toolkit.fluxcd.io/name"},
		{"Flux", labels, "helm.toolkit.fluxcd.io/name"},
		{"Argo CD", annotations, "argocd.argoproj.io/tracking-id"},
		{"Argo CD", labels, "argocd.argoproj.io/instance"},
	} {
		if k.marks[k.key] != "" {
			keepers = append(keepers, k.name+" ("+k.key+")")
		}
	}

	if name := labels[LabelFleet]; IsManaged(labels) && name != "" {
		return append(keepers, fmt.Sprintf("the fairlead fleet %q (%s)", name, LabelFleet))
	}
	if IsManaged(labels) {
		return append(keepers, "another fairlead fleet ("+LabelManaged+")")
	}

	return keepers
}

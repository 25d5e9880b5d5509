// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TemplateOf is a live object as somebody would have written it: without what
// servers and controllers fill in, and without the marks of those who brought
// it there. Applied to the object again, it changes nothing of its spec: what
// is left out is not owned by those whose fields an adoption takes over, or is
// kept by the server, or was never theirs to change.
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

// dropNullTimes removes the creationTimestamp: null that servers show in the
// templates inside an object, and metadata that says nothing.
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

// filledIn is whether a label or annotation is the bookkeeping of somebody: of
// kubectl, of a controller, of Karmada, or ours.
func filledIn(kind, key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	in := func(name string) bool { return domain == name || strings.HasSuffix(domain, "."+name) }
	switch key {
	case "resourcetemplate.karmada.io/retain-replicas", "resourcetemplate.karmada.io/deletion-protected":
		return false // these ask for something
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
	return in("fairlead.dev") || in("karmada.io")
}

// jobLabels are put on a Job and its pods by the server.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// dropKind removes the fields of a kind that its cluster filled in. Those that
// may also be asked for stay where somebody did.
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
		drop("spec") // its finalizers
	}
}

func dropEmpty(o map[string]any, fields ...string) {
	if m, ok, _ := unstructured.NestedMap(o, fields...); ok && len(m) == 0 {
		unstructured.RemoveNestedField(o, fields...)
	}
}

// dropNodePorts removes the ports that were allocated.
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

// tokenVolume is how the volume of a pod's own token is called, and tokenPath
// where it is mounted.
const (
	tokenVolume = "kube-api-access-"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// dropTokens removes what every cluster gives each pod anew.
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

// dropItems removes items of a list, and the list when nothing is left of it.
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

// written are the fields that somebody outside of the cluster wrote, of which
// an adoption makes us the owner.
func written(live map[string]any) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, m := range (&unstructured.Unstructured{Object: live}).GetManagedFields() {
		applied := m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == ""
		var fields fieldpath.Set
		if m.FieldsV1 == nil || !clientSide(m) && !applied || fields.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		all = all.Union(&fields)
	}
	return all
}

// ControllerOf names the object that a live one belongs to, and that makes it
// anew; "" when it stands for itself.
func ControllerOf(live map[string]any) string {
	owner := metav1.GetControllerOfNoCopy(&unstructured.Unstructured{Object: live})
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + owner.Name
}

// ScalerOf names the controller that decides how many replicas a live object
// has; "" when none does, or when its label leaves them to it already.
func ScalerOf(live map[string]any) string {
	u := &unstructured.Unstructured{Object: live}
	if u.GetLabels()["resourcetemplate.karmada.io/retain-replicas"] == "true" {
		return ""
	}
	for _, m := range u.GetManagedFields() {
		var fields fieldpath.Set
		if m.Subresource != "scale" || !controller(m.Manager) || m.FieldsV1 == nil || fields.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		if fields.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
			return m.Manager
		}
	}
	return ""
}

// Keepers names who else keeps a live object as they want it, and by which of
// its marks that shows.
func Keepers(live map[string]any) (keepers []string) {
	u := &unstructured.Unstructured{Object: live}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
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
		{"another fleet of fairlead's", labels, LabelManaged},
	} {
		if k.marks[k.key] != "" {
			keepers = append(keepers, k.name+" ("+k.key+")")
		}
	}
	return keepers
}

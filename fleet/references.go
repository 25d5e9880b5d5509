// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
)

// Dependencies are the objects in the template's namespace that it references
// (digest §8.2), sorted. Overrides are not applied first, and the references of
// a dependency are not followed.
func Dependencies(t *Template) []object.ID {
	found := map[object.ID]bool{}
	add := func(kind, name string) {
		if name != "" {
			found[object.ID{Kind: kind, Namespace: t.Namespace, Name: name}] = true
		}
	}

	switch t.GroupKind() {
	case deployment, replicaSet, daemonSet, statefulSet, Job, cronJob, pod:
		if spec, ok := podSpec(t); ok {
			referenced(spec, add)
		}
	case serviceImport:
		add("Service", "derived-"+t.Name)
	case ingress:
		tls, _, _ := unstructured.NestedSlice(t.Object(), "spec", "tls")
		for _, item := range tls {
			m, _ := item.(map[string]any)
			name, _ := m["secretName"].(string)
			add("Secret", name)
		}
	default:
		if kind := interpret.KindOf(t.GroupKind(), t.APIVersion); kind != nil {
			for _, pod := range kind.PodTemplates(t.Object()) {
				if spec, ok := decodePod(pod, "spec"); ok {
					referenced(spec, add)
				}
			}
			kind.Names(t.Object(), add)
		}
	}

	if t.GroupKind() == statefulSet {
		templates, _, _ := unstructured.NestedSlice(t.Object(), "spec", "volumeClaimTemplates")
		for _, item := range templates {
			m, _ := item.(map[string]any)
			name, _, _ := unstructured.NestedString(m, "metadata", "name")
			delete(found, object.ID{Kind: "PersistentVolumeClaim", Namespace: t.Namespace, Name: name})
		}
	}

	return object.SortedIDs(found)
}

var (
	daemonSet     = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	cronJob       = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	serviceImport = schema.GroupKind{Group: "multicluster.x-k8s.io", Kind: "ServiceImport"}

	ingress = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
)

// HasDependencies reports whether objects of a kind can reference others.
func HasDependencies(gk schema.GroupKind) bool {
	switch gk {
	case deployment, replicaSet, daemonSet, statefulSet, Job, cronJob, pod, ingress, serviceImport:
		return true
	}
	return interpret.KindRequires(gk)
}

func podSpec(t *Template) (*corev1.PodSpec, bool) {
	path := []string{"spec", "template", "spec"}
	switch t.GroupKind() {
	case pod:
		path = []string{"spec"}
	case cronJob:
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}

	return decodePod(t.Object(), path...)
}

func decodePod(object map[string]any, path ...string) (*corev1.PodSpec, bool) {
	raw, ok, _ := unstructured.NestedMap(object, path...)
	if !ok {
		return nil, false
	}

	spec := &corev1.PodSpec{}
	// Members will report what is wrong with a pod that cannot be decoded.
	return spec, !hasUnusableQuantity(raw) && runtime.DefaultUnstructuredConverter.FromUnstructured(raw, spec) == nil
}

// referenced calls add for each object that a pod needs in its namespace.
func referenced(spec *corev1.PodSpec, add func(kind, name string)) {
	if spec.ServiceAccountName != "default" {
		add("ServiceAccount", spec.ServiceAccountName)
	}

	for _, s := range spec.ImagePullSecrets {
		add("Secret", s.Name)
	}

	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			referencedByContainer(list[i].Env, list[i].EnvFrom, add)
		}
	}

	for i := range spec.EphemeralContainers {
		referencedByContainer(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom, add)
	}
	for i := range spec.Volumes {
		referencedByVolume(&spec.Volumes[i].VolumeSource, add)
	}
}

func referencedByContainer(env []corev1.EnvVar, envFrom []corev1.EnvFromSource, add func(kind, name string)) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}

		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("Secret", r.Name)
		}
	}

	for _, e := range envFrom {
		if e.ConfigMapRef != nil {
			add("ConfigMap", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			add("Secret", e.SecretRef.Name)
		}
	}
}

func referencedByVolume(v *corev1.VolumeSource, add func(kind, name string)) {
	if v.ConfigMap != nil {
		add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		add("Secret", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	}

	if v.Projected != nil {
		for _, p := range v.Projected.Sources {
			if p.ConfigMap != nil {
				add("ConfigMap", p.ConfigMap.Name)
			}
			if p.Secret != nil {
				add("Secret", p.Secret.Name)
			}
		}
	}

	if v.AzureFile != nil {
		add("Secret", v.AzureFile.SecretName)
	}

	for _, r := range []*corev1.LocalObjectReference{
		csiSecret(v), flexSecret(v), cephSecret(v), rbdSecret(v), scaleIOSecret(v), iscsiSecret(v), storageOSSecret(v),
	} {
		if r != nil {
			add("Secret", r.Name)
		}
	}
}

func csiSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.CSI == nil {
		return nil
	}
	return v.CSI.NodePublishSecretRef
}

func flexSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.FlexVolume == nil {
		return nil
	}
	return v.FlexVolume.SecretRef
}

func cephSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.CephFS == nil {
		return nil
	}
	return v.CephFS.SecretRef
}

func rbdSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.RBD == nil {
		return nil
	}
	return v.RBD.SecretRef
}

func scaleIOSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.ScaleIO == nil {
		return nil
	}
	return v.ScaleIO.SecretRef
}

func iscsiSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.ISCSI == nil {
		return nil
	}
	return v.ISCSI.SecretRef
}

func storageOSSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.StorageOS == nil {
		return nil
	}
	return v.StorageOS.SecretRef
}

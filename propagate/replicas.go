// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds whose replicas fairlead knows how to read and to share.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	pod         = schema.GroupKind{Kind: "Pod"}
)

// replicas is what a template asks for (digest §3.3). A template is a
// workload when it wants replicas or says what a replica needs; others go
// whole to every cluster.
func replicas(t *Template) (wanted int64, workload bool) {
	var podPath []string
	switch t.GroupKind() {
	case deployment, replicaSet, statefulSet:
		wanted, _, _ = unstructured.NestedInt64(t.Object, "spec", "replicas")
		podPath = []string{"spec", "template", "spec"}
	case job:
		wanted, _, _ = unstructured.NestedInt64(t.Object, "spec", "parallelism")
		if completions, set, _ := unstructured.NestedInt64(t.Object, "spec", "completions"); set {
			wanted = min(wanted, completions)
		}
		podPath = []string{"spec", "template", "spec"}
	case pod:
		wanted, podPath = 1, []string{"spec"}
	default:
		return 0, false
	}
	return wanted, wanted > 0 || hasRequirements(t.Object, podPath)
}

// replicaField is where the share of a cluster is written: only over a field
// that is there (digest §5.3).
func replicaField(gk schema.GroupKind) string {
	switch gk {
	case deployment, replicaSet, statefulSet:
		return "replicas"
	case job:
		return "parallelism"
	}
	return ""
}

// hasRequirements is whether the pod asks for anything of a node.
func hasRequirements(object map[string]any, path []string) bool {
	raw, ok, _ := unstructured.NestedMap(object, path...)
	if !ok {
		return false
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec); err != nil {
		// The members will say what is wrong with it; it is a workload.
		return true
	}
	if len(spec.NodeSelector) > 0 || len(spec.Tolerations) > 0 || requiredNodeAffinity(&spec) {
		return true
	}
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for _, c := range list {
			if asks(c.Resources.Requests) || asks(c.Resources.Limits) {
				return true
			}
		}
	}
	return asks(spec.Overhead)
}

func requiredNodeAffinity(spec *corev1.PodSpec) bool {
	a := spec.Affinity
	return a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

func asks(list corev1.ResourceList) bool {
	for _, q := range list {
		if !q.IsZero() {
			return true
		}
	}
	return false
}

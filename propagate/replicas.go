// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// The kinds whose replicas fairlead knows how to read and to share.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	pod         = schema.GroupKind{Kind: "Pod"}
)

// asks is what a template asks of the clusters, read once when it is made.
type asks struct {
	replicas int64
	// requirements are those of one replica, nil when it has none; needs is
	// the part of them that is counted.
	requirements *workv1alpha2.ReplicaRequirements
	needs        *schedule.Needs
}

// wanted is how many replicas are asked for (digest §3.3). A template is a
// workload when it wants replicas or says what a replica needs; others go
// whole to every cluster.
func (a asks) wanted() (replicas int64, workload bool) {
	return a.replicas, a.replicas > 0 || a.requirements != nil
}

func newAsks(id ID, object map[string]any) asks {
	var a asks
	podPath := []string{"spec", "template", "spec"}
	switch id.GroupKind() {
	case deployment, replicaSet, statefulSet:
		a.replicas, _, _ = unstructured.NestedInt64(object, "spec", "replicas")
	case job:
		a.replicas, _, _ = unstructured.NestedInt64(object, "spec", "parallelism")
		if completions, set, _ := unstructured.NestedInt64(object, "spec", "completions"); set {
			a.replicas = min(a.replicas, completions)
		}
	case pod:
		a.replicas, podPath = 1, []string{"spec"}
	default:
		return a
	}
	if a.requirements = requirements(object, podPath); a.requirements != nil {
		a.requirements.Namespace = id.Namespace
		a.needs = schedule.NewNeeds(a.requirements.ResourceRequest)
	}
	return a
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

// requirements are what a pod asks of a cluster (digest §3.3), nil when that
// is nothing.
func requirements(object map[string]any, path []string) *workv1alpha2.ReplicaRequirements {
	field, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	raw, ok := field.(map[string]any)
	if !ok {
		return nil
	}
	var spec corev1.PodSpec
	if immense(raw) || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec) != nil {
		// The members will say what is wrong with it; it is a workload.
		return &workv1alpha2.ReplicaRequirements{}
	}
	r := &workv1alpha2.ReplicaRequirements{ResourceRequest: requests(&spec)}
	claim := workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		claim.HardNodeAffinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if claim.HardNodeAffinity != nil || len(claim.NodeSelector) > 0 || len(claim.Tolerations) > 0 {
		r.NodeClaim = &claim
	}
	if r.NodeClaim == nil && len(r.ResourceRequest) == 0 {
		return nil
	}
	r.PriorityClassName = spec.PriorityClassName
	return r
}

// requests adds up a pod as Kubernetes does: the containers run together with
// the init containers that keep running; before them each other init
// container runs with those that were started before it.
func requests(spec *corev1.PodSpec) corev1.ResourceList {
	together, starting, started := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		add(together, containerRequests(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		own := containerRequests(c)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(together, own)
			add(started, own)
			own = started
		} else {
			add(own, started)
		}
		greatest(starting, own)
	}
	greatest(together, starting)
	add(together, spec.Overhead)
	maps.DeleteFunc(together, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	return together
}

// containerRequests are a container's requests, and its limit of what it does
// not request.
func containerRequests(c *corev1.Container) corev1.ResourceList {
	all := corev1.ResourceList{}
	maps.Copy(all, c.Resources.Limits)
	maps.Copy(all, c.Resources.Requests)
	return all
}

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

func greatest(to, other corev1.ResourceList) {
	for name, q := range other {
		if had, ok := to[name]; !ok || q.Cmp(had) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}

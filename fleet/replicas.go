// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// The kinds whose replicas fairlead can read and divide.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	Job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	pod         = schema.GroupKind{Kind: "Pod"}
)

// Demand is what a template asks of clusters, read once when it is made.
type Demand struct {
	Replicas int64
	// Requirements are those of one replica, nil if it has none. Needs is the part
	// of them that counts against capacity.
	Requirements *workv1alpha2.ReplicaRequirements
	Needs        *schedule.Needs
}

// Wanted is the number of replicas that a template asks for (digest §3.3). A
// template is a workload if it wants replicas or declares what a replica needs;
// any other goes to every cluster as a whole.
func (a Demand) Wanted() (replicas int64, workload bool) {
	return a.Replicas, a.Replicas > 0 || a.Requirements != nil
}

func newDemand(id object.ID, object map[string]any) Demand {
	var a Demand
	podPath := []string{"spec", "template", "spec"}
	switch id.GroupKind() {
	case deployment, replicaSet, statefulSet:
		a.Replicas, _, _ = unstructured.NestedInt64(object, "spec", "replicas")
	case Job:
		a.Replicas, _, _ = unstructured.NestedInt64(object, "spec", "parallelism")
		if completions, set, _ := unstructured.NestedInt64(object, "spec", "completions"); set {
			if !countable(completions) {
				return Demand{}
			}
			a.Replicas = min(a.Replicas, completions)
		}
	case pod:
		a.Replicas, podPath = 1, []string{"spec"}
	default:
		return a
	}

	if !countable(a.Replicas) {
		// No API server accepts it, so it goes to every cluster as it is.
		return Demand{}
	}
	if a.Requirements = requirements(object, podPath); a.Requirements != nil {
		a.Requirements.Namespace = id.Namespace
		a.Needs = schedule.NewNeeds(a.Requirements.ResourceRequest)
	}

	return a
}

// countable reports whether a number of replicas is one that an API server can
// accept. Sums and products of such numbers stay in range.
func countable(n int64) bool { return n >= 0 && n <= math.MaxInt32 }

// ReplicaField is where a cluster's share is written, and only if the field is
// present (digest §5.3).
func ReplicaField(gk schema.GroupKind) string {
	switch gk {
	case deployment, replicaSet, statefulSet:
		return "replicas"
	case Job:
		return "parallelism"
	}
	return ""
}

// requirements are what a pod asks of a cluster (digest §3.3), nil if nothing.
func requirements(object map[string]any, path []string) *workv1alpha2.ReplicaRequirements {
	field, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	raw, ok := field.(map[string]any)
	if !ok {
		return nil
	}

	var spec corev1.PodSpec
	if hasUnusableQuantity(raw) || tooManyRequests(raw) || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec) != nil {
		// Members will report what is wrong with it; it still is a workload.
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

// maxRequests limits how many amounts are added up for the requests of a pod: each
// init container runs with all that were started before it.
const maxRequests = 1 << 20

// tooManyRequests reports whether a pod has more init containers and resources
// than can be added up. Names of resources are free, so there can be many.
func tooManyRequests(pod map[string]any) bool {
	names := map[string]bool{}
	containers := 0
	for _, field := range []string{"containers", "initContainers"} {
		list, _ := pod[field].([]any)
		containers += len(list)
		for _, item := range list {
			container, _ := item.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			for _, kind := range []string{"limits", "requests"} {
				amounts, _ := resources[kind].(map[string]any)
				for name := range amounts {
					names[name] = true
				}
			}
		}
	}

	return containers*len(names) > maxRequests
}

// requests adds up a pod as Kubernetes does: the containers run together with
// the init containers that keep running; before them, every other init
// container runs with those that were started earlier.
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

		setMax(starting, own)
	}

	setMax(together, starting)
	add(together, spec.Overhead)
	maps.DeleteFunc(together, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	return together
}

// containerRequests are a container's requests, and its limits for resources
// without a request.
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

func setMax(to, other corev1.ResourceList) {
	for name, q := range other {
		if had, ok := to[name]; !ok || q.Cmp(had) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}

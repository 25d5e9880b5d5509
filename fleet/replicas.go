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
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// The kinds of Kubernetes whose replicas fairlead can read and divide. Those of
// other projects are in package interpret.
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

func newDemand(id object.ID, apiVersion string, object map[string]any) Demand {
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
		return knownDemand(id, apiVersion, object)
	}

	if !countable(a.Replicas) {
		// No API server accepts it, so it goes to every cluster as it is.
		return Demand{}
	}
	return a.requiring(requirements(object, podPath), id.Namespace)
}

// knownDemand is the demand of a kind that Kubernetes does not serve, none if
// nothing is known of it.
func knownDemand(id object.ID, apiVersion string, object map[string]any) Demand {
	kind := interpret.KindOf(id.GroupKind(), apiVersion)
	if kind == nil {
		return Demand{}
	}
	replicas, pods, ok := kind.Replicas(object)
	if !ok || !countable(replicas) {
		return Demand{}
	}
	return Demand{Replicas: replicas}.requiring(most(pods), id.Namespace)
}

// requiring is the demand with what one replica needs.
func (a Demand) requiring(r *workv1alpha2.ReplicaRequirements, namespace string) Demand {
	if a.Requirements = r; r != nil {
		r.Namespace = namespace
		a.Needs = schedule.NewNeeds(r.ResourceRequest)
	}
	return a
}

// most are the requirements of the first of some pods, with the most processor
// time and memory that one of them needs.
func most(pods []map[string]any) *workv1alpha2.ReplicaRequirements {
	if len(pods) == 0 {
		return nil
	}

	all := requirements(pods[0], []string{"spec"})
	for _, pod := range pods[1:] {
		r := requirements(pod, []string{"spec"})
		if r == nil {
			continue
		}
		if all == nil {
			all = &workv1alpha2.ReplicaRequirements{}
		}
		if all.ResourceRequest == nil {
			all.ResourceRequest = corev1.ResourceList{}
		}

		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if q, ok := r.ResourceRequest[name]; ok {
				setMax(all.ResourceRequest, corev1.ResourceList{name: q})
			}
		}
	}
	return all
}

// countable reports whether a number of replicas is one that an API server can
// accept. Sums and products of such numbers stay in range.
func countable(n int64) bool { return n >= 0 && n <= math.MaxInt32 }

// Divides reports whether a cluster's share of the template's replicas can be
// written by the rule of its kind.
func (t *Template) Divides() bool {
	return replicaField(t.GroupKind()) != "" || interpret.KindOf(t.GroupKind(), t.APIVersion).Divides()
}

// Share is the template's object with a cluster's share of its replicas, written
// over a number that is there (digest §5.3). It shares with the template what it
// leaves as it is.
func (t *Template) Share(replicas int64) map[string]any {
	if kind := interpret.KindOf(t.GroupKind(), t.APIVersion); kind != nil {
		return maps.Clone(kind.Share(t.Object(), replicas))
	}

	object := maps.Clone(t.Object())
	spec, _ := object["spec"].(map[string]any)
	if field := replicaField(t.GroupKind()); field != "" && spec[field] != nil {
		spec = maps.Clone(spec)
		spec[field] = replicas
		object["spec"] = spec
	}
	return object
}

// CanScale reports whether objects of a kind have their number of replicas where an
// autoscaler of Kubernetes writes it.
func CanScale(gk schema.GroupKind) bool {
	return replicaField(gk) == "replicas" || interpret.KindScales(gk)
}

// replicaField is where a kind of Kubernetes has its number of replicas.
func replicaField(gk schema.GroupKind) string {
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

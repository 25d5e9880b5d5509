// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Healthy is whether an observed object of a kind of Kubernetes does what it
// is for. A kind without a rule is healthy once it is observed.
func Healthy(object map[string]any) bool {
	o := &unstructured.Unstructured{Object: object}
	rule, ok := health[o.GroupVersionKind().GroupKind()]
	return !ok || rule(observed{o})
}

var health = map[schema.GroupKind]func(observed) bool{
	{Group: "apps", Kind: "Deployment"}: func(o observed) bool {
		return o.current() && o.number("status", "updatedReplicas") >= o.number("spec", "replicas") &&
			o.number("status", "availableReplicas") >= o.number("status", "updatedReplicas")
	},
	{Group: "apps", Kind: "StatefulSet"}: func(o observed) bool {
		return o.current() && o.number("status", "updatedReplicas") >= o.number("spec", "replicas") &&
			o.number("status", "availableReplicas") >= o.number("status", "updatedReplicas")
	},
	{Group: "apps", Kind: "ReplicaSet"}: func(o observed) bool {
		return o.current() && o.number("status", "availableReplicas") >= o.number("spec", "replicas")
	},
	{Group: "apps", Kind: "DaemonSet"}: func(o observed) bool {
		return o.current() && o.number("status", "updatedNumberScheduled") >= o.number("status", "desiredNumberScheduled") &&
			o.number("status", "numberAvailable") >= o.number("status", "updatedNumberScheduled")
	},
	{Kind: "Service"}: func(o observed) bool {
		return o.text("spec", "type") != "LoadBalancer" || o.reachable()
	},
	{Group: "networking.k8s.io", Kind: "Ingress"}: observed.reachable,
	{Kind: "PersistentVolumeClaim"}:               func(o observed) bool { return o.text("status", "phase") == "Bound" },
	{Kind: "Pod"}: func(o observed) bool {
		phase := o.text("status", "phase")
		return phase == "Succeeded" || phase == "Running" && o.condition("Ready") == "True"
	},
	{Group: "policy", Kind: "PodDisruptionBudget"}: func(o observed) bool {
		return o.number("status", "currentHealthy") >= o.number("status", "desiredHealthy")
	},
}

// observed is an object as a member has it.
type observed struct{ *unstructured.Unstructured }

// current is whether its controller has seen what it says now.
func (o observed) current() bool {
	return o.number("status", "observedGeneration") == o.GetGeneration()
}

// number is the number at a path, 0 when there is none.
func (o observed) number(path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, path...)
	return n
}

func (o observed) text(path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// reachable is whether a load balancer gave it a name or an address.
func (o observed) reachable() bool {
	for _, at := range o.items("status", "loadBalancer", "ingress") {
		if at["hostname"] != nil && at["hostname"] != "" || at["ip"] != nil && at["ip"] != "" {
			return true
		}
	}
	return false
}

func (o observed) condition(name string) any {
	for _, c := range o.items("status", "conditions") {
		if c["type"] == name {
			return c["status"]
		}
	}
	return nil
}

func (o observed) items(path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	list, _ := value.([]any)
	var all []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

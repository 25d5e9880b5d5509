// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GenerationAnnotation on a copy is the generation of the template that it was
// made from, if templates have one.
const GenerationAnnotation = "resourcetemplate.karmada.io/generation"

// StatusOf is the part of an observed object's status to report, by the script
// of its kind, or else by the rule of a kind that is known (digest §9.1); for any
// other kind it is the whole status. It is nil without one.
func StatusOf(script Interpreter, object map[string]any) (map[string]any, error) {
	if object == nil {
		return nil, nil
	}

	if script != nil {
		status, err := script.Reflect(object)
		if len(status) == 0 {
			return nil, err
		}
		return status, nil
	}

	status, ok := object["status"].(map[string]any)
	if !ok || len(status) == 0 {
		return nil, nil
	}

	gk := groupKind(object)
	rule, known := reflected[gk]
	if k := kindOf(gk, object); k != nil && k.reports != nil {
		rule, known = *k.reports, true
	}
	if !known {
		return status, nil
	}

	if rule.applies != nil && !rule.applies(object) {
		return nil, nil
	}

	out := map[string]any{}
	for _, field := range rule.fields {
		if value, ok := status[field]; ok {
			out[field] = value
		}
	}

	if len(out) > 0 && rule.counts {
		o := unstructured.Unstructured{Object: object}
		if n := o.GetGeneration(); n != 0 {
			out["generation"] = n
		}
		if n, ok := decimal(o.GetAnnotations()[GenerationAnnotation]); ok {
			out["resourceTemplateGeneration"] = n
		}
	}

	if len(out) == 0 {
		return nil, nil
	}

	return out, nil
}

// reflection is the rule for the status of a kind.
type reflection struct {
	fields []string
	// counts reports whether its controller counts copies and says for which
	// generation: only counters of the current one mean anything.
	counts  bool
	applies func(object map[string]any) bool
}

// The built-in kinds with a rule for their status.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	daemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJob     = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	service     = schema.GroupKind{Kind: "Service"}
	ingress     = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	pod         = schema.GroupKind{Kind: "Pod"}
	volume      = schema.GroupKind{Kind: "PersistentVolume"}
	claim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	budget      = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	autoscaler  = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

// The counters that add up over clusters.
var counters = map[schema.GroupKind][]string{
	deployment:  {"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"},
	replicaSet:  {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
	statefulSet: {"replicas", "currentReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"},
	daemonSet: {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "updatedNumberScheduled",
		"numberAvailable", "numberUnavailable"},
	job:        {"active", "succeeded", "failed"},
	budget:     {"currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"},
	autoscaler: {"currentReplicas", "desiredReplicas"},
}

// Karmada omits observedGeneration for StatefulSets; then their sum would never
// be known to be about the current generation.
var reflected = map[schema.GroupKind]reflection{
	deployment:  {fields: append([]string{"observedGeneration"}, counters[deployment]...), counts: true},
	replicaSet:  {fields: append([]string{"observedGeneration"}, counters[replicaSet]...), counts: true},
	daemonSet:   {fields: append([]string{"observedGeneration"}, counters[daemonSet]...), counts: true},
	statefulSet: {fields: append([]string{"observedGeneration"}, counters[statefulSet]...), counts: true},
	job:         {fields: append([]string{"conditions", "startTime", "completionTime"}, counters[job]...)},
	service:     {fields: []string{"loadBalancer"}, applies: balancesLoad},
	ingress:     {fields: []string{"loadBalancer"}},
	budget:      {fields: append([]string{"disruptedPods"}, counters[budget]...)},
	autoscaler:  {fields: counters[autoscaler]},
}

func balancesLoad(object map[string]any) bool {
	kind, _, _ := unstructured.NestedString(object, "spec", "type")
	return kind == "LoadBalancer"
}

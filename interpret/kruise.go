// SPDX-License-Identifier: Apache-2.0

package interpret

// kruise are OpenKruise's workloads. Most are like those of Kubernetes that they
// are named after.
var kruise = []*Kind{
	{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet",
		replicas: &scale{field: "replicas", otherwise: 1},
		pods:     []string{"spec.template"},
		healthy:  rolledOut,
		reports:  &reflection{fields: append([]string{"observedGeneration", "updateRevision", "currentRevision", "labelSelector"}, cloneCounters...), counts: true},
		adds:     addition{sum: cloneCounters, last: []string{"updateRevision", "currentRevision", "labelSelector"}, generation: true}.rule(),
	},
	{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet",
		replicas: &scale{field: "replicas", otherwise: 1},
		pods:     []string{"spec.template"},
		healthy:  rolledOut,
		reports:  &reflection{fields: append([]string{"observedGeneration", "updateRevision", "currentRevision", "labelSelector"}, statefulCounters...), counts: true},
		adds:     addition{sum: statefulCounters, last: []string{"updateRevision", "currentRevision", "labelSelector"}, generation: true}.rule(),
	},
	{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet",
		pods:    []string{"spec.template"},
		healthy: scheduledEverywhere,
		reports: &reflection{fields: append([]string{"observedGeneration", "daemonSetHash"}, counters[daemonSet]...), counts: true},
		adds:    addition{sum: counters[daemonSet], last: []string{"daemonSetHash"}, generation: true}.rule(),
	},
	{
		// Its pods are in a template of the kind that it makes of them. It counts the
		// ready ones, where others count the available ones.
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "UnitedDeployment",
		replicas: &scale{field: "replicas", otherwise: 1, available: "readyReplicas"},
		pods: []string{
			"spec.template.statefulSetTemplate.spec.template", "spec.template.advancedStatefulSetTemplate.spec.template",
			"spec.template.cloneSetTemplate.spec.template", "spec.template.deploymentTemplate.spec.template", "spec.template",
		},
		healthy: func(o observed) bool { return o.rolledOut("readyReplicas") },
		reports: &reflection{fields: append([]string{"observedGeneration", "conditions"}, counters[deployment]...), counts: true},
		adds:    addition{sum: counters[deployment], conditions: conditionsByType, generation: true}.rule(),
	},
	{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "BroadcastJob",
		replicas: &scale{field: "parallelism", otherwise: 1},
		pods:     []string{"spec.template"},
		healthy:  broadcast,
		failed:   failedCondition,
		reports:  &reflection{fields: append([]string{"conditions", "startTime", "completionTime", "phase"}, broadcastCounters...)},
		adds:     addition{sum: broadcastCounters, last: []string{"phase"}, conditions: broadcastConditions}.rule(),
	},
	{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "AdvancedCronJob",
		pods: []string{"spec.template.jobTemplate.spec.template", "spec.template.broadcastJobTemplate.spec.template"},
		adds: addition{lists: []string{"active"}, last: []string{"type"}, latest: []string{"lastScheduleTime"}}.rule(),
	},
	{
		// Its spec has containers and volumes where a pod has them.
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "SidecarSet",
		pods: []string{""},
		healthy: func(o observed) bool {
			matched := o.number("status", "matchedPods")
			return o.has("status") && (matched == 0 || o.number("status", "updatedPods") == matched)
		},
		reports: &reflection{fields: sidecarCounters},
		adds:    addition{sum: sidecarCounters}.rule(),
	},
}

var (
	cloneCounters     = []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "updatedReadyReplicas", "expectedUpdatedReplicas"}
	statefulCounters  = []string{"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "updatedReadyReplicas"}
	broadcastCounters = []string{"active", "succeeded", "failed", "desired"}
	sidecarCounters   = []string{"matchedPods", "updatedPods", "readyPods"}
)

// broadcast reports whether a job has nodes to run on, runs or ran there, and
// failed on none.
func broadcast(o observed) bool {
	return o.number("status", "desired") != 0 && o.number("status", "failed") == 0 &&
		(o.number("status", "succeeded") != 0 || o.number("status", "active") != 0)
}

func broadcastConditions(a *aggregate) []any {
	conditions, _ := a.finished("Complete", "JobFailed")
	return conditions
}

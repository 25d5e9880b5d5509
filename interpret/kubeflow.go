// SPDX-License-Identifier: Apache-2.0

package interpret

// kubeflow are the training jobs and notebooks of Kubeflow. A job has groups of
// replicas with roles, which only run together: it is not divided.
var kubeflow = []*Kind{
	{
		APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob",
		pods:    []string{"spec.pytorchReplicaSpecs.*.template"},
		healthy: notFailed,
		failed:  failedCondition,
		adds:    trained,
	},
	{
		APIVersion: "kubeflow.org/v1", Kind: "TFJob",
		pods:    []string{"spec.tfReplicaSpecs.*.template"},
		healthy: notFailed,
		failed:  failedCondition,
		adds:    trained,
	},
	{
		APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob",
		pods:    []string{"spec.mpiReplicaSpecs.*.template"},
		healthy: func(o observed) bool { return len(o.items("status", "conditions")) > 0 && notFailed(o) },
		failed:  failedCondition,
		reports: &reflection{fields: []string{"replicaStatuses", "conditions", "startTime", "completionTime", "lastReconcileTime"}},
		adds: addition{
			inner: []string{"replicaStatuses"}, earliest: []string{"startTime"}, latest: []string{"completionTime", "lastReconcileTime"},
			conditions: conditionsByType, single: true,
		}.rule(),
	},
	{
		APIVersion: "kubeflow.org/v1", Kind: "Notebook",
		replicas: &scale{count: always(1)},
		pods:     []string{"spec.template"},
		healthy:  notebook,
		reports:  &reflection{fields: []string{"readyReplicas", "containerState", "conditions"}},
		adds:     addition{sum: []string{"readyReplicas"}, last: []string{"containerState"}, conditions: joinedConditions}.rule(),
	},
}

// trained adds up a training job. It is complete when all copies are.
func trained(a *aggregate) map[string]any {
	if len(a.items) == 0 {
		return a.was
	}

	times := addition{inner: []string{"replicaStatuses"}, earliest: []string{"startTime"}, latest: []string{"lastReconcileTime"}}
	conditions, all := a.finished("Succeeded", a.kind.Kind+"Failed")
	if all {
		times.latest = append(times.latest, "completionTime")
	}

	status := times.add(a)
	status["conditions"] = conditions
	return withoutEmpty(status)
}

// notebook reports whether its container runs, waits, or ended well.
func notebook(o observed) bool {
	switch {
	case o.has("status", "containerState", "running"), o.has("status", "containerState", "waiting"):
		return true
	case o.has("status", "containerState", "terminated"):
		return o.number("status", "containerState", "terminated", "exitCode") == 0 &&
			!o.in([]string{"Error", "OOMKilled", "ContainerCannotRun"}, "status", "containerState", "terminated", "reason")
	}
	return false
}

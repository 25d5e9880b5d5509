// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"cmp"
	"maps"
	"slices"
)

// ray are the clusters, jobs and services of KubeRay. A cluster is one head, and
// workers in groups.
var ray = []*Kind{
	{
		APIVersion: "ray.io/v1", Kind: "RayCluster",
		pods: []string{"spec.headGroupSpec.template", "spec.workerGroupSpecs.*.template"},
		healthy: func(o observed) bool {
			return o.is("HeadPodReady") && o.is("RayClusterProvisioned") && !o.is("RayClusterReplicaFailure")
		},
		adds: addition{
			sum:     []string{"readyWorkerReplicas", "availableWorkerReplicas", "maxWorkerReplicas", "minWorkerReplicas", "desiredWorkerReplicas"},
			amounts: []string{"desiredCPU", "desiredGPU", "desiredMemory", "desiredTPU"},
			first:   []string{"endpoints", "head", "state", "stateTransitionTimes"}, latest: []string{"lastUpdateTime"},
			conditions: joinedConditions, single: true,
		}.rule(),
	},
	{
		APIVersion: "ray.io/v1", Kind: "RayJob",
		pods: []string{"spec.rayClusterSpec.headGroupSpec.template", "spec.rayClusterSpec.workerGroupSpecs.*.template", "spec.submitterPodTemplate"},
		healthy: func(o observed) bool {
			deployment := o.text("status", "jobDeploymentStatus")
			return deployment == "Running" || deployment == "Complete" && o.text("status", "jobStatus") == "SUCCEEDED"
		},
		failed: func(o observed) string {
			if o.in([]string{"Failed", "ValidationFailed"}, "status", "jobDeploymentStatus") || o.in([]string{"FAILED", "STOPPED"}, "status", "jobStatus") {
				return "it failed"
			}
			return ""
		},
		adds: rayJobs,
	},
	{
		APIVersion: "ray.io/v1", Kind: "RayService",
		replicas: &scale{count: rayReplicas, write: shareWorkers},
		pods:     []string{"spec.rayClusterConfig.headGroupSpec.template", "spec.rayClusterConfig.workerGroupSpecs.*.template"},
		healthy:  func(o observed) bool { return o.is("Ready") },
		adds:     rayServices,
	},
}

// The states of a job on several clusters: the one that weighs most stands for all.
var (
	rayDeployments = map[string]int{
		"Initializing": 1, "Waiting": 2, "Suspending": 3, "Suspended": 3, "Retrying": 4, "Running": 5, "Complete": 6, "ValidationFailed": 7, "Failed": 8,
	}
	rayJobStates    = map[string]int{"PENDING": 1, "RUNNING": 2, "SUCCEEDED": 3, "STOPPED": 4, "FAILED": 5}
	rayApplications = map[string]int{"NOT_STARTED": 1, "DEPLOYING": 2, "DELETING": 3, "UNHEALTHY": 4, "DEPLOY_FAILED": 5}
)

func rayJobs(a *aggregate) map[string]any {
	if len(a.items) < 2 {
		return addition{single: true}.add(a)
	}

	status := map[string]any{}
	if item, ok := a.worst(rayDeployments, "jobDeploymentStatus"); ok {
		for _, field := range []string{"jobDeploymentStatus", "reason", "message"} {
			if v := item.Status[field]; v != nil {
				status[field] = v
			}
		}
	}
	if item, ok := a.worst(rayJobStates, "jobStatus"); ok && item.Status["jobStatus"] != "" {
		status["jobStatus"] = item.Status["jobStatus"]
	}
	return status
}

func rayServices(a *aggregate) map[string]any {
	if len(a.items) < 2 {
		return addition{single: true}.add(a)
	}

	status := addition{
		sum: []string{"numServeEndpoints"}, first: []string{"activeServiceStatus", "pendingServiceStatus"}, latest: []string{"lastUpdateTime"},
		conditions: joinedConditions,
	}.add(a)

	status["serviceStatus"] = "Running"
	var observed int64
	for _, item := range a.items {
		observed = max(observed, a.number(item, "observedGeneration"))
		if item.Status["serviceStatus"] == "" { // it does not run
			status["serviceStatus"] = ""
		}
	}
	if observed != 0 {
		status["observedGeneration"] = observed
	}

	if active, ok := status["activeServiceStatus"].(map[string]any); ok {
		active = maps.Clone(active)
		active["applicationStatuses"] = a.applications()
		status["activeServiceStatus"] = active
	}
	return status
}

// applications are those that the services of all clusters serve, each in the state
// of where it does worst.
func (a *aggregate) applications() map[string]any {
	all := map[string]any{}
	weights := map[string]int{}
	for _, item := range a.items {
		active := Observed{Cluster: item.Cluster, Status: a.object(item, "activeServiceStatus")}
		for name, app := range a.object(active, "applicationStatuses") {
			m, _ := app.(map[string]any)
			weight := rayApplications[textAt(m, "status")]
			if was, seen := weights[name]; !seen || weight > was {
				all[name], weights[name] = app, weight
			}
		}
	}
	return all
}

// rayReplicas are the head and all workers.
func rayReplicas(object map[string]any) (int64, bool) {
	if mapAt(object, "spec.rayClusterConfig.headGroupSpec.template") == nil {
		return 0, true
	}

	sum := int64(1)
	for _, group := range at(object, "spec.rayClusterConfig.workerGroupSpecs.*") {
		n, ok := groupReplicas(group)
		if !ok {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

// groupReplicas is the number of workers of a group.
func groupReplicas(group any) (int64, bool) {
	m, ok := group.(map[string]any)
	if !ok {
		return 0, false
	}
	n, ok := integral(m["replicas"])
	return n, ok && n >= 0 && n <= maxReplicas
}

// shareWorkers gives a service a share of its replicas. One is its head, and the
// groups keep their proportions: each gets what it has of all, rounded down, and
// what is left over goes to the first of those that lost most.
func shareWorkers(spec map[string]any, replicas int64) {
	config, _ := spec["rayClusterConfig"].(map[string]any)
	groups, _ := config["workerGroupSpecs"].([]any)
	sizes := make([]int64, len(groups))
	for i, group := range groups {
		n, ok := groupReplicas(group)
		if !ok {
			return
		}
		sizes[i] = n
	}
	if len(groups) == 0 {
		return
	}

	shared := make([]any, len(groups))
	for i, n := range proportionally(max(0, replicas-1), sizes) {
		group := maps.Clone(groups[i].(map[string]any))
		group["replicas"] = n
		shared[i] = group
	}

	config = maps.Clone(config)
	config["workerGroupSpecs"] = shared
	spec["rayClusterConfig"] = config
}

// proportionally shares n in proportion to sizes, or evenly if all are 0.
func proportionally(n int64, sizes []int64) []int64 {
	var total int64
	for _, size := range sizes {
		total += size
	}
	if total == 0 {
		even := make([]int64, len(sizes))
		for i := range even {
			even[i] = 1
		}
		return proportionally(n, even)
	}

	shares, left := make([]int64, len(sizes)), n
	losers := make([]int, len(sizes))
	for i, size := range sizes {
		shares[i], losers[i] = n*size/total, i
		left -= shares[i]
	}

	lost := func(i int) int64 { return n * sizes[i] % total }
	slices.SortStableFunc(losers, func(i, j int) int { return cmp.Compare(lost(j), lost(i)) })
	for _, i := range losers[:left] {
		shares[i]++
	}
	return shares
}

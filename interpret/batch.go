// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// batch are the jobs of Volcano, Flink and Spark. Their parts have sizes of their
// own, so none of them is divided.
var batch = []*Kind{
	{
		APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job",
		pods: []string{"spec.tasks.*.template"},
		healthy: func(o observed) bool {
			return o.in([]string{"Pending", "Running", "Restarting", "Completing", "Completed", "Aborting", "Aborted", "Terminating", "Terminated"}, "status", "state", "phase")
		},
		failed: failedIn([]string{"Failed"}, "status", "state", "phase"),
		reports: &reflection{fields: append([]string{
			"state", "version", "runningDuration", "taskStatusCount", "controlledResources", "conditions",
		}, volcanoCounters...)},
		adds: volcano,
	},
	{
		APIVersion: "flink.apache.org/v1beta1", Kind: "FlinkDeployment",
		replicas: &scale{count: flinkReplicas, needs: flinkPods},
		pods:     []string{"spec.podTemplate", "spec.jobManager.podTemplate", "spec.taskManager.podTemplate"},
		healthy:  flinkHealthy,
		reports:  &reflection{fields: flinkFields},
		adds:     lastReported,
	},
	{
		APIVersion: "sparkoperator.k8s.io/v1beta2", Kind: "SparkApplication",
		healthy: func(o observed) bool {
			return o.has("status", "applicationState", "state") && o.text("status", "applicationState", "state") != "FAILED"
		},
		failed:  failedIn([]string{"FAILED"}, "status", "applicationState", "state"),
		reports: &reflection{fields: sparkFields},
		adds:    spark,
	},
}

var volcanoCounters = []string{"minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown", "retryCount"}

func volcano(a *aggregate) map[string]any {
	if len(a.items) == 0 {
		return a.was
	}

	status := addition{
		sum: volcanoCounters, inner: []string{"taskStatusCount"}, last: []string{"state"}, lists: []string{"conditions"},
	}.add(a)

	var version int64
	var longest string
	for _, item := range a.items {
		version = max(version, a.number(item, "version"))
		if d := a.text(item, "runningDuration"); seconds(d) > seconds(longest) {
			longest = d
		}
	}
	status["version"], status["controlledResources"], status["runningDuration"] = version, a.together("controlledResources"), longest
	return withoutEmpty(status)
}

// seconds reads a duration such as 1h2m3.5s, 0 where it is none.
func seconds(duration string) (sum float64) {
	for duration != "" {
		n := strings.IndexFunc(duration, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
		if n <= 0 {
			return 0
		}
		amount, err := strconv.ParseFloat(duration[:n], 64)
		if err != nil {
			return 0
		}

		duration = duration[n:]
		unit := duration
		if n := strings.IndexAny(duration, "0123456789."); n >= 0 {
			unit = duration[:n]
		}
		duration = duration[len(unit):]
		sum += amount * map[string]float64{"h": 3600, "m": 60, "s": 1, "ms": 1e-3}[unit]
	}
	return sum
}

var flinkFields = []string{
	"clusterInfo", "error", "jobManagerDeploymentStatus", "jobStatus", "observedGeneration", "lifecycleState", "reconciliationStatus", "taskManager",
}

// lastReported is what the last cluster reports: its parts only make sense together.
func lastReported(a *aggregate) map[string]any {
	for _, item := range slices.Backward(a.items) {
		if item.Status != nil {
			return item.Status
		}
	}
	return a.was
}

// flinkHealthy reports whether its job runs or has ended, and without a job whether
// its cluster is ready. A job that does not start because of its image or its code is
// left alone: another cluster would not help.
func flinkHealthy(o observed) bool {
	switch state := o.text("status", "jobStatus", "state"); state {
	case "":
		return o.text("status", "jobManagerDeploymentStatus") == "READY" && o.text("status", "lifecycleState") == "STABLE"
	case "CREATED", "INITIALIZING", "RECONCILING":
		wrong := o.text("status", "error")
		return slices.ContainsFunc([]string{"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"}, func(cause string) bool { return strings.Contains(wrong, cause) })
	default:
		return slices.Contains([]string{"RUNNING", "FINISHED", "FAILED", "CANCELED", "SUSPENDED", "CANCELLING", "FAILING", "RESTARTING"}, state)
	}
}

// flinkReplicas are the job managers and the task managers. The number of these
// follows from the parallelism where it is not set.
func flinkReplicas(object map[string]any) (int64, bool) {
	managers, ok := numberAt(object, "spec.jobManager.replicas", 1)
	if !ok {
		return 0, false
	}

	tasks, ok := numberAt(object, "spec.taskManager.replicas", 0)
	if !ok {
		return 0, false
	}
	if mapAt(object, "spec.taskManager")["replicas"] == nil {
		tasks = flinkTaskManagers(object)
	}
	return managers + tasks, managers >= 0 && tasks >= 0 && tasks <= maxReplicas
}

func flinkTaskManagers(object map[string]any) int64 {
	parallelism, ok := numberAt(object, "spec.job.parallelism", 0)
	slots, err := strconv.ParseInt(textOf(mapAt(object, "spec.flinkConfiguration")["taskmanager.numberOfTaskSlots"]), 10, 64)
	if !ok || err != nil || slots <= 0 || parallelism <= 0 || parallelism > maxReplicas {
		return 1
	}
	return (parallelism-1)/slots + 1
}

// numberAt is the whole number at a path.
func numberAt(object map[string]any, path string, otherwise int64) (int64, bool) {
	for _, v := range at(object, path) {
		return integral(v)
	}
	return otherwise, true
}

// textOf is a number or a text as a text.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// flinkPods are what a manager of each role asks for, placed as the pod template
// for both says.
func flinkPods(object map[string]any) (pods []map[string]any) {
	common := mapAt(object, "spec.podTemplate.spec")
	for _, role := range []string{"spec.jobManager.resource", "spec.taskManager.resource"} {
		resource, requests := mapAt(object, role), map[string]any{}
		if cpu := textOf(resource["cpu"]); cpu != "" {
			requests["cpu"] = cpu
		}
		if memory := flinkMemory(textOf(resource["memory"])); memory != "" {
			requests["memory"] = memory
		}

		pod := map[string]any{"containers": []any{map[string]any{"name": "flink", "resources": map[string]any{"requests": requests}}}}
		for _, field := range []string{"nodeSelector", "tolerations", "priorityClassName"} {
			if common[field] != nil {
				pod[field] = common[field]
			}
		}
		pods = append(pods, map[string]any{"spec": pod})
	}
	return pods
}

// flinkMemory is an amount of memory as a quantity. Flink counts in bytes, and its
// m is a mebibyte where Kubernetes' is a thousandth.
func flinkMemory(text string) string {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.TrimSpace(text[len(number):])
	if n, err := strconv.ParseFloat(number, 64); err != nil || math.IsInf(n, 0) {
		return text
	}

	binary := map[string]string{
		"b": "", "bytes": "", "k": "Ki", "kb": "Ki", "kibibytes": "Ki", "m": "Mi", "mb": "Mi", "mebibytes": "Mi",
		"g": "Gi", "gb": "Gi", "gibibytes": "Gi", "t": "Ti", "tb": "Ti", "tebibytes": "Ti",
	}
	if suffix, ok := binary[strings.ToLower(unit)]; ok {
		return number + suffix
	}
	return text
}

var sparkFields = []string{
	"applicationState", "driverInfo", "executorState", "sparkApplicationId", "completionTime", "lastSubmissionAttemptTime", "submissionAttempts",
	"executionAttempts", "submissionID", "terminationTime",
}

// sparkStates are the states of an application on several clusters: the one that
// weighs most stands for all.
var sparkStates = map[string]int{
	"SUBMITTED": 1, "PENDING_RERUN": 1, "COMPLETED": 2, "SUSPENDING": 3, "SUSPENDED": 3, "RUNNING": 4, "RESUMING": 4, "SUCCEEDING": 4,
	"INVALIDATING": 5, "FAILING": 6, "FAILED": 6, "SUBMISSION_FAILED": 6,
}

func spark(a *aggregate) map[string]any {
	if len(a.items) < 2 {
		return addition{single: true}.add(a)
	}

	status := addition{sum: []string{"executionAttempts", "submissionAttempts"}, latest: []string{"lastSubmissionAttemptTime", "terminationTime"}}.add(a)
	if item, ok := a.worst(sparkStates, "applicationState", "state"); ok {
		status["applicationState"] = item.Status["applicationState"]
	}
	if executors := a.together("executorState"); len(executors) > 0 {
		status["executorState"] = executors
	}
	return status
}

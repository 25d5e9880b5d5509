// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// kindCase is everything that is known of one kind, on small objects.
type kindCase struct {
	apiVersion, kind string

	// spec wants some replicas of two, which leave share of its spec.
	spec     string
	replicas int64  // -1 where the kind has none
	share    string // "" where it is not divided
	pods     int
	names    []string

	healthy, unhealthy []string // statuses, of generation 2 and of spec
	failed             []string // those for which waiting does not help

	// status is shown as reported. The statuses of clusters a and b add up to added.
	status, reported string
	a, b, added      string
}

const onePod = `{spec: {containers: [{name: c, image: i}]}}`

var kindCases = []kindCase{
	{
		apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet",
		spec: `{replicas: 4, template: ` + onePod + `}`, replicas: 4, share: `{replicas: 2, template: ` + onePod + `}`, pods: 1,
		healthy: []string{`{observedGeneration: 2, updatedReplicas: 4, availableReplicas: 4}`},
		unhealthy: []string{
			``, `{observedGeneration: 1, updatedReplicas: 4, availableReplicas: 4}`, `{observedGeneration: 2, updatedReplicas: 3, availableReplicas: 4}`,
			`{observedGeneration: 2, updatedReplicas: 4, availableReplicas: 3}`,
		},
		status: `{observedGeneration: 2, replicas: 4, readyReplicas: 3, updateRevision: r2, labelSelector: app=c, conditions: [{type: X}]}`, reported: `{observedGeneration: 2, generation: 2, replicas: 4, readyReplicas: 3, updateRevision: r2, labelSelector: app=c}`,
		a:     `{replicas: 2, readyReplicas: 1, updateRevision: r1, currentRevision: r0}`,
		b:     `{replicas: 2, readyReplicas: 2, updateRevision: r2}`,
		added: `{replicas: 4, readyReplicas: 3, availableReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0, expectedUpdatedReplicas: 0, updateRevision: r2, currentRevision: r0}`,
	},
	{
		apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet",
		spec: `{replicas: 4, template: ` + onePod + `}`, replicas: 4, share: `{replicas: 2, template: ` + onePod + `}`, pods: 1,
		healthy:   []string{`{observedGeneration: 2, updatedReplicas: 4, availableReplicas: 4}`},
		unhealthy: []string{`{observedGeneration: 2, updatedReplicas: 4}`},
		status:    `{observedGeneration: 2, replicas: 4, currentReplicas: 4, labelSelector: l, collisionCount: 1}`, reported: `{observedGeneration: 2, generation: 2, replicas: 4, currentReplicas: 4, labelSelector: l}`,
		a: `{replicas: 2, currentReplicas: 2, updatedReadyReplicas: 1}`, b: `{replicas: 1, updatedReadyReplicas: 1}`,
		added: `{replicas: 3, currentReplicas: 2, updatedReadyReplicas: 2, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0}`,
	},
	{
		apiVersion: "apps.kruise.io/v1alpha1", kind: "DaemonSet",
		spec: `{template: ` + onePod + `}`, replicas: -1, pods: 1,
		healthy:   []string{`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`},
		unhealthy: []string{`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3}`},
		status:    `{observedGeneration: 2, numberReady: 3, daemonSetHash: h, collisionCount: 1}`, reported: `{observedGeneration: 2, generation: 2, numberReady: 3, daemonSetHash: h}`,
		a: `{numberReady: 1, daemonSetHash: h}`, b: `{numberReady: 2, numberUnavailable: 1}`,
		added: `{numberReady: 3, numberUnavailable: 1, daemonSetHash: h, currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, updatedNumberScheduled: 0, numberAvailable: 0}`,
	},
	{
		apiVersion: "apps.kruise.io/v1alpha1", kind: "UnitedDeployment",
		spec: `{replicas: 4, template: {cloneSetTemplate: {spec: {template: ` + onePod + `}}}}`, replicas: 4, pods: 2,
		share:     `{replicas: 2, template: {cloneSetTemplate: {spec: {template: ` + onePod + `}}}}`,
		healthy:   []string{`{observedGeneration: 2, updatedReplicas: 4, readyReplicas: 4}`},
		unhealthy: []string{`{observedGeneration: 2, updatedReplicas: 1, readyReplicas: 1}`, `{observedGeneration: 2, updatedReplicas: 4, readyReplicas: 3}`},
		status:    `{observedGeneration: 2, replicas: 4, conditions: [{type: X}], subsetReplicas: {a: 4}}`, reported: `{observedGeneration: 2, generation: 2, replicas: 4, conditions: [{type: X}]}`,
		a:     `{replicas: 2, conditions: [{type: X, status: "True"}, {type: Y, status: "True"}]}`,
		b:     `{replicas: 2, unavailableReplicas: 1, conditions: [{type: X, status: "False"}]}`,
		added: `{replicas: 4, unavailableReplicas: 1, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, conditions: [{type: X, status: "False"}, {type: Y, status: "True"}]}`,
	},
	{
		apiVersion: "apps.kruise.io/v1alpha1", kind: "BroadcastJob",
		spec: `{parallelism: 4, template: ` + onePod + `}`, replicas: 4, share: `{parallelism: 2, template: ` + onePod + `}`, pods: 1,
		healthy:   []string{`{desired: 3, active: 3}`, `{desired: 3, succeeded: 1, failed: 0}`},
		unhealthy: []string{``, `{desired: 3}`, `{desired: 0, active: 1}`, `{desired: 3, active: 2, failed: 1}`},
		failed:    []string{`{desired: 3, failed: 1, conditions: [{type: Failed, status: "True"}]}`},
		status:    `{active: 1, desired: 3, phase: running, startTime: t1, unknown: 1}`, reported: `{active: 1, desired: 3, phase: running, startTime: t1}`,
		a: `{active: 1, desired: 2, conditions: [{type: Complete, status: "True"}]}`, b: `{succeeded: 1, desired: 1, phase: failed, conditions: [{type: Failed, status: "True"}]}`,
		added: `{active: 1, succeeded: 1, failed: 0, desired: 3, phase: failed, conditions: [{type: Failed, status: "True", reason: JobFailed, message: failed on b}]}`,
	},
	{
		apiVersion: "apps.kruise.io/v1alpha1", kind: "AdvancedCronJob",
		spec: `{template: {broadcastJobTemplate: {spec: {template: ` + onePod + `}}}}`, replicas: -1, pods: 1,
		a: `{active: [{name: x}], type: BroadcastJob, lastScheduleTime: "2024-01-02T00:00:00Z"}`, b: `{active: [{name: y}], lastScheduleTime: "2024-01-01T00:00:00Z"}`,
		added: `{active: [{name: x}, {name: y}], type: BroadcastJob, lastScheduleTime: "2024-01-02T00:00:00Z"}`,
	},
	{
		apiVersion: "apps.kruise.io/v1alpha1", kind: "SidecarSet",
		spec: `{containers: [{name: c, image: i}]}`, replicas: -1, pods: 1,
		healthy: []string{`{matchedPods: 0}`, `{matchedPods: 2, updatedPods: 2}`}, unhealthy: []string{``, `{matchedPods: 2, updatedPods: 1}`},
		status: `{matchedPods: 2, updatedPods: 1, readyPods: 1, collisionCount: 1}`, reported: `{matchedPods: 2, updatedPods: 1, readyPods: 1}`,
		a: `{matchedPods: 2, updatedPods: 1}`, b: `{matchedPods: 1, readyPods: 1}`, added: `{matchedPods: 3, updatedPods: 1, readyPods: 1}`,
	},
	{
		apiVersion: "argoproj.io/v1alpha1", kind: "Workflow",
		spec: `{parallelism: 4, executor: {serviceAccountName: x}, volumes: []}`, replicas: 4, share: `{parallelism: 2, executor: {serviceAccountName: x}, volumes: []}`, pods: 1,
		names:   []string{"ServiceAccount x"},
		healthy: []string{`{phase: Running}`, `{phase: Succeeded}`}, unhealthy: []string{``, `{phase: ""}`}, failed: []string{`{phase: Failed}`, `{phase: Error}`},
	},
	{
		apiVersion: "batch.volcano.sh/v1alpha1", kind: "Job",
		spec: `{tasks: [{name: a, template: ` + onePod + `}, {name: b, template: ` + onePod + `}]}`, replicas: -1, pods: 2,
		healthy: []string{`{state: {phase: Running}}`, `{state: {phase: Completed}}`}, unhealthy: []string{``, `{state: {}}`, `{state: {phase: Unheard}}`}, failed: []string{`{state: {phase: Failed}}`},
		status: `{state: {phase: Running}, running: 1, pendingTasks: 1}`, reported: `{state: {phase: Running}, running: 1}`,
		a:     `{state: {phase: Running}, running: 2, version: 3, runningDuration: 1h2m, taskStatusCount: {a: {phase: {Running: 2}}}, controlledResources: {x: x}, conditions: [{status: Running}]}`,
		b:     `{state: {phase: Pending}, running: 1, pending: 1, version: 1, runningDuration: 59m59.5s, taskStatusCount: {a: {phase: {Running: 1, Pending: 1}}}, controlledResources: {y: y}}`,
		added: `{state: {phase: Pending}, running: 3, pending: 1, version: 3, runningDuration: 1h2m, taskStatusCount: {a: {phase: {Running: 3, Pending: 1}}}, controlledResources: {x: x, y: y}, conditions: [{status: Running}]}`,
	},
	{
		apiVersion: "flink.apache.org/v1beta1", kind: "FlinkDeployment",
		spec: `{job: {parallelism: 7}, flinkConfiguration: {taskmanager.numberOfTaskSlots: "2"}, jobManager: {}, taskManager: {}, podTemplate: ` + onePod + `}`, replicas: 5, pods: 1,
		healthy: []string{
			`{jobStatus: {state: RUNNING}}`, `{jobStatus: {state: FAILED}}`, `{jobStatus: {state: RESTARTING}}`, `{jobStatus: {state: CREATED}, error: "x: ErrImagePull"}`,
			`{jobManagerDeploymentStatus: READY, lifecycleState: STABLE}`,
		},
		unhealthy: []string{
			``, `{jobStatus: {state: CREATED}}`, `{jobStatus: {state: RECONCILING}, error: quota, jobManagerDeploymentStatus: ERROR}`, `{error: ErrImagePull}`,
			`{jobManagerDeploymentStatus: READY}`, `{jobStatus: {state: UNHEARD}}`,
		},
		status: `{jobStatus: {state: RUNNING}, lifecycleState: STABLE, other: 1}`, reported: `{jobStatus: {state: RUNNING}, lifecycleState: STABLE}`,
		a: `{error: wrong, jobStatus: {state: FAILED}}`, b: `{jobStatus: {state: RUNNING}}`, added: `{jobStatus: {state: RUNNING}}`,
	},
	{
		apiVersion: "sparkoperator.k8s.io/v1beta2", kind: "SparkApplication",
		spec: `{driver: {}}`, replicas: -1,
		healthy: []string{`{applicationState: {state: RUNNING}}`, `{applicationState: {state: ""}}`}, unhealthy: []string{``, `{applicationState: {}}`}, failed: []string{`{applicationState: {state: FAILED}}`},
		status: `{applicationState: {state: RUNNING}, submissionID: x, other: 1}`, reported: `{applicationState: {state: RUNNING}, submissionID: x}`,
		a:     `{applicationState: {state: FAILED, errorMessage: no}, executionAttempts: 1, executorState: {x: FAILED}, terminationTime: "2024-01-01T00:00:00Z"}`,
		b:     `{applicationState: {state: RUNNING}, executorState: {y: RUNNING}, executionAttempts: 2, submissionAttempts: 1, lastSubmissionAttemptTime: "2024-01-02T00:00:00Z"}`,
		added: `{applicationState: {state: FAILED, errorMessage: no}, executionAttempts: 3, submissionAttempts: 1, executorState: {x: FAILED, y: RUNNING}, terminationTime: "2024-01-01T00:00:00Z", lastSubmissionAttemptTime: "2024-01-02T00:00:00Z"}`,
	},
	{
		apiVersion: "kubeflow.org/v1", kind: "PyTorchJob",
		spec: `{pytorchReplicaSpecs: {Master: {template: ` + onePod + `}, Worker: {replicas: 2, template: ` + onePod + `}}}`, replicas: -1, pods: 2,
		healthy: []string{`{conditions: []}`, `{conditions: [{type: Failed, status: "False"}]}`}, unhealthy: []string{``}, failed: []string{`{conditions: [{type: Failed, status: "True", message: no}]}`},
		a:     `{replicaStatuses: {Worker: {active: 2, failed: 0}}, startTime: "2024-01-02T00:00:00Z", completionTime: "2024-01-03T00:00:00Z", conditions: [{type: Succeeded, status: "True"}]}`,
		b:     `{replicaStatuses: {Worker: {active: 1}, Master: {succeeded: 1}}, startTime: "2024-01-01T00:00:00Z", conditions: [{type: Succeeded, status: "True"}]}`,
		added: `{replicaStatuses: {Worker: {active: 3}, Master: {succeeded: 1}}, startTime: "2024-01-01T00:00:00Z", completionTime: "2024-01-03T00:00:00Z", conditions: [{type: Succeeded, status: "True", reason: Completed, message: completed on every cluster}]}`,
	},
	{
		apiVersion: "kubeflow.org/v1", kind: "TFJob",
		spec: `{tfReplicaSpecs: {PS: {template: ` + onePod + `}, Worker: {template: ` + onePod + `}, Chief: {template: ` + onePod + `}}}`, replicas: -1, pods: 3,
		healthy: []string{`{conditions: [{type: Running, status: "True"}]}`}, unhealthy: []string{``}, failed: []string{`{conditions: [{type: Failed, status: "True"}]}`},
		a:     `{replicaStatuses: {PS: {active: 1}}, completionTime: "2024-01-03T00:00:00Z", conditions: [{type: Succeeded, status: "True"}]}`,
		b:     `{lastReconcileTime: "2024-01-01T00:00:00Z", conditions: [{type: Failed, status: "True"}]}`,
		added: `{replicaStatuses: {PS: {active: 1}}, lastReconcileTime: "2024-01-01T00:00:00Z", conditions: [{type: Failed, status: "True", reason: TFJobFailed, message: failed on b}]}`,
	},
	{
		apiVersion: "kubeflow.org/v2beta1", kind: "MPIJob",
		spec: `{mpiReplicaSpecs: {Launcher: {template: ` + onePod + `}, Worker: {template: ` + onePod + `}}}`, replicas: -1, pods: 2,
		healthy: []string{`{conditions: [{type: Running, status: "True"}]}`}, unhealthy: []string{``, `{conditions: []}`}, failed: []string{`{conditions: [{type: Failed, status: "True"}]}`},
		status: `{conditions: [{type: Running}], startTime: t1, other: 1}`, reported: `{conditions: [{type: Running}], startTime: t1}`,
		a:     `{replicaStatuses: {Worker: {active: 1, selector: s}}, startTime: "2024-01-02T00:00:00Z", conditions: [{type: Running, lastUpdateTime: "2024-01-03T00:00:00Z"}, {type: Created}]}`,
		b:     `{replicaStatuses: {Worker: {active: 2}}, startTime: "2024-01-01T00:00:00Z", conditions: [{type: Running, lastUpdateTime: "2024-01-02T00:00:00Z"}]}`,
		added: `{replicaStatuses: {Worker: {active: 3}}, startTime: "2024-01-01T00:00:00Z", conditions: [{type: Running, lastUpdateTime: "2024-01-03T00:00:00Z"}, {type: Created}]}`,
	},
	{
		apiVersion: "kubeflow.org/v1", kind: "Notebook",
		spec: `{template: ` + onePod + `}`, replicas: 1, pods: 1,
		healthy: []string{`{containerState: {running: {}}}`, `{containerState: {waiting: {}}}`, `{containerState: {terminated: {exitCode: 0, reason: Completed}}}`},
		unhealthy: []string{
			``, `{containerState: {}}`, `{containerState: {terminated: {exitCode: 1}}}`, `{containerState: {terminated: {reason: OOMKilled}}}`,
		},
		status: `{readyReplicas: 1, containerState: {running: {}}, other: 1}`, reported: `{readyReplicas: 1, containerState: {running: {}}}`,
		a: `{readyReplicas: 1, conditions: [{type: X}]}`, b: `{readyReplicas: 1, containerState: {running: {}}, conditions: [{type: Y}]}`,
		added: `{readyReplicas: 2, containerState: {running: {}}, conditions: [{type: X}, {type: Y}]}`,
	},
	{
		apiVersion: "kyverno.io/v1", kind: "ClusterPolicy",
		spec: `{rules: []}`, replicas: -1,
		healthy:   []string{`{ready: true}`, `{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`},
		unhealthy: []string{``, `{ready: false, conditions: [{type: Ready, status: "True", reason: Succeeded}]}`, `{conditions: [{type: Ready, status: "True", reason: Other}]}`},
		status:    `{ready: true, rulecount: {validate: 1}, other: 1}`, reported: `{ready: true, rulecount: {validate: 1}}`,
		a:     `{ready: false, rulecount: {validate: 1, mutate: 0}, conditions: [{type: Ready, status: "True", reason: Succeeded, message: yes it is}]}`,
		b:     `{ready: true, autogen: {}, rulecount: {validate: 2, mutate: 0}, conditions: [{type: Ready, status: "True", reason: Succeeded, message: fine}, {type: X}]}`,
		added: `{ready: false, autogen: {}, rulecount: {validate: 3, mutate: 0}, conditions: [{type: Ready, status: "True", reason: Succeeded, message: "a=yes it is, b=fine"}, {type: X, message: b=}]}`,
	},
	{
		apiVersion: "kyverno.io/v1", kind: "Policy",
		spec: `{rules: []}`, replicas: -1, healthy: []string{`{ready: true}`}, unhealthy: []string{``, `{ready: false}`},
		status: `{ready: true, other: 1}`, reported: `{ready: true}`, a: `{ready: true}`, b: `{ready: true}`, added: `{ready: true}`,
	},
	{
		apiVersion: "ray.io/v1", kind: "RayCluster",
		spec: `{headGroupSpec: {template: ` + onePod + `}, workerGroupSpecs: [{replicas: 2, template: ` + onePod + `}]}`, replicas: -1, pods: 2,
		healthy: []string{`{conditions: [{type: HeadPodReady, status: "True"}, {type: RayClusterProvisioned, status: "True"}]}`},
		unhealthy: []string{
			``, `{conditions: [{type: HeadPodReady, status: "True"}]}`,
			`{conditions: [{type: HeadPodReady, status: "True"}, {type: RayClusterProvisioned, status: "True"}, {type: RayClusterReplicaFailure, status: "True"}]}`,
		},
		a:     `{readyWorkerReplicas: 1, desiredCPU: 500m, desiredGPU: "1", desiredMemory: 1Gi, state: ready, lastUpdateTime: "2024-01-01T00:00:00Z", conditions: [{type: X}]}`,
		b:     `{readyWorkerReplicas: 2, desiredCPU: "1", desiredGPU: 1, desiredMemory: 1Gi, head: {podIP: 192.0.2.1}, state: failed, lastUpdateTime: "2024-01-02T00:00:00Z", conditions: [{type: X}]}`,
		added: `{readyWorkerReplicas: 3, availableWorkerReplicas: 0, maxWorkerReplicas: 0, minWorkerReplicas: 0, desiredWorkerReplicas: 0, desiredCPU: 1500m, desiredGPU: "2", desiredMemory: 2Gi, head: {podIP: 192.0.2.1}, state: ready, lastUpdateTime: "2024-01-02T00:00:00Z", conditions: [{type: X}, {type: X}]}`,
	},
	{
		apiVersion: "ray.io/v1", kind: "RayJob",
		spec: `{rayClusterSpec: {headGroupSpec: {template: ` + onePod + `}, workerGroupSpecs: [{template: ` + onePod + `}]}, submitterPodTemplate: ` + onePod + `}`, replicas: -1, pods: 3,
		healthy:   []string{`{jobDeploymentStatus: Running}`, `{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`},
		unhealthy: []string{``, `{jobDeploymentStatus: Waiting}`, `{jobDeploymentStatus: Complete}`},
		failed:    []string{`{jobDeploymentStatus: Failed}`, `{jobDeploymentStatus: Complete, jobStatus: FAILED}`},
		a:         `{jobDeploymentStatus: Failed, jobStatus: STOPPED, reason: r, message: m}`, b: `{jobDeploymentStatus: Running, jobStatus: FAILED}`,
		added: `{jobDeploymentStatus: Failed, jobStatus: FAILED, reason: r, message: m}`,
	},
	{
		apiVersion: "ray.io/v1", kind: "RayService",
		spec: `{rayClusterConfig: {headGroupSpec: {template: ` + onePod + `}, workerGroupSpecs: [{replicas: 1, template: ` + onePod + `}, {replicas: 2}]}}`, replicas: 4, pods: 2,
		share:   `{rayClusterConfig: {headGroupSpec: {template: ` + onePod + `}, workerGroupSpecs: [{replicas: 0, template: ` + onePod + `}, {replicas: 1}]}}`,
		healthy: []string{`{conditions: [{type: Ready, status: "True"}]}`}, unhealthy: []string{``, `{conditions: [{type: Ready, status: "False"}]}`},
		a:     `{numServeEndpoints: 1, serviceStatus: Running, observedGeneration: 3, activeServiceStatus: {rayClusterName: x, applicationStatuses: {app: {status: RUNNING}, other: {status: RUNNING}}}}`,
		b:     `{numServeEndpoints: 2, serviceStatus: "", observedGeneration: 2, activeServiceStatus: {rayClusterName: y, applicationStatuses: {app: {status: UNHEALTHY}}}, pendingServiceStatus: {rayClusterName: z}}`,
		added: `{numServeEndpoints: 3, serviceStatus: "", observedGeneration: 3, activeServiceStatus: {rayClusterName: x, applicationStatuses: {app: {status: UNHEALTHY}, other: {status: RUNNING}}}, pendingServiceStatus: {rayClusterName: z}}`,
	},
	{
		apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository",
		spec: `{secretRef: {name: s}, verify: {secretRef: {name: v}}}`, replicas: -1, names: []string{"Secret s", "Secret v"},
		healthy:   []string{`{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`},
		unhealthy: []string{``, `{conditions: [{type: Ready, status: "True", reason: Other}]}`, `{conditions: [{type: Ready, status: "False", reason: Succeeded}]}`},
		failed:    []string{`{conditions: [{type: Stalled, status: "True"}]}`},
		status:    `{artifact: {revision: r}, observedGeneration: 2, other: 1}`, reported: `{artifact: {revision: r}, observedGeneration: 2, generation: 2}`,
		a: `{artifact: {revision: r1}, lastHandledReconcileAt: t1}`, b: `{artifact: {revision: r2}}`, added: `{artifact: {revision: r2}, lastHandledReconcileAt: t1}`,
	},
	{
		apiVersion: "source.toolkit.fluxcd.io/v1beta2", kind: "OCIRepository",
		spec: `{secretRef: {name: s}, certSecretRef: {name: c}, serviceAccountName: a}`, replicas: -1, names: []string{"Secret c", "Secret s", "ServiceAccount a"},
		healthy: []string{`{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`}, unhealthy: []string{``},
		status: `{url: u, observedGeneration: 2, other: 1}`, reported: `{url: u, observedGeneration: 2, generation: 2}`, a: `{url: u}`, b: `{artifact: {}}`, added: `{url: u, artifact: {}}`,
	},
	{
		apiVersion: "source.toolkit.fluxcd.io/v1beta2", kind: "HelmRepository",
		spec: `{secretRef: {name: s}}`, replicas: -1, names: []string{"Secret s"},
		healthy: []string{`{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`}, unhealthy: []string{``},
		status: `{url: u, observedGeneration: 2, other: 1}`, reported: `{url: u, observedGeneration: 2, generation: 2}`, a: `{url: u}`, b: `{url: ""}`, added: `{url: u}`,
	},
	{
		apiVersion: "source.toolkit.fluxcd.io/v1beta2", kind: "Bucket",
		spec: `{secretRef: {name: s}}`, replicas: -1, names: []string{"Secret s"},
		healthy: []string{`{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`}, unhealthy: []string{``},
		status: `{url: u, observedGeneration: 2, other: 1}`, reported: `{url: u, observedGeneration: 2, generation: 2}`, a: `{url: u}`, b: `{artifact: {}}`, added: `{url: u, artifact: {}}`,
	},
	{
		apiVersion: "source.toolkit.fluxcd.io/v1beta2", kind: "HelmChart",
		spec: `{verify: {secretRef: {name: v}}}`, replicas: -1, names: []string{"Secret v"},
		healthy:   []string{`{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`, `{conditions: [{type: Ready, status: "True", reason: ChartPullSucceeded}]}`},
		unhealthy: []string{``, `{conditions: [{type: Ready, status: "True", reason: Other}]}`},
		status:    `{observedChartName: c, observedGeneration: 2, other: 1}`, reported: `{observedChartName: c, observedGeneration: 2, generation: 2}`,
		a: `{observedChartName: c}`, b: `{observedSourceArtifactRevision: r}`, added: `{observedChartName: c, observedSourceArtifactRevision: r}`,
	},
	{
		apiVersion: "kustomize.toolkit.fluxcd.io/v1", kind: "Kustomization",
		spec: `{decryption: {secretRef: {name: d}}, kubeConfig: {secretRef: {name: k}}, serviceAccountName: a}`, replicas: -1, names: []string{"Secret d", "Secret k", "ServiceAccount a"},
		healthy: []string{`{conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded}]}`}, unhealthy: []string{``, `{conditions: [{type: Ready, status: "True", reason: Succeeded}]}`},
		status: `{lastAppliedRevision: r, inventory: {}}`, reported: `{lastAppliedRevision: r, generation: 2}`,
		a: `{lastAppliedRevision: r1}`, b: `{lastAppliedRevision: r2, lastAttemptedRevision: r3}`, added: `{lastAppliedRevision: r2, lastAttemptedRevision: r3}`,
	},
	{
		apiVersion: "helm.toolkit.fluxcd.io/v2beta1", kind: "HelmRelease",
		spec: `{valuesFrom: [{kind: ConfigMap, name: c}, {kind: Secret, name: s}, {kind: Other, name: o}], chart: {spec: {verify: {secretRef: {name: v}}}}, serviceAccountName: a}`, replicas: -1,
		names:   []string{"ConfigMap c", "Secret s", "Secret v", "ServiceAccount a"},
		healthy: []string{`{conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded}]}`}, unhealthy: []string{``},
		status: `{lastReleaseRevision: 3, failures: 1, helmChart: h, history: []}`, reported: `{lastReleaseRevision: 3, failures: 1, helmChart: h, generation: 2}`,
		a: `{lastReleaseRevision: 3, failures: 1}`, b: `{lastReleaseRevision: 4, failures: 2}`, added: `{lastReleaseRevision: 4, failures: 3}`,
	},
}

// R03: what is known of each kind of another project.
func TestKinds(t *testing.T) {
	seen := map[*Kind]bool{}
	for _, c := range kindCases {
		t.Run(c.apiVersion+" "+c.kind, func(t *testing.T) {
			template := c.object(t, c.spec, "")
			k := kindOf(groupKind(template), template)
			if k == nil {
				t.Fatal("it is not known")
			}
			seen[k] = true
			c.template(t, k, template)
			c.observed(t, k)
			c.totals(t, k)
		})
	}

	for _, k := range kinds {
		if !seen[k] {
			t.Errorf("%s %s has no case", k.APIVersion, k.Kind)
		}
	}
	if len(kindCases) != len(kinds) {
		t.Errorf("%d cases of %d kinds", len(kindCases), len(kinds))
	}
}

// object is one of the kind's.
func (c kindCase) object(t *testing.T, spec, status string) map[string]any {
	text := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: x, namespace: shop, generation: 2}, spec: %s", c.apiVersion, c.kind, spec)
	if status != "" {
		text += ", status: " + status
	}
	return value(t, text+"}")
}

func value(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// template tests what is read of a template.
func (c kindCase) template(t *testing.T, k *Kind, template map[string]any) {
	before := runtime.DeepCopyJSON(template)
	n, _, ok := k.Replicas(template)
	if ok != (c.replicas >= 0) || ok && n != c.replicas {
		t.Errorf("it wants %d replicas (%v), want %d", n, ok, c.replicas)
	}

	if k.Divides() != (c.share != "") {
		t.Errorf("whether it is divided is %v", k.Divides())
	}
	want := c.spec
	if c.share != "" {
		want = c.share
	}
	if got := k.Share(template, 2)["spec"]; !reflect.DeepEqual(got, value(t, want)) && c.share != "" {
		t.Errorf("a share of 2 is %v, want %s", got, want)
	}
	if got := k.Share(template, 0); !reflect.DeepEqual(got, before) {
		t.Errorf("a share of 0 changes it: %v", got)
	}

	var names []string
	k.Names(template, func(kind, name string) { names = append(names, kind+" "+name) })
	slices.Sort(names)
	if pods := len(k.PodTemplates(template)); pods != c.pods || !slices.Equal(names, c.names) {
		t.Errorf("it has %d pod templates and names %v, want %d and %v", pods, names, c.pods, c.names)
	}
	if !reflect.DeepEqual(template, before) {
		t.Error("the template was changed")
	}
}

// observed tests what is told of a copy.
func (c kindCase) observed(t *testing.T, k *Kind) {
	for want, statuses := range map[Health][]string{Healthy: c.healthy, Unhealthy: slices.Concat(c.unhealthy, c.failed)} {
		for _, status := range statuses {
			o := c.object(t, c.spec, status)
			got, err := HealthOf(nil, o)
			if got != want || err != nil {
				t.Errorf("%s is %s (%v), want %s", status, got, err, want)
			}

			progress := map[bool]Progress{true: Current, false: InProgress}[want == Healthy]
			if slices.Contains(c.failed, status) {
				progress = Failed
			}
			if got, why := ProgressOf(nil, o, got); got != progress || (why == "") != (progress == Current) {
				t.Errorf("%s is %s (%s), want %s", status, got, why, progress)
			}
		}
	}
	if k.healthy != nil {
		if len(c.healthy) == 0 || len(c.unhealthy) == 0 {
			t.Error("its health has no case")
		}
		if got, err := HealthOf(nil, c.object(t, c.spec, `text`)); got != Unknown || err == nil || !strings.Contains(err.Error(), "has the wrong type") {
			t.Errorf("a status of the wrong type is %s (%v)", got, err)
		}
	}

	if k.reports == nil {
		return
	}
	got, err := StatusOf(nil, c.object(t, c.spec, c.status))
	if err != nil || !reflect.DeepEqual(got, value(t, c.reported)) {
		t.Errorf("%s is shown as %v (%v), want %s", c.status, got, err, c.reported)
	}
}

// totals tests what copies add up to.
func (c kindCase) totals(t *testing.T, k *Kind) {
	template := c.object(t, c.spec, "")
	delete(template["metadata"].(map[string]any), "generation") // there is none in git
	if k.adds == nil {
		if got, err := Aggregate(nil, template, []Observed{{Cluster: "a", Status: map[string]any{"x": int64(1)}}}); err != nil || !reflect.DeepEqual(got, template) {
			t.Errorf("it adds up to %v (%v)", got, err)
		}
		return
	}

	items := []Observed{{Cluster: "b", Status: value(t, c.b)}, {Cluster: "a", Status: value(t, c.a)}}
	before := runtime.DeepCopyJSON(map[string]any{"a": items[1].Status, "b": items[0].Status})
	got, err := Aggregate(nil, template, items)
	if err != nil || !reflect.DeepEqual(got["status"], value(t, c.added)) {
		t.Errorf("%s and %s add up to %v (%v), want %s", c.a, c.b, compact(t, got["status"]), err, c.added)
	}
	if !reflect.DeepEqual(map[string]any{"a": items[1].Status, "b": items[0].Status}, before) {
		t.Error("a status was changed")
	}

	for _, items := range [][]Observed{nil, {{Cluster: "a"}}} {
		if _, err := Aggregate(nil, template, items); err != nil {
			t.Errorf("without a status: %v", err)
		}
	}
}

// Counters are about a template's generation once every cluster has observed it.
func TestKindGenerations(t *testing.T) {
	template := value(t, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {generation: 3}, status: {observedGeneration: 2}}`)
	seen := `{generation: 5, observedGeneration: 5, resourceTemplateGeneration: 3}`
	for _, c := range []struct {
		statuses []string
		want     int64
	}{
		{nil, 3}, {[]string{seen, seen}, 3}, {[]string{seen, `{generation: 5, observedGeneration: 4, resourceTemplateGeneration: 3}`}, 2},
		{[]string{seen, `{generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2}`}, 2}, {[]string{seen, `{}`}, 2},
	} {
		var items []Observed
		for _, status := range c.statuses {
			items = append(items, Observed{Cluster: status, Status: value(t, status)})
		}
		got, err := Aggregate(nil, template, items)
		if want := map[string]any{"observedGeneration": c.want}; err != nil || !reflect.DeepEqual(got["status"], want) {
			t.Errorf("%v add up to %v (%v), want %v", c.statuses, got["status"], err, want)
		}
	}
}

// Details that no case above has.
func TestKindReplicas(t *testing.T) {
	for _, c := range []struct {
		kind, spec string
		want       string // replicas, and a share of 3
	}{
		{"apps.kruise.io/v1alpha1 CloneSet", `{}`, `1 {}`}, // who scales it in the cluster keeps it
		{"apps.kruise.io/v1alpha1 CloneSet", `{replicas: 0}`, `0 {"replicas":3}`},
		{"apps.kruise.io/v1alpha1 CloneSet", `{replicas: many}`, `none`},
		{"apps.kruise.io/v1alpha1 BroadcastJob", `{}`, `1 {}`},
		{"argoproj.io/v1alpha1 Workflow", `{entrypoint: x}`, `1 {"entrypoint":"x"}`},
		{"flink.apache.org/v1beta1 FlinkDeployment", `{jobManager: {replicas: 2}, taskManager: {replicas: 3}}`, `5 {"jobManager":{"replicas":2},"taskManager":{"replicas":3}}`},
		{"flink.apache.org/v1beta1 FlinkDeployment", `{job: {parallelism: 8}, flinkConfiguration: {taskmanager.numberOfTaskSlots: 2}}`, `5 {"flinkConfiguration":{"taskmanager.numberOfTaskSlots":2},"job":{"parallelism":8}}`},
		{"flink.apache.org/v1beta1 FlinkDeployment", `{job: {parallelism: 8}, flinkConfiguration: {taskmanager.numberOfTaskSlots: none}}`, `2 {"flinkConfiguration":{"taskmanager.numberOfTaskSlots":"none"},"job":{"parallelism":8}}`},
		{"flink.apache.org/v1beta1 FlinkDeployment", `{taskManager: {replicas: x}}`, `none`},
		{"ray.io/v1 RayService", `{}`, `0 {}`},
		{"ray.io/v1 RayService", `{rayClusterConfig: {headGroupSpec: {template: {}}}}`, `1 {"rayClusterConfig":{"headGroupSpec":{"template":{}}}}`},
		{"ray.io/v1 RayService", `{rayClusterConfig: {headGroupSpec: {template: {}}, workerGroupSpecs: [{replicas: x}]}}`, `none`},
		{"ray.io/v1 RayService", `{rayClusterConfig: {headGroupSpec: {template: {}}, workerGroupSpecs: [{}, {}, {}]}}`,
			`1 {"rayClusterConfig":{"headGroupSpec":{"template":{}},"workerGroupSpecs":[{"replicas":1},{"replicas":1},{"replicas":0}]}}`},
	} {
		apiVersion, kind, _ := strings.Cut(c.kind, " ")
		o := value(t, fmt.Sprintf("{apiVersion: %s, kind: %s, spec: %s}", apiVersion, kind, c.spec))
		k := kindOf(groupKind(o), o)
		got := "none"
		if n, _, ok := k.Replicas(o); ok {
			got = fmt.Sprint(n, " ", compact(t, k.Share(o, 3)["spec"]))
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.spec, got, c.want)
		}
	}
}

// Whatever is shared is all that there is, and nobody gets less than nothing.
func TestProportionally(t *testing.T) {
	for _, c := range []struct {
		n     int64
		sizes []int64
		want  []int64
	}{
		{9, []int64{2, 4}, []int64{3, 6}},
		{2, []int64{1, 1, 1, 1}, []int64{1, 1, 0, 0}},
		{5, []int64{1, 1, 1}, []int64{2, 2, 1}},
		{5, []int64{0, 0}, []int64{3, 2}},
		{0, []int64{3, 1}, []int64{0, 0}},
		{7, []int64{0, 3}, []int64{0, 7}},
	} {
		if got := proportionally(c.n, c.sizes); !slices.Equal(got, c.want) {
			t.Errorf("%d among %v is %v, want %v", c.n, c.sizes, got, c.want)
		}
	}
}

// A kind is known in one version, and only that group's.
func TestKindOfAnotherVersion(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {replicas: 4}}`, `{apiVersion: example.io/v1alpha1, kind: CloneSet}`, `{apiVersion: batch/v1, kind: Job}`,
		`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease}`, `{kind: CloneSet}`, `{}`,
	} {
		o := value(t, text)
		if k := kindOf(groupKind(o), o); k != nil {
			t.Errorf("%s is known as %s %s", text, k.APIVersion, k.Kind)
		}
	}
}

func TestFlinkMemory(t *testing.T) {
	for text, want := range map[string]string{
		"2048m": "2048Mi", "2 gb": "2Gi", "1t": "1Ti", "512K": "512Ki", "1024": "1024", "10 bytes": "10", "2Gi": "2Gi", "1.5g": "1.5Gi", "": "", "m": "m", "infm": "infm", "1e": "1e",
	} {
		if got := flinkMemory(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]float64{"1h2m3.5s": 3723.5, "500ms": 0.5, "0s": 0, "": 0, "soon": 0, "5": 0, "1.2.3s": 0, "1h x": 0} {
		if got := seconds(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

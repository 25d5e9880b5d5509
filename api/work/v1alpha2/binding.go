// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// Condition types of a binding.
const (
	// Scheduled reports whether the last schedule found clusters.
	Scheduled = "Scheduled"
	// Activated reports whether the claiming policy is in effect, or waits.
	Activated = "Activated"
	// FullyApplied reports whether every cluster has acknowledged what was
	// released to it.
	FullyApplied = "FullyApplied"
)

// Reasons and messages of the FullyApplied condition.
const (
	ReasonFullyAppliedSuccess  = "FullyAppliedSuccess"
	MessageFullyAppliedSuccess = "All works have been successfully applied"
	ReasonFullyAppliedFailed   = "FullyAppliedFailed"
	MessageFullyAppliedFailed  = "Failed to apply all works, see status.aggregatedStatus for details"
)

// Reasons of the Scheduled condition.
const (
	ReasonSuccess        = "Success"
	ReasonNoClusterFit   = "NoClusterFit"
	ReasonUnschedulable  = "Unschedulable"
	ReasonSchedulerError = "SchedulerError"
)

// Reasons of the Activated condition.
const (
	ReasonActivated           = "Activated"
	ReasonLazyPolicyPending   = "LazyPolicyPending"
	ReasonStaticPolicyPending = "StaticPolicyPending"
	ReasonNoMatchingPolicy    = "NoMatchingPolicy"

	ReasonDependentOverridesMissing = "DependentOverridesMissing"
)

// ResourceBinding is where one template goes. A cluster-scoped template has a
// ClusterResourceBinding, the same type without a namespace.
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ResourceBindingSpec   `json:"spec"`
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingSpec is the decision.
type ResourceBindingSpec struct {
	Resource ObjectReference `json:"resource"`
	// PropagateDeps also sends the objects that the template references.
	PropagateDeps bool `json:"propagateDeps,omitempty"`
	// ReplicaRequirements are what one replica needs.
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`
	// Replicas in total, or per cluster if Duplicated.
	Replicas int32 `json:"replicas,omitempty"`
	// Clusters are the targets, sorted by name.
	Clusters []TargetCluster `json:"clusters,omitempty"`
	// Placement in effect, which may be an older one under Lazy.
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`
	// GracefulEvictionTasks are the clusters that it is being evicted from.
	GracefulEvictionTasks       []GracefulEvictionTask            `json:"gracefulEvictionTasks,omitempty"`
	RequiredBy                  []BindingSnapshot                 `json:"requiredBy,omitempty"`
	ConflictResolution          policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`
	Suspension                  *Suspension                       `json:"suspension,omitempty"`
	PreserveResourcesOnDeletion *bool                             `json:"preserveResourcesOnDeletion,omitempty"`
}

// ObjectReference names the template.
type ObjectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// ReplicaRequirements are what one replica needs.
type ReplicaRequirements struct {
	// NodeClaim is what it requires of its node.
	NodeClaim         *NodeClaim          `json:"nodeClaim,omitempty"`
	ResourceRequest   corev1.ResourceList `json:"resourceRequest,omitempty"`
	Namespace         string              `json:"namespace,omitempty"`
	PriorityClassName string              `json:"priorityClassName,omitempty"`
}

// NodeClaim is what a pod template requires of nodes.
type NodeClaim struct {
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`
	NodeSelector     map[string]string    `json:"nodeSelector,omitempty"`
	Tolerations      []corev1.Toleration  `json:"tolerations,omitempty"`
}

// TargetCluster is a cluster and its share; kinds without replicas have no
// share.
type TargetCluster struct {
	Name     string `json:"name"`
	Replicas int32  `json:"replicas,omitempty"`
}

// GracefulEvictionTask is a cluster that a binding is being evicted from.
type GracefulEvictionTask struct {
	FromCluster        string                   `json:"fromCluster"`
	PurgeMode          policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`
	Replicas           *int32                   `json:"replicas,omitempty"`
	Reason             string                   `json:"reason"`
	Producer           string                   `json:"producer"`
	GracePeriodSeconds *int32                   `json:"gracePeriodSeconds,omitempty"`
	SuppressDeletion   *bool                    `json:"suppressDeletion,omitempty"`
}

// BindingSnapshot is an owner that needs this template on its clusters.
type BindingSnapshot struct {
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Clusters  []TargetCluster `json:"clusters,omitempty"`
}

// Suspension is the policy's, as it is in effect on this binding.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`
	Scheduling                *bool `json:"scheduling,omitempty"`
}

// ResourceBindingStatus is the outcome of the decision.
type ResourceBindingStatus struct {
	Conditions []workv1alpha1.Condition `json:"conditions,omitempty"`
	// SchedulerObservingAffinityName is the affinity group in use.
	SchedulerObservingAffinityName string `json:"schedulerObservingAffinityName,omitempty"`
	// AggregatedStatus is the observed status on each cluster, sorted by name.
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is the observed status on one cluster.
type AggregatedStatusItem struct {
	ClusterName string                `json:"clusterName"`
	Status      *runtime.RawExtension `json:"status,omitempty"`
	// Applied reports whether the cluster has acknowledged what was released to it.
	Applied        bool   `json:"applied,omitempty"`
	AppliedMessage string `json:"appliedMessage,omitempty"`
	// Revision is the commit whose content the object has. Karmada has no such field.
	Revision string         `json:"revision,omitempty"`
	Health   ResourceHealth `json:"health,omitempty"`
}

// ResourceHealth is the health of an object on a cluster: Healthy, Unhealthy or
// Unknown.
type ResourceHealth string

// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropagationPolicy says which templates of its namespace go to which clusters.
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PropagationSpec `json:"spec"`
}

// ClusterPropagationPolicy is a PropagationPolicy for every namespace and for
// cluster-scoped templates. A PropagationPolicy always wins over it.
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PropagationSpec `json:"spec"`
}

// PropagationSpec is shared by both policy kinds.
type PropagationSpec struct {
	// ResourceSelectors choose templates; at least one.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Association is deprecated upstream and has no effect.
	Association bool `json:"association,omitempty"`
	// PropagateDeps also sends the objects that a workload references.
	PropagateDeps bool `json:"propagateDeps,omitempty"`
	// Placement selects clusters and divides replicas.
	Placement Placement `json:"placement,omitempty"`
	// Priority decides between matching policies of one kind; absent is 0.
	Priority *int32 `json:"priority,omitempty"`
	// Preemption lets a policy of higher priority take a claimed template.
	Preemption PreemptionBehavior `json:"preemption,omitempty"`
	// DependentOverrides are override policies that must exist first.
	DependentOverrides []string `json:"dependentOverrides,omitempty"`
	// SchedulerName is the scheduler meant to place it.
	SchedulerName string `json:"schedulerName,omitempty"`
	// Failover moves an application away from an unhealthy cluster.
	Failover *FailoverBehavior `json:"failover,omitempty"`
	// ConflictResolution is what to do if a member has an object of that name that
	// is not ours: Abort (default) reports it, Overwrite adopts it.
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`
	// ActivationPreference Lazy delays policy changes until the template changes.
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`
	// Suspension holds works.
	Suspension *Suspension `json:"suspension,omitempty"`
	// PreserveResourcesOnDeletion leaves objects running in the members when the
	// template is deleted.
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
	// SchedulePriority orders a scheduling queue.
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// ResourceSelector chooses templates by exact apiVersion and kind, and by
// name or labels. LabelSelector is ignored when Name is set.
type ResourceSelector struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace,omitempty"`
	Name          string                `json:"name,omitempty"`
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Placement is where a template goes and how its replicas are divided.
type Placement struct {
	// ClusterAffinity limits the clusters; absent means any. Mutually exclusive
	// with ClusterAffinities.
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// ClusterAffinities are groups, tried in order.
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`
	// ClusterTolerations are matched against cluster taints.
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`
	// SpreadConstraints limit how many groups of clusters are chosen.
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`
	// ReplicaScheduling is how replicas are divided; absent means Duplicated.
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`
	// WorkloadAffinity places workloads relative to others.
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ClusterAffinity selects clusters. All its parts must match; Exclude wins.
type ClusterAffinity struct {
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	FieldSelector *FieldSelector        `json:"fieldSelector,omitempty"`
	ClusterNames  []string              `json:"clusterNames,omitempty"`
	// ExcludeClusters is spelled "exclude" in YAML.
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// FieldSelector matches a cluster's provider, region or zones (operators In
// and NotIn).
type FieldSelector struct {
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterAffinityTerm is a named group of clusters.
type ClusterAffinityTerm struct {
	AffinityName    string `json:"affinityName"`
	ClusterAffinity `json:",inline"`
	// OverflowAffinities take what does not fit into the group.
	OverflowAffinities []OverflowAffinity `json:"overflowAffinities,omitempty"`
}

// OverflowAffinity is one tier of overflow.
type OverflowAffinity struct {
	AffinityName    string `json:"affinityName"`
	ClusterAffinity `json:",inline"`
}

// SpreadConstraint limits the number of chosen groups (clusters, regions,
// zones, providers). MaxGroups 0 or absent means no upper limit.
type SpreadConstraint struct {
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`
	SpreadByLabel string           `json:"spreadByLabel,omitempty"`
	MaxGroups     int              `json:"maxGroups,omitempty"`
	MinGroups     int              `json:"minGroups,omitempty"`
}

// SpreadFieldValue is what a constraint groups clusters by.
type SpreadFieldValue string

// The groups that a spread constraint can count.
const (
	SpreadByCluster  SpreadFieldValue = "cluster"
	SpreadByRegion   SpreadFieldValue = "region"
	SpreadByZone     SpreadFieldValue = "zone"
	SpreadByProvider SpreadFieldValue = "provider"
)

// ReplicaSchedulingStrategy is how replicas are divided among clusters.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType: absent in a present block means Divided.
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`
	// ReplicaDivisionPreference: absent means Weighted.
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`
	WeightPreference          *ClusterPreferences       `json:"weightPreference,omitempty"`
}

// ReplicaSchedulingType is Duplicated or Divided.
type ReplicaSchedulingType string

// Whether each cluster runs all replicas or a share of them.
const (
	Duplicated ReplicaSchedulingType = "Duplicated"
	Divided    ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference is Aggregated or Weighted.
type ReplicaDivisionPreference string

// How replicas are divided.
const (
	Aggregated ReplicaDivisionPreference = "Aggregated"
	Weighted   ReplicaDivisionPreference = "Weighted"
)

// ClusterPreferences are the weights of a weighted division.
type ClusterPreferences struct {
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`
	// DynamicWeight, when set, replaces the static list.
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight gives the matching clusters a weight of at least 1. If
// several rules match a cluster, the greatest weight counts.
type StaticClusterWeight struct {
	TargetCluster ClusterAffinity `json:"targetCluster"`
	Weight        int64           `json:"weight"`
}

// DynamicWeightFactor is what a dynamic weight measures.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weighs clusters by their free capacity.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// WorkloadAffinity groups workloads by the value of a label.
type WorkloadAffinity struct {
	Affinity     *WorkloadAffinityTerm `json:"affinity,omitempty"`
	AntiAffinity *WorkloadAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm names the grouping label.
type WorkloadAffinityTerm struct {
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// PreemptionBehavior is Always or Never.
type PreemptionBehavior string

// Whether a policy may take a template that another policy claims.
const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ConflictResolution is Abort or Overwrite.
type ConflictResolution string

// What to do if a member has an object of that name that is not ours.
const (
	ConflictAbort     ConflictResolution = "Abort"
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// ActivationPreference is empty (at once) or Lazy.
type ActivationPreference string

// LazyActivation delays a policy's changes until the template changes.
const LazyActivation ActivationPreference = "Lazy"

// Suspension holds works. Dispatching true holds every cluster and cannot be
// combined with named clusters.
type Suspension struct {
	Dispatching           *bool            `json:"dispatching,omitempty"`
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters names clusters. There are no selectors, so that a hold is
// always readable.
type SuspendClusters struct {
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// FailoverBehavior is how to react to the failure of an application or a
// cluster.
type FailoverBehavior struct {
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`
	Cluster     *ClusterFailoverBehavior     `json:"cluster,omitempty"`
}

// ApplicationFailoverBehavior applies to a single unhealthy application.
type ApplicationFailoverBehavior struct {
	DecisionConditions DecisionConditions `json:"decisionConditions"`
	PurgeMode          PurgeMode          `json:"purgeMode,omitempty"`
	GracePeriodSeconds *int32             `json:"gracePeriodSeconds,omitempty"`
	StatePreservation  *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions are when a failover starts.
type DecisionConditions struct {
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior applies to a failed cluster.
type ClusterFailoverBehavior struct {
	PurgeMode         PurgeMode          `json:"purgeMode,omitempty"`
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode is when the old copy is removed.
type PurgeMode string

// The purge modes.
const (
	PurgeDirectly   PurgeMode = "Directly"
	PurgeGracefully PurgeMode = "Gracefully"
	PurgeNever      PurgeMode = "Never"
)

// StatePreservation carries parts of the status over to the new cluster.
type StatePreservation struct {
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule copies a JSON path of the status into a label.
type StatePreservationRule struct {
	AliasLabelName string `json:"aliasLabelName"`
	JSONPath       string `json:"jsonPath"`
}

// SchedulePriority names a priority class.
type SchedulePriority struct {
	PriorityClassSource string `json:"priorityClassSource"`
	PriorityClassName   string `json:"priorityClassName"`
}

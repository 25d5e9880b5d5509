// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a member of the fleet.
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec"`
	// Status may be in git; it is used if there is no live observation.
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSyncMode is who applies: fairlead (Push) or the member (Pull).
type ClusterSyncMode string

// The sync modes.
const (
	Push ClusterSyncMode = "Push"
	Pull ClusterSyncMode = "Pull"
)

// ConditionReady reports whether a cluster responds and accepts work.
const ConditionReady = "Ready"

// Taints that mirror ConditionReady, and the taint of a cordoned cluster.
const (
	TaintNotReady      = "cluster.karmada.io/not-ready"
	TaintUnreachable   = "cluster.karmada.io/unreachable"
	TaintUnschedulable = "cluster.karmada.io/unschedulable"
)

// ClusterSpec describes a member. Its credentials are not in git.
type ClusterSpec struct {
	ID                          string                `json:"id,omitempty"`
	SyncMode                    ClusterSyncMode       `json:"syncMode"`
	APIEndpoint                 string                `json:"apiEndpoint,omitempty"`
	SecretRef                   *LocalSecretReference `json:"secretRef,omitempty"`
	ImpersonatorSecretRef       *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`
	InsecureSkipTLSVerification bool                  `json:"insecureSkipTLSVerification,omitempty"`
	ProxyURL                    string                `json:"proxyURL,omitempty"`
	ProxyHeader                 map[string]string     `json:"proxyHeader,omitempty"`
	Provider                    string                `json:"provider,omitempty"`
	Region                      string                `json:"region,omitempty"`
	// Zone is deprecated upstream; it moves into Zones.
	Zone           string          `json:"zone,omitempty"`
	Zones          []string        `json:"zones,omitempty"`
	Taints         []corev1.Taint  `json:"taints,omitempty"`
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// LocalSecretReference names a Secret.
type LocalSecretReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ResourceModel is a grade of node sizes.
type ResourceModel struct {
	Grade  uint                 `json:"grade"`
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange is the half-open range [Min, Max) of a resource.
type ResourceModelRange struct {
	Name corev1.ResourceName `json:"name"`
	Min  resource.Quantity   `json:"min"`
	Max  resource.Quantity   `json:"max"`
}

// ClusterStatus is the last observation of a member.
type ClusterStatus struct {
	KubernetesVersion string             `json:"kubernetesVersion,omitempty"`
	APIEnablements    []APIEnablement    `json:"apiEnablements,omitempty"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
	NodeSummary       *NodeSummary       `json:"nodeSummary,omitempty"`
	ResourceSummary   *ResourceSummary   `json:"resourceSummary,omitempty"`
	RemedyActions     []string           `json:"remedyActions,omitempty"`
}

// APIEnablement is a group version that the member serves.
type APIEnablement struct {
	GroupVersion string        `json:"groupVersion"`
	Resources    []APIResource `json:"resources,omitempty"`
}

// APIResource is a kind that the member serves.
type APIResource struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// NodeSummary counts nodes.
type NodeSummary struct {
	TotalNum int32 `json:"totalNum,omitempty"`
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary is the sum of the resources of the ready nodes.
type ResourceSummary struct {
	Allocatable          corev1.ResourceList   `json:"allocatable,omitempty"`
	Allocating           corev1.ResourceList   `json:"allocating,omitempty"`
	Allocated            corev1.ResourceList   `json:"allocated,omitempty"`
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling counts the nodes whose free resources are in a grade.
type AllocatableModeling struct {
	Grade uint `json:"grade"`
	Count int  `json:"count"`
}

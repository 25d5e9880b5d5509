// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is work.karmada.io/v1alpha1: Work, one object for one
// cluster. Works are printed, never read: they follow from git.
//
// +k8s:deepcopy-gen=package
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the apiVersion of documents of this package.
var GroupVersion = schema.GroupVersion{Group: "work.karmada.io", Version: "v1alpha1"}

// KindWork is the kind of this package.
const KindWork = "Work"

// WorkDispatching is the condition type that a suspension turns False.
const WorkDispatching = "Dispatching"

// Work is one object for one cluster, in the namespace karmada-es-CLUSTER.
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkSpec   `json:"spec"`
	Status WorkStatus `json:"status,omitempty"`
}

// WorkSpec contains exactly one manifest.
type WorkSpec struct {
	Workload                    WorkloadTemplate `json:"workload"`
	SuspendDispatching          *bool            `json:"suspendDispatching,omitempty"`
	PreserveResourcesOnDeletion *bool            `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate contains the manifest.
type WorkloadTemplate struct {
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is an object as it would be applied.
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus contains the conditions of a work.
type WorkStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition has no times, because the fold has no clock.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

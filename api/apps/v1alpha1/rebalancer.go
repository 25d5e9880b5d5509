// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadRebalancer places workloads from scratch.
type WorkloadRebalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WorkloadRebalancerSpec `json:"spec"`
}

// WorkloadRebalancerSpec names the workloads.
type WorkloadRebalancerSpec struct {
	Workloads []ObjectReference `json:"workloads"`
	// TTLSecondsAfterFinished is accepted without effect: the document stays in
	// git until someone removes it.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference names one object.
type ObjectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

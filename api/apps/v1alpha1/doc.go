// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is apps.karmada.io/v1alpha1: documents that reschedule
// workloads.
//
// +k8s:deepcopy-gen=package
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the apiVersion of documents of this package.
var GroupVersion = schema.GroupVersion{Group: "apps.karmada.io", Version: "v1alpha1"}

// KindWorkloadRebalancer is the kind of this package.
const KindWorkloadRebalancer = "WorkloadRebalancer"

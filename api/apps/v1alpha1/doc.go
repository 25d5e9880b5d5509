// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is apps.karmada.io/v1alpha1: what has workloads placed
// anew.
//
// +k8s:deepcopy-gen=package
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is what a document of this package says in apiVersion.
var GroupVersion = schema.GroupVersion{Group: "apps.karmada.io", Version: "v1alpha1"}

// KindWorkloadRebalancer is the kind of this package.
const KindWorkloadRebalancer = "WorkloadRebalancer"

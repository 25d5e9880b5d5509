// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is policy.karmada.io/v1alpha1: propagation and override
// policies, for a namespace or for the whole fleet.
//
// +k8s:deepcopy-gen=package
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the apiVersion of documents of this package.
var GroupVersion = schema.GroupVersion{Group: "policy.karmada.io", Version: "v1alpha1"}

// The kinds of this package.
const (
	KindPropagationPolicy        = "PropagationPolicy"
	KindClusterPropagationPolicy = "ClusterPropagationPolicy"
	KindOverridePolicy           = "OverridePolicy"
	KindClusterOverridePolicy    = "ClusterOverridePolicy"
)

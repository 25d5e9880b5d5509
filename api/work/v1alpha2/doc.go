// SPDX-License-Identifier: Apache-2.0

// Package v1alpha2 is work.karmada.io/v1alpha2: bindings, which say where a
// template goes. Bindings are printed, never read: they follow from git.
//
// +k8s:deepcopy-gen=package
package v1alpha2

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the apiVersion of documents of this package.
var GroupVersion = schema.GroupVersion{Group: "work.karmada.io", Version: "v1alpha2"}

// The kinds of this package.
const (
	KindResourceBinding        = "ResourceBinding"
	KindClusterResourceBinding = "ClusterResourceBinding"
)

// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is cluster.karmada.io/v1alpha1: the members of the fleet.
//
// +k8s:deepcopy-gen=package
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the apiVersion of documents of this package.
var GroupVersion = schema.GroupVersion{Group: "cluster.karmada.io", Version: "v1alpha1"}

// KindCluster is the kind of this package.
const KindCluster = "Cluster"

// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is config.karmada.io/v1alpha1: what scripts say of kinds
// that have no rules of their own.
//
// +k8s:deepcopy-gen=package
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the apiVersion of documents of this package.
var GroupVersion = schema.GroupVersion{Group: "config.karmada.io", Version: "v1alpha1"}

// KindResourceInterpreterCustomization is the kind of this package.
const KindResourceInterpreterCustomization = "ResourceInterpreterCustomization"

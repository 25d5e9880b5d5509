// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceInterpreterCustomization contains scripts for one kind, for the whole
// fleet.
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationSpec is the kind and its scripts.
type ResourceInterpreterCustomizationSpec struct {
	Target         CustomizationTarget `json:"target"`
	Customizations CustomizationRules  `json:"customizations"`
}

// CustomizationTarget is a kind in one version.
type CustomizationTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// CustomizationRules are the scripts, by the question they answer.
type CustomizationRules struct {
	Retention                *Script `json:"retention,omitempty"`
	ReplicaResource          *Script `json:"replicaResource,omitempty"`
	ReplicaRevision          *Script `json:"replicaRevision,omitempty"`
	StatusReflection         *Script `json:"statusReflection,omitempty"`
	StatusAggregation        *Script `json:"statusAggregation,omitempty"`
	HealthInterpretation     *Script `json:"healthInterpretation,omitempty"`
	DependencyInterpretation *Script `json:"dependencyInterpretation,omitempty"`
	ComponentResource        *Script `json:"componentResource,omitempty"`
}

// Script is one function in Lua.
type Script struct {
	LuaScript string `json:"luaScript"`
}

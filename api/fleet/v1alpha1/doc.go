// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is fairlead.dev/v1alpha1: the settings of a fleet, which
// live in git like everything else that changes decisions (FleetConfig), and the
// resource that has the controller follow it (Fleet).
//
// +k8s:deepcopy-gen=package
// +groupName=fairlead.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupVersion is the apiVersion of fairlead.yaml.
var GroupVersion = schema.GroupVersion{Group: "fairlead.dev", Version: "v1alpha1"}

// KindFleetConfig is the kind of fairlead.yaml.
const KindFleetConfig = "FleetConfig"

// FleetConfig is fairlead.yaml at the root of the fleet. Its name is the fleet's: its
// objects bear it on the members (decision 33). A commit that changes
// it is folded with the new settings.
type FleetConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FleetConfigSpec `json:"spec,omitempty"`
}

// FleetConfigSpec are the settings of the fold.
type FleetConfigSpec struct {
	// FeatureGates by name: StaticPolicy (default false),
	// PropagationPolicyPreemption (true), Failover (false).
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// MaxDelete is how many works one commit may delete before it awaits
	// confirmation: a number, or a percentage of the fleet's works. Default: 50 %
	// of a fleet that has more than 20.
	MaxDelete *intstr.IntOrString `json:"maxDelete,omitempty"`
	// SkippedNamespaces are globs of namespaces whose templates no policy takes, nor
	// the Namespace itself: what is in them is local to each cluster. Default:
	// ["kube-*"]; an empty list skips none.
	SkippedNamespaces []string `json:"skippedNamespaces,omitempty"`
	// OnBroken is RefuseCommit (default) or FreezeUnit.
	OnBroken OnBroken `json:"onBroken,omitempty"`
	// Waves are the order in which clusters are promoted, for every policy without the
	// annotation AnnotationWaves.
	Waves []Wave `json:"waves,omitempty"`
}

// Wave are clusters that are promoted together.
type Wave struct {
	// Name is unique and no number.
	Name string `json:"name"`
	// Clusters by name. A cluster is in one wave.
	Clusters []string `json:"clusters"`
}

// OnBroken is the scope of a read or render error.
type OnBroken string

// What happens if a unit cannot be read or rendered: it refuses its commit, or
// it keeps its content from the last accepted one while everything else goes
// on.
const (
	RefuseCommit OnBroken = "RefuseCommit"
	FreezeUnit   OnBroken = "FreezeUnit"
)

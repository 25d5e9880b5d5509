// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverridePolicy edits the templates of its namespace per cluster.
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OverrideSpec `json:"spec"`
}

// ClusterOverridePolicy edits templates of any namespace. It applies before
// OverridePolicies.
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OverrideSpec `json:"spec"`
}

// OverrideSpec is shared by both override kinds.
type OverrideSpec struct {
	// ResourceSelectors: empty matches every template.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`
	OverrideRules     []RuleWithCluster  `json:"overrideRules,omitempty"`
	// TargetCluster and Overriders are the deprecated single-rule form.
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	Overriders    Overriders       `json:"overriders,omitempty"`
}

// RuleWithCluster applies its overriders to the matching clusters.
type RuleWithCluster struct {
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	Overriders    Overriders       `json:"overriders"`
}

// Overriders are the edits of one rule.
type Overriders struct {
	Plaintext            []PlaintextOverrider       `json:"plaintext,omitempty"`
	ImageOverrider       []ImageOverrider           `json:"imageOverrider,omitempty"`
	CommandOverrider     []CommandArgsOverrider     `json:"commandOverrider,omitempty"`
	ArgsOverrider        []CommandArgsOverrider     `json:"argsOverrider,omitempty"`
	LabelsOverrider      []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`
	FieldOverrider       []FieldOverrider           `json:"fieldOverrider,omitempty"`
}

// OverriderOperator is add, remove or replace.
type OverriderOperator string

// The operators of an overrider.
const (
	OverriderAdd     OverriderOperator = "add"
	OverriderRemove  OverriderOperator = "remove"
	OverriderReplace OverriderOperator = "replace"
)

// PlaintextOverrider is one JSON patch operation.
type PlaintextOverrider struct {
	Path     string               `json:"path"`
	Operator OverriderOperator    `json:"operator"`
	Value    apiextensionsv1.JSON `json:"value,omitempty"`
}

// ImageOverrider edits a part of an image reference.
type ImageOverrider struct {
	Predicate *ImagePredicate   `json:"predicate,omitempty"`
	Component ImageComponent    `json:"component"`
	Operator  OverriderOperator `json:"operator"`
	Value     string            `json:"value,omitempty"`
}

// ImagePredicate says where the image reference is.
type ImagePredicate struct {
	Path string `json:"path"`
}

// ImageComponent is Registry, Repository or Tag.
type ImageComponent string

// The components of an image reference; a digest counts as the tag.
const (
	ImageRegistry   ImageComponent = "Registry"
	ImageRepository ImageComponent = "Repository"
	ImageTag        ImageComponent = "Tag"
)

// CommandArgsOverrider edits the command or the arguments of a container.
type CommandArgsOverrider struct {
	ContainerName string            `json:"containerName"`
	Operator      OverriderOperator `json:"operator"`
	Value         []string          `json:"value,omitempty"`
}

// LabelAnnotationOverrider edits labels or annotations.
type LabelAnnotationOverrider struct {
	Operator OverriderOperator `json:"operator"`
	Value    map[string]string `json:"value,omitempty"`
}

// FieldOverrider edits JSON or YAML inside a string field.
type FieldOverrider struct {
	FieldPath string               `json:"fieldPath"`
	JSON      []JSONPatchOperation `json:"json,omitempty"`
	YAML      []YAMLPatchOperation `json:"yaml,omitempty"`
}

// JSONPatchOperation edits JSON inside a string field.
type JSONPatchOperation struct {
	SubPath  string               `json:"subPath"`
	Operator OverriderOperator    `json:"operator"`
	Value    apiextensionsv1.JSON `json:"value,omitempty"`
}

// YAMLPatchOperation edits YAML inside a string field.
type YAMLPatchOperation struct {
	SubPath  string               `json:"subPath"`
	Operator OverriderOperator    `json:"operator"`
	Value    apiextensionsv1.JSON `json:"value,omitempty"`
}

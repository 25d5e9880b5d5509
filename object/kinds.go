// SPDX-License-Identifier: Apache-2.0

package object

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kinds that other objects may need before they can exist.
var (
	CRD       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	Namespace = schema.GroupKind{Kind: "Namespace"}
)

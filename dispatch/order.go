// SPDX-License-Identifier: Apache-2.0

package dispatch

import "github.com/fairlead/fairlead/object"

// stage is when an object's turn is: every first attempt of a stage ends
// before the next stage begins. A failed one is tried again later and holds
// nobody up.
type stage int

const (
	applyFirst stage = iota // what others need to exist at all
	applyRest
	applyLast // what may refuse others
	deleteFirst
	deleteRest
	deleteLast
	stages
)

func stageOf(v Verb, id object.ID) stage {
	first, last := object.IsPrerequisite(id), webhook(id)
	switch {
	case v == Apply && first:
		return applyFirst
	case v == Apply && last:
		return applyLast
	case v == Apply:
		return applyRest
	case last:
		return deleteFirst
	case first:
		return deleteLast
	}
	return deleteRest
}

func webhook(id object.ID) bool {
	return id.Group == "admissionregistration.k8s.io"
}

// rank orders kinds inside a stage: what is referred to, then what refers to
// it; on the way out the other way round.
func rank(v Verb, id object.ID) int {
	r := 2
	switch id.Kind {
	case "ServiceAccount", "ClusterRole", "Role", "PriorityClass", "StorageClass", "PersistentVolume",
		"ConfigMap", "Secret", "ResourceQuota", "LimitRange", "NetworkPolicy":
		r = 0
	case "ClusterRoleBinding", "RoleBinding", "PersistentVolumeClaim", "Service":
		r = 1
	case "HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress":
		r = 3
	}
	if v != Apply {
		return -r
	}
	return r
}

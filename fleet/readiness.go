// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// ReadyCondition is the status of the condition Ready, "" without one.
func ReadyCondition(conditions []metav1.Condition) metav1.ConditionStatus {
	for _, c := range conditions {
		if c.Type == clusterv1alpha1.ConditionReady {
			return c.Status
		}
	}
	return ""
}

// ReadyTaints are the taints of digest §10.1, except that a cluster of unknown
// state counts as ready: a fleet in git needs no status.
func ReadyTaints(ready metav1.ConditionStatus) []corev1.Taint {
	switch ready {
	case metav1.ConditionFalse:
		return []corev1.Taint{{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
	case metav1.ConditionUnknown:
		return []corev1.Taint{{Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	}
	return nil
}

// SameExceptCapacity reports whether two versions of a cluster differ at most
// in capacity.
func SameExceptCapacity(a, b *Cluster) bool {
	return reflect.DeepEqual(a.ObjectMeta, b.ObjectMeta) && reflect.DeepEqual(a.Spec, b.Spec) &&
		reflect.DeepEqual(a.Status.APIEnablements, b.Status.APIEnablements) && ReadyCondition(a.Status.Conditions) == ReadyCondition(b.Status.Conditions)
}

// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// Cluster is a member as a placement sees it: what its document says, read
// once and asked for every binding. It is never altered.
type Cluster struct {
	*clusterv1alpha1.Cluster

	apis   map[api]bool // nil when the cluster announces none
	taints []taint      // those that turn new work away
	room   room
}

type api struct{ groupVersion, kind string }

// taint is a taint with the reason that it gives for turning work away.
type taint struct {
	corev1.Taint
	reason   string
	observed bool // it says what was observed, and stands in no document
}

// NewCluster prepares a checked and defaulted Cluster, which must not be
// altered afterwards. Besides those of its document it has taints that say what
// was observed of it.
func NewCluster(c *clusterv1alpha1.Cluster, besides ...corev1.Taint) *Cluster {
	prepared := &Cluster{Cluster: c, room: newRoom(c)}
	for _, e := range c.Status.APIEnablements {
		if prepared.apis == nil {
			prepared.apis = map[api]bool{}
		}
		for _, r := range e.Resources {
			prepared.apis[api{e.GroupVersion, r.Kind}] = true
		}
	}
	for i, t := range slices.Concat(besides, c.Spec.Taints) {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			prepared.taints = append(prepared.taints, taint{t, fmt.Sprintf(unfitTaint, taintText(t)), i < len(besides)})
		}
	}
	return prepared
}

func taintText(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

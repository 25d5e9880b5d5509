// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// Cluster is a member as a placement sees it: its document, parsed once and
// used for every binding. It is immutable.
type Cluster struct {
	*clusterv1alpha1.Cluster

	apis   map[api]bool // nil if the cluster does not list any
	taints []taint      // the ones that repel new work
	room   room
}

type api struct{ groupVersion, kind string }

// taint is a taint, and the reason it gives for rejecting work.
type taint struct {
	corev1.Taint
	reason   string
	observed bool // from an observation, not from a document
}

// NewCluster prepares a valid, defaulted Cluster, which must not be modified
// afterwards. besides are taints that come from observations, in addition to
// those of the document.
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

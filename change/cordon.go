// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead/fairlead/change/yamledit"
)

// Unschedulable is the taint of a cordoned cluster.
var Unschedulable = corev1.Taint{Key: "cluster.karmada.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}

// Cordon taints a cluster as unschedulable, or with Off removes that taint.
type Cordon struct {
	Cluster string
	Off     bool
}

func (f *Cordon) verb() string {
	if f.Off {
		return "uncordon"
	}
	return "cordon"
}

// Name returns the name from which a branch name is derived.
func (f *Cordon) Name() string { return f.verb() + "-" + f.Cluster }

// Check accepts every value.
func (f *Cordon) Check() error { return nil }

// Edit changes the Cluster document.
func (f *Cordon) Edit(s *Session) (Edit, error) {
	doc, err := s.cluster(f.Cluster)
	if err != nil {
		return Edit{}, err
	}

	is := slices.ContainsFunc(doc.Taints(), func(t corev1.Taint) bool {
		return t.Key == Unschedulable.Key && t.Effect == Unschedulable.Effect
	})
	c := Edit{clusters: map[string]yamledit.Cluster{f.Cluster: doc}, subject: "fleet: " + f.verb() + " " + f.Cluster}
	switch {
	case is != f.Off:
		c.Said = []string{fmt.Sprintf("%s cluster already %sed", f.Cluster, f.verb())}
	case f.Off:
		c.Said = []string{f.Cluster + " cluster uncordoned"}
		err = doc.Untaint(Unschedulable.Key, Unschedulable.Effect)
	default:
		c.Said = []string{f.Cluster + " cluster cordoned"}
		err = doc.Taint(Unschedulable)
	}

	return c, err
}

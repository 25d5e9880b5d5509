// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/fairlead/fairlead/api/apps/v1alpha1"
	"github.com/fairlead/fairlead/propagate/ordered"
)

// Rebalancer is a WorkloadRebalancer: the step that brings or edits it places
// what it names as if it were new (digest §1.8).
type Rebalancer struct {
	Name      string
	Workloads []ID
	Origin    Origin
	Digest    Digest // of the spec

	at []Origin // of each workload
}

// NewRebalancer validates a rebalancer. lines are as for NewPolicy.
func NewRebalancer(doc *appsv1alpha1.WorkloadRebalancer, origin Origin, lines map[string]int) (*Rebalancer, []Problem) {
	c := &check{origin: origin, lines: lines}
	r := &Rebalancer{Name: doc.Name, Origin: origin, Digest: digestJSON(doc.Spec)}
	if doc.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", appsv1alpha1.KindWorkloadRebalancer)
	}
	if len(doc.Spec.Workloads) == 0 {
		c.at("spec.workloads", "spec.workloads names no workload")
	}
	for i, w := range doc.Spec.Workloads {
		path := fmt.Sprintf("spec.workloads[%d]", i)
		gv, err := schema.ParseGroupVersion(w.APIVersion)
		if err != nil || w.APIVersion == "" || w.Kind == "" || w.Name == "" {
			c.at(path, "%s needs apiVersion, kind and name", path)
			continue
		}
		r.Workloads = append(r.Workloads, ID{Group: gv.Group, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name})
		r.at = append(r.at, Origin{origin.File, c.line(path)})
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return r, nil
}

// rebalancers has what a new or edited rebalancer names placed anew.
func (st *step) rebalancers() {
	for d := range ordered.Diff(st.prev.snapshot().Rebalancers, st.next.Snapshot.Rebalancers) {
		if !d.Has || d.Had && d.Before.Digest == d.After.Digest {
			continue
		}
		for _, id := range d.After.Workloads {
			if st.prev.Bindings.At(id.Key()) != nil {
				st.dirty[id.Key()], st.fresh[id.Key()] = true, true
			}
		}
	}
}

// unbalanced are workloads that a rebalancer names and no policy places.
func (s *State) unbalanced(r *Rebalancer) (found []Finding) {
	for i, id := range r.Workloads {
		if b := s.Bindings.At(id.Key()); b == nil || b.attached() {
			found = append(found, Finding{Code: FindingNotPlaced, Level: LevelCaution, Object: id, Origin: r.at[i],
				Message: fmt.Sprintf("%s %s names %s, which no policy places", appsv1alpha1.KindWorkloadRebalancer, r.Name, id)})
		}
	}
	return found
}

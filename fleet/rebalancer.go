// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/fairlead/fairlead/api/apps/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// Rebalancer is a WorkloadRebalancer: the step that creates or edits it places
// the named workloads from scratch (digest §1.8).
type Rebalancer struct {
	Name      string
	Workloads []object.ID
	Origin    Origin
	Digest    object.Digest // of the spec

	At []Origin // of each workload
}

// NewRebalancer validates a rebalancer. lines is as in NewPolicy.
func NewRebalancer(doc *appsv1alpha1.WorkloadRebalancer, origin Origin, lines map[string]int) (*Rebalancer, []Problem) {
	return build(rebalancers{}, doc.DeepCopy(), &check{origin: origin, lines: lines})
}

// rebalancers is the kind WorkloadRebalancer.
type rebalancers struct{}

func (rebalancers) Names() Names {
	return Names{appsv1alpha1.GroupVersion, []string{appsv1alpha1.KindWorkloadRebalancer}}
}

func (rebalancers) ID(r *Rebalancer) object.ID {
	return object.ID{Group: appsv1alpha1.GroupVersion.Group, Kind: appsv1alpha1.KindWorkloadRebalancer, Name: r.Name}
}

func (rebalancers) Key(r *Rebalancer) string    { return r.Name }
func (rebalancers) Origin(r *Rebalancer) Origin { return r.Origin }
func (rebalancers) Equal(a, b *Rebalancer) bool { return reflect.DeepEqual(a, b) }

func (rebalancers) Load(s *Snapshot) ordered.Map[*Rebalancer]       { return s.Rebalancers }
func (rebalancers) Store(s *Snapshot, all ordered.Map[*Rebalancer]) { s.Rebalancers = all }

// Prepare drops the status, which Karmada writes: a fleet is what git says.
func (rebalancers) Prepare(s *Source) ([]*Finding, []Problem) {
	delete(s.Object, "status")
	return nil, nil
}

func (rebalancers) Default(*appsv1alpha1.WorkloadRebalancer, *check) {}

func (rebalancers) Validate(doc *appsv1alpha1.WorkloadRebalancer, c *check) *Rebalancer {
	r := &Rebalancer{Name: doc.Name, Origin: c.origin, Digest: object.DigestJSON(doc.Spec)}
	if doc.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", appsv1alpha1.KindWorkloadRebalancer)
	}
	if len(doc.Spec.Workloads) == 0 {
		c.at("spec.workloads", "spec.workloads must name at least one workload")
	}

	for i, w := range doc.Spec.Workloads {
		path := fmt.Sprintf("spec.workloads[%d]", i)
		gv, err := schema.ParseGroupVersion(w.APIVersion)
		if err != nil || w.APIVersion == "" || w.Kind == "" || w.Name == "" {
			c.at(path, "%s: apiVersion, kind and name are required", path)
			continue
		}
		r.Workloads = append(r.Workloads, object.ID{Group: gv.Group, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name})
		r.At = append(r.At, Origin{c.origin.File, c.line(path)})
	}

	return r
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// defaultScheduler is the only scheduler name there is: this one.
const defaultScheduler = "default-scheduler"

// NewPolicy defaults and validates a policy as Karmada's webhooks would
// (digest §1.1, §1.2). lines maps field paths, "spec.suspension", to lines of
// origin.File as far as they are known.
func NewPolicy(kind string, meta metav1.ObjectMeta, spec policyv1alpha1.PropagationSpec, origin Origin, lines map[string]int) (*Policy, []Problem) {
	c := &check{origin: origin, lines: lines}
	p := &Policy{
		Ref:    PolicyRef{meta.Namespace, meta.Name},
		Labels: meta.Labels,

		Activate: meta.Annotations[AnnotationActivate],
		Spec:     *spec.DeepCopy(),
		Origin:   origin,
		Lines:    lines,
	}
	switch {
	case kind == policyv1alpha1.KindClusterPropagationPolicy:
		p.Ref.Namespace = ""
	case meta.Namespace == "":
		p.Ref.Namespace = metav1.NamespaceDefault
	}
	if meta.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", kind)
	}
	p.readNotes(c, meta.Annotations)
	p.defaults()
	p.checkSelectors(c)
	p.checkBehaviour(c)
	checkPlacement(c, &p.Spec.Placement)
	checkSuspension(c, p.Spec.Suspension)
	p.checkFailover(c)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	p.prepare()
	return p, nil
}

func (p *Policy) defaults() {
	s := &p.Spec
	for i := range s.ResourceSelectors {
		if r := &s.ResourceSelectors[i]; r.Namespace == "" {
			r.Namespace = p.Ref.Namespace
		}
	}
	s.PropagateDeps = s.PropagateDeps || p.selectsServiceImports()
	if s.SchedulerName == "" {
		s.SchedulerName = defaultScheduler
	}
	if s.ConflictResolution == "" {
		s.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	defaultFailover(s.Failover)
	if s.Preemption == "" {
		s.Preemption = policyv1alpha1.PreemptNever
	}
	defaultPlacement(&s.Placement)
}

func (p *Policy) checkSelectors(c *check) {
	if len(p.Spec.ResourceSelectors) == 0 {
		c.at("spec.resourceSelectors", "spec.resourceSelectors must have at least one selector")
	}
	for i, r := range p.Spec.ResourceSelectors {
		p.selectors = append(p.selectors, checkSelector(c, fmt.Sprintf("spec.resourceSelectors[%d]", i), r, p.Ref.Namespace))
	}
}

func (p *Policy) checkBehaviour(c *check) {
	s := &p.Spec
	oneOf(c, "spec.conflictResolution", s.ConflictResolution, policyv1alpha1.ConflictAbort, policyv1alpha1.ConflictOverwrite)
	oneOf(c, "spec.preemption", s.Preemption, policyv1alpha1.PreemptAlways, policyv1alpha1.PreemptNever)
	oneOf(c, "spec.activationPreference", s.ActivationPreference, "", policyv1alpha1.LazyActivation)
	if s.Preemption == policyv1alpha1.PreemptAlways {
		for i, r := range s.ResourceSelectors {
			if r.Name == "" {
				c.at("spec.preemption", "spec.preemption Always needs a name in every selector; spec.resourceSelectors[%d] has none", i)
			}
		}
	}
}

func checkSuspension(c *check, s *policyv1alpha1.Suspension) {
	if s == nil || s.Dispatching == nil || !*s.Dispatching || s.DispatchingOnClusters == nil {
		return
	}
	if len(s.DispatchingOnClusters.ClusterNames) > 0 {
		c.at("spec.suspension.dispatching", "spec.suspension: dispatching true holds every cluster and cannot stand beside dispatchingOnClusters.clusterNames")
	}
}

// selectsServiceImports: Karmada turns propagateDeps on for them (digest §1.1).
func (p *Policy) selectsServiceImports() bool {
	for _, r := range p.Spec.ResourceSelectors {
		if r.APIVersion == "multicluster.x-k8s.io/v1alpha1" && r.Kind == "ServiceImport" {
			return true
		}
	}
	return false
}

// prepare splits the spec in what places a template, which a lazy policy
// delays, and what brakes it, which acts at once (decision 11). Selectors,
// priority and preemption are in neither: they decide claims.
func (p *Policy) prepare() {
	p.placement = schedule.NewPlacement(&p.Spec.Placement)
	p.Brakes = digestJSON(brakesOf(p))
	delayed := p.Spec
	delayed.ResourceSelectors, delayed.Priority, delayed.Preemption = nil, nil, ""
	delayed.ActivationPreference = ""
	delayed.Suspension, delayed.PreserveResourcesOnDeletion = nil, nil
	p.Delayed = digestJSON(delayed)
}

// digestJSON hashes v's JSON. It is only called on values that have one.
func digestJSON(v any) Digest {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("propagate: %T has no JSON: %v", v, err))
	}
	return DigestOf(b)
}

func oneOf[T ~string](c *check, path string, got T, allowed ...T) {
	for _, a := range allowed {
		if got == a {
			return
		}
	}
	names := ""
	for _, a := range allowed {
		if a == "" {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += string(a)
	}
	c.at(path, "%s is %q, must be one of %s", path, got, names)
}

// isDNSLabel is the rule for a cluster's name.
func isDNSLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/schedule"
)

// DefaultScheduler is the only valid scheduler name.
const DefaultScheduler = "default-scheduler"

// NewPolicy defaults and validates a policy as Karmada's webhooks would (digest
// §1.1, §1.2). lines maps field paths, such as "spec.suspension", to lines of
// origin.File; it may be incomplete.
func NewPolicy(kind string, meta metav1.ObjectMeta, spec policyv1alpha1.PropagationSpec, origin Origin, lines map[string]int) (*Policy, []Problem) {
	doc := &policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: *spec.DeepCopy()}
	doc.Kind = kind
	return build(policies{}, doc, &check{origin: origin, lines: lines})
}

// policies are the kinds PropagationPolicy and ClusterPropagationPolicy, which
// have the same shape.
type policies struct{}

func (policies) Names() Names {
	return Names{policyv1alpha1.GroupVersion, []string{policyv1alpha1.KindPropagationPolicy, policyv1alpha1.KindClusterPropagationPolicy}}
}

func (policies) ID(p *Policy) object.ID  { return p.ID() }
func (policies) Key(p *Policy) string    { return p.Ref.Key() }
func (policies) Origin(p *Policy) Origin { return p.Origin }
func (policies) Equal(a, b *Policy) bool { return reflect.DeepEqual(a, b) }

// Same implements told.
func (policies) Same(a, b *Policy) bool {
	return a.Activate == b.Activate && maps.Equal(a.Labels, b.Labels) && reflect.DeepEqual(a.Spec, b.Spec) &&
		reflect.DeepEqual(a.Holds, b.Holds) && reflect.DeepEqual(a.Waves, b.Waves)
}

func (policies) Load(s *Snapshot) ordered.Map[*Policy]       { return s.Policies }
func (policies) Store(s *Snapshot, all ordered.Map[*Policy]) { s.Policies = all }

// Prepare accepts old spellings.
func (policies) Prepare(s *Source) ([]*Finding, []Problem) { return renameSuspension(s) }

func (policies) Default(doc *policyv1alpha1.PropagationPolicy, _ *check) {
	doc.Namespace = ownNamespace(doc.Kind, doc.Namespace)
	s := &doc.Spec
	for i := range s.ResourceSelectors {
		if r := &s.ResourceSelectors[i]; r.Namespace == "" {
			r.Namespace = doc.Namespace
		}
	}

	s.PropagateDeps = s.PropagateDeps || selectsServiceImports(s.ResourceSelectors)
	if s.SchedulerName == "" {
		s.SchedulerName = DefaultScheduler
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

// ownNamespace is the namespace of a policy or override: none if it is
// cluster-scoped.
func ownNamespace(kind, namespace string) string {
	switch {
	case kind == policyv1alpha1.KindClusterPropagationPolicy || kind == policyv1alpha1.KindClusterOverridePolicy:
		return ""
	case namespace == "":
		return metav1.NamespaceDefault
	}
	return namespace
}

func (policies) Validate(doc *policyv1alpha1.PropagationPolicy, c *check) *Policy {
	p := &Policy{
		Ref:    PolicyRef{doc.Namespace, doc.Name},
		Labels: doc.Labels, Annotations: doc.Annotations,

		Activate: doc.Annotations[AnnotationActivate],
		Spec:     doc.Spec,
		Origin:   c.origin,
		Unit:     c.unit,
		Lines:    c.lines,
	}
	if doc.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", doc.Kind)
	}

	p.readNotes(c, doc.Annotations)
	p.checkSelectors(c)
	p.checkBehaviour(c)
	checkPlacement(c, &p.Spec.Placement)
	checkSuspension(c, p.Spec.Suspension)
	p.checkFailover(c)
	if len(c.problems) > 0 {
		return nil
	}

	p.prepare()
	return p
}

func (p *Policy) checkSelectors(c *check) {
	if len(p.Spec.ResourceSelectors) == 0 {
		c.at("spec.resourceSelectors", "spec.resourceSelectors must have at least one selector")
	}
	for i, r := range p.Spec.ResourceSelectors {
		p.Selectors = append(p.Selectors, checkSelector(c, fmt.Sprintf("spec.resourceSelectors[%d]", i), r, p.Ref.Namespace))
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
		c.at("spec.suspension.dispatching", "spec.suspension: dispatching true suspends every cluster and cannot be combined with dispatchingOnClusters.clusterNames")
	}
}

// selectsServiceImports reports whether a policy selects ServiceImports, for
// which Karmada turns on propagateDeps (digest §1.1).
func selectsServiceImports(selectors []policyv1alpha1.ResourceSelector) bool {
	for _, r := range selectors {
		if r.APIVersion == "multicluster.x-k8s.io/v1alpha1" && r.Kind == "ServiceImport" {
			return true
		}
	}
	return false
}

// prepare divides the spec into the fields that place a template, which a lazy
// policy delays, and the brakes, which act at once (decision 11). Selectors,
// priority and preemption are in neither: they decide claims.
func (p *Policy) prepare() {
	p.Placement = schedule.NewPlacement(&p.Spec.Placement)
	p.Immediate = object.DigestJSON(ImmediateOf(p))
	delayed := p.Spec
	delayed.ResourceSelectors, delayed.Priority, delayed.Preemption = nil, nil, ""
	delayed.ActivationPreference = ""
	delayed.Suspension, delayed.PreserveResourcesOnDeletion = nil, nil
	p.Delayed = object.DigestJSON(delayed)
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

// isDNSLabel is the rule for cluster names.
func isDNSLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// UnknownClusters returns a finding for each name in a policy that is not the
// name of a Cluster document.
func (s *Snapshot) UnknownClusters(p *Policy) []Finding {
	n := &namedClusters{fleet: s, policy: p.Ref, by: p.Ref.String(), at: p.At}
	const placement = "spec.placement"
	n.affinity(placement+".clusterAffinity", p.Spec.Placement.ClusterAffinity)

	for i := range p.Spec.Placement.ClusterAffinities {
		term := &p.Spec.Placement.ClusterAffinities[i]
		path := fmt.Sprintf("%s.clusterAffinities[%d]", placement, i)
		n.affinity(path, &term.ClusterAffinity)
		for j := range term.OverflowAffinities {
			n.affinity(fmt.Sprintf("%s.overflowAffinities[%d]", path, j), &term.OverflowAffinities[j].ClusterAffinity)
		}
	}

	if r := p.Spec.Placement.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		for i, w := range r.WeightPreference.StaticWeightList {
			n.affinity(fmt.Sprintf("%s.replicaScheduling.weightPreference.staticWeightList[%d].targetCluster", placement, i), &w.TargetCluster)
		}
	}

	if sus := p.Spec.Suspension; sus != nil && sus.DispatchingOnClusters != nil {
		n.check("spec.suspension.dispatchingOnClusters.clusterNames", sus.DispatchingOnClusters.ClusterNames)
	}

	for _, wave := range p.Waves {
		n.check(annotationPath(fleetv1alpha1.AnnotationWaves), wave)
	}

	return n.found
}

// UnknownWaves returns a finding for each cluster that the waves of fairlead.yaml name
// and the fleet does not have.
func (s *Snapshot) UnknownWaves() []Finding {
	if s.Settings == nil {
		return nil
	}

	n := namedClusters{fleet: s, by: SettingsFile, at: func(string) Origin { return s.Settings.Origin }}
	for _, wave := range s.Settings.Waves() {
		n.check("spec.waves", wave)
	}
	return n.found
}

// UnknownHeld returns a finding for each cluster that a template's own annotation
// holds and that the fleet does not have.
func (s *Snapshot) UnknownHeld(t *Template) []Finding {
	n := &namedClusters{fleet: s, by: t.ID.String(), at: func(string) Origin { return t.Origin }}
	_, names := t.Suspended()
	n.check(annotationPath(fleetv1alpha1.AnnotationHold), names)
	return n.found
}

// UnknownTargets returns a finding for each cluster that a rule of an override
// names and the fleet does not have.
func (s *Snapshot) UnknownTargets(o *Override) []Finding {
	n := &namedClusters{fleet: s, by: o.Ref.String(), at: func(path string) Origin {
		c := check{origin: o.Origin, lines: o.Lines}
		return Origin{o.Origin.File, c.line(path)}
	}}
	n.affinity("spec.targetCluster", o.Spec.TargetCluster)

	for i := range o.Spec.OverrideRules {
		n.affinity(fmt.Sprintf("spec.overrideRules[%d].targetCluster", i), o.Spec.OverrideRules[i].TargetCluster)
	}

	return n.found
}

// namedClusters collects the names in a document that are not in the fleet.
type namedClusters struct {
	fleet  *Snapshot
	policy PolicyRef // zero for an override
	by     string
	at     func(path string) Origin
	found  []Finding
}

func (n *namedClusters) affinity(path string, a *policyv1alpha1.ClusterAffinity) {
	if a != nil {
		n.check(path+".clusterNames", a.ClusterNames)
		n.check(path+".exclude", a.ExcludeClusters)
	}
}

func (n *namedClusters) check(path string, names []string) {
	for _, name := range names {
		if _, ok := n.fleet.Clusters.Get(name); !ok {
			n.found = append(n.found, Finding{Code: FindingUnknownCluster, Severity: SeverityCaution, Policy: n.policy, Clusters: []string{name},
				Origin: n.at(path), Message: fmt.Sprintf("%s names cluster %q, which is not in the fleet", n.by, name)})
		}
	}
}

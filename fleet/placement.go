// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/schedule"
)

// defaultPlacement sets the defaults of Karmada's webhooks (digest §1.2).
func defaultPlacement(p *policyv1alpha1.Placement) {
	for i := range p.SpreadConstraints {
		c := &p.SpreadConstraints[i]
		if c.SpreadByField == "" && c.SpreadByLabel == "" {
			c.SpreadByField = policyv1alpha1.SpreadByCluster
		}
		if c.MinGroups == 0 {
			c.MinGroups = 1
		}
	}

	r := p.ReplicaScheduling
	if r == nil {
		return
	}

	if r.ReplicaSchedulingType == "" {
		r.ReplicaSchedulingType = policyv1alpha1.Divided
	}
	if r.ReplicaSchedulingType == policyv1alpha1.Divided && r.ReplicaDivisionPreference == "" {
		r.ReplicaDivisionPreference = policyv1alpha1.Weighted
	}
}

const placementPath = "spec.placement"

func checkPlacement(c *check, p *policyv1alpha1.Placement) {
	if p.ClusterAffinity != nil && p.ClusterAffinities != nil {
		c.at(placementPath+".clusterAffinities", "spec.placement: clusterAffinities cannot co-exist with clusterAffinity")
	}

	checkAffinity(c, placementPath+".clusterAffinity", p.ClusterAffinity)
	checkGroups(c, p)

	for i := range p.ClusterTolerations {
		checkToleration(c, fmt.Sprintf("%s.clusterTolerations[%d]", placementPath, i), &p.ClusterTolerations[i])
	}

	checkSpread(c, p.SpreadConstraints)
	checkScheduling(c, p.ReplicaScheduling)
}

func checkScheduling(c *check, r *policyv1alpha1.ReplicaSchedulingStrategy) {
	if r == nil {
		return
	}

	const path = placementPath + ".replicaScheduling"
	oneOf(c, path+".replicaSchedulingType", r.ReplicaSchedulingType, policyv1alpha1.Duplicated, policyv1alpha1.Divided)
	oneOf(c, path+".replicaDivisionPreference", r.ReplicaDivisionPreference, "", policyv1alpha1.Aggregated, policyv1alpha1.Weighted)
	if r.WeightPreference == nil {
		return
	}

	for i, w := range r.WeightPreference.StaticWeightList {
		at := fmt.Sprintf("%s.weightPreference.staticWeightList[%d]", path, i)
		if w.Weight < 1 {
			c.at(at+".weight", "%s.weight is %d, must be at least 1", at, w.Weight)
		}
		checkAffinity(c, at+".targetCluster", &w.TargetCluster)
	}

	oneOf(c, path+".weightPreference.dynamicWeight", r.WeightPreference.DynamicWeight, "", policyv1alpha1.DynamicWeightByAvailableReplicas)
}

func checkAffinity(c *check, path string, a *policyv1alpha1.ClusterAffinity) {
	if a == nil {
		return
	}
	if err := schedule.CheckAffinity(a); err != nil {
		c.at(path, "%s: %v", path, err)
	}
}

// checkGroups validates clusterAffinities and their overflowAffinities.
func checkGroups(c *check, p *policyv1alpha1.Placement) {
	names := map[string]bool{}
	for i := range p.ClusterAffinities {
		term := &p.ClusterAffinities[i]
		path := fmt.Sprintf("%s.clusterAffinities[%d]", placementPath, i)
		checkAffinityName(c, path, term.AffinityName, names)
		checkAffinity(c, path, &term.ClusterAffinity)

		if len(term.OverflowAffinities) > 0 && !dividesByCapacity(p.ReplicaScheduling) {
			c.at(path+".overflowAffinities", "%s.overflowAffinities needs replicaDivisionPreference Aggregated, or a dynamicWeight", path)
		}

		tiers := map[string]bool{term.AffinityName: true}
		for j := range term.OverflowAffinities {
			tier := &term.OverflowAffinities[j]
			at := fmt.Sprintf("%s.overflowAffinities[%d]", path, j)
			checkAffinityName(c, at, tier.AffinityName, tiers)
			if isEmptyAffinity(&tier.ClusterAffinity) {
				c.at(at, "%s must select clusters", at)
			}
			checkAffinity(c, at, &tier.ClusterAffinity)
		}
	}
}

// maxAffinityName is the maximum length of an affinity group's name.
const maxAffinityName = 32

// checkAffinityName validates a name and adds it to taken.
func checkAffinityName(c *check, path, name string, taken map[string]bool) {
	at := path + ".affinityName"
	switch msgs := validation.IsQualifiedName(name); {
	case name == "":
		c.at(at, "%s is required", at)
	case len(name) > maxAffinityName:
		c.at(at, "%s %q has %d characters, at most %d are allowed", at, name, len(name), maxAffinityName)
	case len(msgs) > 0:
		c.at(at, "%s %q: %s", at, name, msgs[0])
	case taken[name]:
		c.at(at, "%s %q is used twice", at, name)
	}

	taken[name] = true
}

// dividesByCapacity reports whether a cluster can run out of capacity.
func dividesByCapacity(r *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	return r != nil && r.ReplicaSchedulingType == policyv1alpha1.Divided &&
		(r.ReplicaDivisionPreference == policyv1alpha1.Aggregated || r.WeightPreference != nil && r.WeightPreference.DynamicWeight != "")
}

func isEmptyAffinity(a *policyv1alpha1.ClusterAffinity) bool {
	return a.LabelSelector == nil && a.FieldSelector == nil && len(a.ClusterNames) == 0 && len(a.ExcludeClusters) == 0
}

// checkToleration is Kubernetes' validation of a toleration, without the operators
// that compare numbers. One without a key tolerates every
// taint that has its value; Kubernetes wants Exists there, Karmada does not (R07).
func checkToleration(c *check, path string, t *corev1.Toleration) {
	if t.Key != "" {
		for _, msg := range validation.IsQualifiedName(t.Key) {
			c.at(path+".key", "%s.key %q: %s", path, t.Key, msg)
		}
	}

	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		c.at(path+".effect", "%s.effect must be NoExecute when tolerationSeconds is set", path)
	}

	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		checkLabelValue(c, path+".value", t.Value)
	case corev1.TolerationOpExists:
		if t.Value != "" {
			c.at(path+".value", "%s.value must be empty when operator is Exists", path)
		}
	default:
		c.at(path+".operator", "%s.operator is %q, must be one of Equal, Exists", path, t.Operator)
	}

	oneOf(c, path+".effect", t.Effect, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func checkSpread(c *check, constraints []policyv1alpha1.SpreadConstraint) {
	const list = placementPath + ".spreadConstraints"
	fields := map[policyv1alpha1.SpreadFieldValue]bool{}
	for i, s := range constraints {
		path := fmt.Sprintf("%s[%d]", list, i)
		if s.SpreadByField != "" && s.SpreadByLabel != "" {
			c.at(path, "%s: spreadByField and spreadByLabel cannot be used together", path)
		}

		oneOf(c, path+".spreadByField", s.SpreadByField, "", policyv1alpha1.SpreadByCluster, policyv1alpha1.SpreadByRegion,
			policyv1alpha1.SpreadByZone, policyv1alpha1.SpreadByProvider)

		switch {
		case s.MinGroups < 0:
			c.at(path+".minGroups", "%s.minGroups is %d, must not be negative", path, s.MinGroups)
		case s.MaxGroups < 0:
			c.at(path+".maxGroups", "%s.maxGroups is %d, must not be negative", path, s.MaxGroups)
		case s.MaxGroups > 0 && s.MaxGroups < s.MinGroups:
			c.at(path+".maxGroups", "%s.maxGroups is %d, must be at least minGroups, which is %d", path, s.MaxGroups, s.MinGroups)
		}

		if s.SpreadByField == "" {
			continue
		}

		if fields[s.SpreadByField] {
			c.at(path+".spreadByField", "%s.spreadByField %q is used twice", path, s.SpreadByField)
		}

		fields[s.SpreadByField] = true
	}

	if len(fields) > 0 && !fields[policyv1alpha1.SpreadByCluster] {
		c.at(list, "%s: spreadByField cluster is required when another spreadByField is used", list)
	}
}

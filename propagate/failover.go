// SPDX-License-Identifier: Apache-2.0

package propagate

import policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"

// defaultFailover fills in what Karmada's webhook does (digest §1.1).
func defaultFailover(f *policyv1alpha1.FailoverBehavior) {
	if f == nil {
		return
	}
	if a := f.Application; a != nil {
		if a.DecisionConditions.TolerationSeconds == nil {
			a.DecisionConditions.TolerationSeconds = ptr[int32](300)
		}
		if a.PurgeMode == "" {
			a.PurgeMode = policyv1alpha1.PurgeGracefully
		}
		if a.PurgeMode == policyv1alpha1.PurgeGracefully && a.GracePeriodSeconds == nil {
			a.GracePeriodSeconds = ptr[int32](600)
		}
	}
	if c := f.Cluster; c != nil && c.PurgeMode == "" {
		c.PurgeMode = policyv1alpha1.PurgeGracefully
	}
}

// checkFailover validates what is acted on once the gate Failover is on.
func (p *Policy) checkFailover(c *check) {
	f := p.Spec.Failover
	if f == nil {
		return
	}
	if a := f.Application; a != nil {
		const path = "spec.failover.application"
		if !p.Spec.PropagateDeps {
			c.at(path, "%s needs spec.propagateDeps: true", path)
		}
		oneOf(c, path+".purgeMode", a.PurgeMode, policyv1alpha1.PurgeDirectly, policyv1alpha1.PurgeGracefully, policyv1alpha1.PurgeNever)
		if *a.DecisionConditions.TolerationSeconds < 0 {
			c.at(path+".decisionConditions.tolerationSeconds", "%s.decisionConditions.tolerationSeconds is negative", path)
		}
		switch grace := a.GracePeriodSeconds; {
		case grace == nil:
		case a.PurgeMode != policyv1alpha1.PurgeGracefully:
			c.at(path+".gracePeriodSeconds", "%s.gracePeriodSeconds is only for purgeMode Gracefully", path)
		case *grace <= 0:
			c.at(path+".gracePeriodSeconds", "%s.gracePeriodSeconds is %d, must be greater than 0", path, *grace)
		}
	}
	if f.Cluster != nil {
		oneOf(c, "spec.failover.cluster.purgeMode", f.Cluster.PurgeMode, policyv1alpha1.PurgeDirectly, policyv1alpha1.PurgeGracefully)
	}
}

func ptr[T any](v T) *T { return &v }

const noPreservation = "Karmada's gate for it is off, and there is none here"

// withoutEffect names the fields of a policy that are valid and change
// nothing as the gates stand: a reviewer should not believe that they do.
func (s *Snapshot) withoutEffect(p *Policy) []Finding {
	var found []Finding
	for _, f := range []struct {
		path, why string
		used      bool
	}{
		{"spec.failover", "the feature gate Failover is off", p.Spec.Failover != nil && !s.gate(GateFailover)},
		{"spec.failover.application.statePreservation", noPreservation, s.gate(GateFailover) && p.Spec.Failover != nil && p.Spec.Failover.Application != nil && p.Spec.Failover.Application.StatePreservation != nil},
		{"spec.failover.cluster.statePreservation", noPreservation, s.gate(GateFailover) && p.Spec.Failover != nil && p.Spec.Failover.Cluster != nil && p.Spec.Failover.Cluster.StatePreservation != nil},
		{"spec.placement.workloadAffinity", "Karmada's gate for it is off, and there is none here", p.Spec.Placement.WorkloadAffinity != nil},
		{"spec.schedulePriority", "a commit is one step, so there is no queue to order", p.Spec.SchedulePriority != nil},
	} {
		if f.used {
			found = append(found, Finding{Code: FindingNoEffect, Level: LevelNotice, Policy: p.Ref, Origin: p.At(f.path),
				Message: p.Ref.String() + ": " + f.path + " has no effect: " + f.why})
		}
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

package fleet

import policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"

// defaultFailover sets the defaults of Karmada's webhook (digest §1.1).
func defaultFailover(f *policyv1alpha1.FailoverBehavior) {
	if f == nil {
		return
	}

	if a := f.Application; a != nil {
		if a.DecisionConditions.TolerationSeconds == nil {
			a.DecisionConditions.TolerationSeconds = new(int32(300))
		}
		if a.PurgeMode == "" {
			a.PurgeMode = policyv1alpha1.PurgeGracefully
		}
		if a.PurgeMode == policyv1alpha1.PurgeGracefully && a.GracePeriodSeconds == nil {
			a.GracePeriodSeconds = new(int32(600))
		}
	}

	if c := f.Cluster; c != nil && c.PurgeMode == "" {
		c.PurgeMode = policyv1alpha1.PurgeGracefully
	}
}

// checkFailover validates the fields that take effect once the feature gate
// Failover is on.
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

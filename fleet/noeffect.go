// SPDX-License-Identifier: Apache-2.0

package fleet

const noPreservation = "it needs a feature gate of Karmada that fairlead does not have"

// NoEffect returns a finding for each field of a policy that is valid but
// changes nothing as the feature gates stand, so that no reviewer relies on it.
func (s *Snapshot) NoEffect(p *Policy) []Finding {
	var found []Finding
	for _, f := range []struct {
		path, why string
		used      bool
	}{
		{"spec.failover", "the feature gate Failover is off", p.Spec.Failover != nil && !s.Gate(GateFailover)},
		{"spec.failover.application.statePreservation", noPreservation, s.Gate(GateFailover) && p.Spec.Failover != nil && p.Spec.Failover.Application != nil && p.Spec.Failover.Application.StatePreservation != nil},
		{"spec.failover.cluster.statePreservation", noPreservation, s.Gate(GateFailover) && p.Spec.Failover != nil && p.Spec.Failover.Cluster != nil && p.Spec.Failover.Cluster.StatePreservation != nil},
		{"spec.placement.workloadAffinity", "it needs a feature gate of Karmada that fairlead does not have", p.Spec.Placement.WorkloadAffinity != nil},
		{"spec.schedulePriority", "a commit is one step, so there is no scheduling queue to order", p.Spec.SchedulePriority != nil},
	} {
		if f.used {
			found = append(found, Finding{Code: FindingNoEffect, Severity: SeverityNotice, Policy: p.Ref, Origin: p.At(f.path),
				Message: p.Ref.String() + ": " + f.path + " has no effect: " + f.why})
		}
	}

	return found
}

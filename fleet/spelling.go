// SPDX-License-Identifier: Apache-2.0

package fleet

import "fmt"

// renameSuspension accepts the suspension fields of Karmada's proposal, and
// returns a finding with their current names (decision 8).
func renameSuspension(s *Source) (findings []*Finding, wrong []Problem) {
	spec, _ := s.Object["spec"].(map[string]any)
	suspension, ok := spec["suspension"].(map[string]any)
	if !ok {
		return nil, nil
	}

	_, dispatching := suspension["dispatching"]
	_, onClusters := suspension["dispatchingOnClusters"]
	mixed, policy := dispatching || onClusters, policyOf(s)
	for _, f := range []struct{ old, now string }{
		{"suspendDispatching", "dispatching"}, {"suspendDispatchingOnClusters", "dispatchingOnClusters"},
	} {
		value, has := suspension[f.old]
		if !has {
			continue
		}

		old, now := "spec.suspension."+f.old, "spec.suspension."+f.now
		if mixed {
			wrong = append(wrong, s.problem(old, "%s is an old spelling of %s; do not use both in one policy", old, now))
			continue
		}

		findings = append(findings, &Finding{
			Code: FindingOldSpelling, Severity: SeverityNotice, Policy: policy.Ref, Object: policy.ID(), Origin: s.at(old),
			Message: fmt.Sprintf("%s is an old spelling of %s", old, now),
		})

		delete(suspension, f.old)
		suspension[f.now] = value
		s.Alias(old, now)
	}

	return findings, wrong
}

// policyOf names the policy that a document becomes.
func policyOf(s *Source) *Policy {
	kind, _ := s.Object["kind"].(string)
	meta, _ := s.Object["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	return &Policy{Ref: PolicyRef{ownNamespace(kind, namespace), name}}
}

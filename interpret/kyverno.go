// SPDX-License-Identifier: Apache-2.0

package interpret

// kyverno are the policies of Kyverno.
var kyverno = []*Kind{
	{APIVersion: "kyverno.io/v1", Kind: "ClusterPolicy", healthy: policyReady, reports: policyStatus, adds: policiesAdded},
	{APIVersion: "kyverno.io/v1", Kind: "Policy", healthy: policyReady, reports: policyStatus, adds: policiesAdded},
}

var (
	policyStatus  = &reflection{fields: []string{"ready", "conditions", "autogen", "rulecount"}}
	policiesAdded = addition{inner: []string{"rulecount"}, last: []string{"autogen"}, every: []string{"ready"}, conditions: mergedConditions}.rule()
)

// policyReady is what a policy says itself, or else its condition.
func policyReady(o observed) bool {
	if o.has("status", "ready") {
		return o.flag("status", "ready")
	}
	return ready("Succeeded")(o)
}

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
)

// Suspends returns the field by which the policy suspends a cluster, and its
// position. The policy must suspend it.
func (p *Policy) Suspends(cluster string) (string, Origin) {
	s := p.Spec.Suspension
	if s.Dispatching != nil && *s.Dispatching {
		return "suspension.dispatching holds every cluster", p.AtAny("spec.suspension.dispatching", "spec.suspension.suspendDispatching", "spec.suspension")
	}
	i := slices.Index(s.DispatchingOnClusters.ClusterNames, cluster)
	const list, old = "spec.suspension.dispatchingOnClusters", "spec.suspension.suspendDispatchingOnClusters"
	item := fmt.Sprintf(".clusterNames[%d]", i)
	return "suspension.dispatchingOnClusters names " + cluster, p.AtAny(list+item, old+item, list, old, "spec.suspension")
}

// AtAny returns the position of the first field whose line is known, or of the
// policy itself.
func (p *Policy) AtAny(fields ...string) Origin {
	for _, field := range fields {
		if line := p.Lines[field]; line != 0 {
			return Origin{p.Origin.File, line}
		}
	}
	return p.Origin
}

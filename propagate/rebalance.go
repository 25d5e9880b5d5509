// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"

	appsv1alpha1 "github.com/fairlead/fairlead/api/apps/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
)

// unbalanced are workloads that a rebalancer names and no policy places.
func unbalanced(s *State, r *fleet.Rebalancer) (found []fleet.Finding) {
	for i, id := range r.Workloads {
		if b := s.Bindings.At(id.Key()); b == nil || b.attached() {
			found = append(found, fleet.Finding{Code: fleet.FindingNotPlaced, Severity: fleet.SeverityCaution, Object: id, Origin: r.At[i],
				Message: fmt.Sprintf("%s %s names %s, which no policy places", appsv1alpha1.KindWorkloadRebalancer, r.Name, id)})
		}
	}
	return found
}

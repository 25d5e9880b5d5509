// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// OverrideFailures are the works without content to send, because an override or a
// script fails on them: one finding for each template and reason. nowhere is how many
// templates can be sent to none of their clusters. A plan tells of each work instead.
func (s *State) OverrideFailures() (all []fleet.Finding, nowhere int) {
	for b := range s.Bindings.Values() {
		failed := 0
		at := map[string]int{}
		for i := range b.Works {
			w := &b.Works[i]
			if w.Blocked == "" {
				continue
			}

			failed++
			n, known := at[w.Blocked]
			if !known {
				n = len(all)
				at[w.Blocked] = n
				all = append(all, fleet.Finding{Code: fleet.FindingOverrideFailed, Severity: fleet.SeverityError, Object: b.ID, Origin: origin(b, s), Message: w.Blocked})
			}
			all[n].Clusters = append(all[n].Clusters, w.Cluster)
		}

		if failed > 0 && failed == len(b.Works) {
			nowhere++
		}
	}

	for i := range all {
		all[i].Message = fmt.Sprintf("%s cannot be sent to %s: %s", all[i].Object, strings.Join(all[i].Clusters, ", "), all[i].Message)
	}
	return all, nowhere
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// FindingReleasedBeforeHold is the code of the finding that a change does more when its
// commits land one by one.
const FindingReleasedBeforeHold = "released-before-hold"

// SplitFindings compares a change as one step with its commits one by one, and returns
// a caution for each template of which some commit releases to a cluster what a later
// one holds (decision 38). merged and each are the states after the one and the other.
func SplitFindings(merged, each *propagate.State) (found []fleet.Finding) {
	for b := range merged.Bindings.Values() {
		var clusters []string
		for i := range b.Works {
			w := &b.Works[i]
			if w.Held && releasesMore(w, each.Bindings.At(b.Key())) {
				clusters = append(clusters, w.Cluster)
			}
		}
		if clusters == nil {
			continue
		}
		found = append(found, fleet.Finding{Code: FindingReleasedBeforeHold, Severity: fleet.SeverityCaution, Object: b.ID, Clusters: clusters,
			Message: fmt.Sprintf("%s: on %s one of the commits releases what the hold keeps back when they come as one; hold it in the first commit", b.ID, strings.Join(clusters, ", "))})
	}
	return found
}

// releasesMore reports whether a binding released something else to the cluster of a
// held work.
func releasesMore(w *propagate.Work, each *propagate.Binding) bool {
	if each == nil {
		return false
	}
	other := each.Work(w.Cluster)
	if other == nil || other.Released == nil {
		return false
	}
	return w.Released == nil || w.Released.Digest != other.Released.Digest
}

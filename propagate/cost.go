// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"

	"github.com/fairlead/fairlead/fleet"
)

// Limits of a step, counted while it is made (decision 43). They are far above what a
// fleet needs: 10,000 templates on 100 clusters are half of maxWorks.
const (
	maxWorks    = 2_000_000
	maxRendered = 8 << 30  // bytes of the objects that overrides and scripts edit
	maxKept     = 64 << 20 // bytes of them that are kept for the next cluster
)

// maxScripted is how many steps the scripts of a commit may take together. Tests
// lower it.
var maxScripted = 20_000_000_000

// cost is what a step has done so far.
type cost struct{ rendered, scripted int }

// tooMuch is why a step is refused for what it costs; nil as long as it is not.
func (st *step) tooMuch() *fleet.Problem {
	switch {
	case st.next.Works > maxWorks:
		return &fleet.Problem{Message: fmt.Sprintf("the policies would make more than %d works, one for each template on each of its clusters", maxWorks)}
	case st.in.cost.rendered > maxRendered:
		return &fleet.Problem{Message: fmt.Sprintf("the overrides would edit more than %d bytes of objects", maxRendered)}
	case st.in.cost.scripted > maxScripted:
		return &fleet.Problem{Message: fmt.Sprintf("the scripts of ResourceInterpreterCustomizations would take more than %d steps", maxScripted)}
	}
	return nil
}

// overloaded reports whether the step will be refused, whatever is decided next. What
// it takes from bindings that were there before cannot be more than these had.
func (st *step) overloaded() bool {
	return st.next.Works > maxWorks+st.prev.Works || st.in.cost.rendered > maxRendered || st.in.cost.scripted > maxScripted
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/fairlead/fairlead/fleet"

// preemptor is the policy that takes a claimed template from the one that has
// it, nil when none may (digest §2.8, decision 14). It is searched in every
// step, not only when a preempting policy changed (fold rule 11).
func (c claims) preemptor(t *fleet.Template, held *fleet.Policy) *fleet.Policy {
	if !c.after.Gate(fleet.GatePreemption) {
		return nil
	}
	return c.index.bestOf(t, func(p *fleet.Policy) bool { return p.Preempts(held) })
}

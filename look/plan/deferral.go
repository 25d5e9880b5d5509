// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// Deferral is a policy whose change waits for the templates that it matches to change.
type Deferral struct {
	Policy string `json:"policy"`
	// Matched is how many templates the policy claims, Activated those of them that
	// this change takes along, and Deferred how many keep what they have.
	Matched   int             `json:"matched"`
	Activated []report.Object `json:"activated"`
	Deferred  int             `json:"deferred"`
	// Already is how many of Deferred waited before this change.
	Already int `json:"already"`
}

// deferrals sums up the deferred cells by policy.
func (r *Plan) deferrals(head *propagate.State, cells []propagate.Cell) {
	r.Deferred = []Deferral{}
	byPolicy := map[fleet.PolicyRef]*Deferral{}
	each(cells, func(c *propagate.Cell) {
		if c.Disposition != propagate.Deferred {
			return
		}
		if byPolicy[c.Policy] == nil {
			byPolicy[c.Policy] = &Deferral{Policy: c.Policy.Name, Activated: []report.Object{}}
		}
		byPolicy[c.Policy].Deferred++
		if c.Already {
			byPolicy[c.Policy].Already++
		}
	})
	if len(byPolicy) == 0 {
		return
	}

	each(cells, func(c *propagate.Cell) {
		if d := byPolicy[c.Policy]; d != nil && c.Disposition == propagate.Now {
			d.Activated = append(d.Activated, report.Object{APIVersion: c.APIVersion, Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name})
		}
	})
	for b := range head.Bindings.Values() {
		if b.Claim != nil && byPolicy[*b.Claim] != nil {
			byPolicy[*b.Claim].Matched++
		}
	}

	for _, d := range byPolicy {
		r.Deferred = append(r.Deferred, *d)
	}
	slices.SortFunc(r.Deferred, func(a, b Deferral) int { return cmp.Compare(a.Policy, b.Policy) })
}

// each calls of with one cell of each object, policy and disposition. Cells are sorted by
// object.
func each(cells []propagate.Cell, of func(*propagate.Cell)) {
	type one struct {
		policy      fleet.PolicyRef
		disposition propagate.Disposition
	}
	var seen map[one]bool
	for i := range cells {
		c := &cells[i]
		if i == 0 || cells[i-1].Object != c.Object {
			seen = map[one]bool{}
		}
		if at := (one{c.Policy, c.Disposition}); !seen[at] {
			seen[at] = true
			of(c)
		}
	}
}

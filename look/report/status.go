// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/fairlead/fairlead/look/status"
)

// Status is what clusters have, in Karmada's terms.
type Status struct {
	// Objects are the bindings, each with the status of its copies, and behind it
	// the template with the status that the copies add up to, where its kind has
	// one. Their JSON is that of their API groups.
	Objects []any
	// Notes say which status could not be aggregated, and why.
	Notes []string
}

// NewStatus reads the status of rows off a fleet that was inspected. A removed
// template has none.
func NewStatus(f *status.Fleet, rows []Row) *Status {
	s := &Status{}
	for _, r := range rows {
		if r.Binding == nil {
			continue
		}

		copies := status.Copies(f.Cells[r.ID])
		s.Objects = append(s.Objects, f.State.MemberStatus(r.Binding, copies))
		sum, err := f.State.Aggregated(r.Binding, copies)
		switch {
		case err != nil:
			s.Notes = append(s.Notes, fmt.Sprintf("status of %s: %v", r.ID, err))
		case sum != nil:
			s.Objects = append(s.Objects, sum)
		}
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// RefusalLines returns a line for each reason why a state's head is refused or awaits
// confirmation, and one with the commit that stays in effect; nil if it is accepted.
func RefusalLines(s *propagate.State) []string {
	r := s.Refusal
	if r == nil {
		return nil
	}

	var lines []string
	for _, p := range r.Problems {
		verdict := "is refused: "
		if r.Guard != nil {
			verdict = "" // the guard's own problems say that it awaits confirmation
		}
		lines = append(lines, fmt.Sprintf("commit %s %s%s", source.Short(r.Commit), verdict, p.Error()))
	}

	if s.Accepted == "" {
		return append(lines, "no commit was accepted yet, so the fleet is empty; "+HowToBegin)
	}
	return append(lines, fmt.Sprintf("the fleet stays as of %s", source.Short(s.Accepted)))
}

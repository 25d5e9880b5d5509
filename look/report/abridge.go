// SPDX-License-Identifier: Apache-2.0

package report

import (
	"iter"

	"github.com/fairlead/fairlead/fleet"
)

// MostAlike is how many findings with one code people are shown: whoever misspells a
// selector gets one for each template.
const MostAlike = 5

// Abridge yields the findings, but of those that share a code only the first, where they
// are more than most. With the last one that is shown comes how many more there are.
// Errors are all there.
func Abridge[F any](findings []F, most int, kind func(F) (fleet.Severity, string)) iter.Seq2[F, int] {
	total := map[string]int{}
	for _, f := range findings {
		_, code := kind(f)
		total[code]++
	}

	return func(yield func(F, int) bool) {
		shown := map[string]int{}
		for _, f := range findings {
			severity, code := kind(f)
			shown[code]++

			more := 0
			if severity != fleet.SeverityError && total[code] > most {
				if shown[code] >= most {
					continue
				}
				if shown[code] == most-1 {
					more = total[code] - shown[code]
				}
			}
			if !yield(f, more) {
				return
			}
		}
	}
}

// KindOf is what Abridge asks of a finding.
func KindOf(f fleet.Finding) (fleet.Severity, string) { return f.Severity, f.Code }

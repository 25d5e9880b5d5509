// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// The codes of findings about what the messages of a change say (decision 46).
const (
	FindingConfirmedHere = "confirmed-here"
	FindingBeginHere     = "begin-here"
)

// TrailerFindings returns a caution for each commit of a change whose message
// confirms something or moves the beginning of the fold: whoever wrote the change
// says so, and not whoever reviews it.
func TrailerFindings(commits []*source.Commit) (found []fleet.Finding) {
	for _, c := range commits {
		for _, t := range c.Trailers {
			f := fleet.Finding{Code: FindingConfirmedHere, Severity: fleet.SeverityCaution}
			line := t.Key + ": " + t.Value
			switch t.Key {
			case propagate.TrailerAllowDelete:
				f.Message = fmt.Sprintf("commit %s of %s confirms deletions (%s); after a merge commit, only what that commit's own message says counts", source.Short(c.Hash), report.NameOf(c.Author), line)
			case propagate.TrailerAllowRewrite:
				f.Message = fmt.Sprintf("commit %s of %s accepts a rewritten branch (%s)", source.Short(c.Hash), report.NameOf(c.Author), line)
			case history.TrailerBegin:
				f.Code = FindingBeginHere
				f.Message = fmt.Sprintf("commit %s of %s moves the beginning of the fold (%s): without a checkpoint, what came before it counts no more", source.Short(c.Hash), report.NameOf(c.Author), line)
			default:
				continue
			}
			found = append(found, f)
		}
	}
	return found
}

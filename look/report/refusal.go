// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Refusal is why a head is not in effect, and since which commit.
type Refusal struct {
	// Verdict is "refused" or "awaiting-confirmation".
	Verdict string `json:"verdict"`
	// Commit is the first one after the last accepted one.
	Commit   string   `json:"commit"`
	Subject  string   `json:"subject"`
	Author   string   `json:"author"`
	Waiting  int      `json:"waiting"` // commits behind it
	Accepted string   `json:"accepted"`
	Reasons  []string `json:"reasons"` // of the head
	Trailer  string   `json:"trailer,omitempty"`
}

// The verdicts of a Refusal.
const (
	VerdictRefused              = "refused"
	VerdictAwaitingConfirmation = "awaiting-confirmation"
)

// NewRefusal returns why the head of a state is not in effect; nil if it is.
func NewRefusal(states *history.States, s *propagate.State) (*Refusal, error) {
	if s.Refusal == nil {
		return nil, nil
	}
	line, err := states.Commits(s.Accepted, s.Commit)
	if err != nil {
		return nil, err
	}

	r := &Refusal{Verdict: VerdictRefused, Accepted: s.Accepted, Waiting: len(line) - 1}
	r.Commit, r.Subject, r.Author = line[0].Hash, line[0].Subject, NameOf(line[0].Author)
	for _, p := range s.Refusal.Problems {
		r.Reasons = append(r.Reasons, p.Error())
	}
	if g := s.Refusal.Guard; g != nil {
		r.Verdict, r.Reasons, r.Trailer = VerdictAwaitingConfirmation, g.Reasons, g.Trailer()
	}
	return r, nil
}

// Text reads "AWAITS CONFIRMATION since 686dbfd "oops" (mara): it deletes 25 works; 2
// commits wait behind it".
func (r *Refusal) Text() string {
	verdict := "REFUSED"
	if r.Verdict == VerdictAwaitingConfirmation {
		verdict = "AWAITS CONFIRMATION"
	}
	text := fmt.Sprintf("%s since %s %q (%s): %s", verdict, source.Short(r.Commit), r.Subject, r.Author, firstOf(r.Reasons))
	if r.Waiting > 0 {
		text += fmt.Sprintf("; %s behind it", waits(r.Waiting))
	}
	return text
}

func waits(commits int) string {
	if commits == 1 {
		return "1 commit waits"
	}
	return fmt.Sprintf("%d commits wait", commits)
}

// firstOf is the first reason, and how many more there are.
func firstOf(reasons []string) string {
	text, _, _ := strings.Cut(reasons[0], "\n")
	if more := len(reasons) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// FindingBaseStuck is the code of the finding that the base of a plan is not in effect.
const FindingBaseStuck = "base-not-in-effect"

// BaseFindings returns a caution if the base of a plan is refused or awaits
// confirmation: what it changes is part of what the plan shows.
func BaseFindings(states *history.States, base *propagate.State) ([]fleet.Finding, error) {
	r, err := NewRefusal(states, base)
	if r == nil || err != nil {
		return nil, err
	}
	f := fleet.Finding{Code: FindingBaseStuck, Severity: fleet.SeverityCaution,
		Message: "the base is not in effect, so its changes are part of this plan: " + r.Text()}
	if r.Trailer != "" {
		// Not the finding's own trailer: that would confirm this change.
		f.Message += "; " + r.Trailer + " in a later commit's message confirms it"
	}
	return []fleet.Finding{f}, nil
}

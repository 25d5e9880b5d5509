// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/propagate"
)

// alarm is a deletion, a caution or an error of a plan: what reviewers should hear of
// when a push adds it.
type alarm struct {
	key     string // what makes it another one
	kind    string // deletion, error or caution
	what    string // what stands before the object, in words of ours and code spans
	object  string // "" if the finding names none
	cluster string // of a deletion
}

// alarms returns those of a plan, deletions first. A generated object that another one
// takes the place of is no deletion.
func alarms(p *plan.Plan) []alarm {
	replaced := map[string]bool{}
	for _, c := range p.Changes {
		replaced[c.ID] = c.ReplacedBy != ""
	}

	var all []alarm
	for i := range p.Cells {
		c := &p.Cells[i]
		if c.Action == propagate.ActionDelete && (c.Disposition == propagate.Now || c.Disposition == propagate.Released) && !replaced[c.Change] {
			name := c.Object.Text()
			all = append(all, alarm{keyOf("delete", name, c.Cluster), "deletion", "deletes", name, c.Cluster})
		}
	}

	for i := range p.Findings {
		f := &p.Findings[i]
		if f.Severity != fleet.SeverityError && f.Severity != fleet.SeverityCaution || f.Code == plan.FindingPositionDiffers {
			continue // what a cluster runs is no doing of the change
		}
		name := ""
		if f.Object != nil {
			name = f.Object.Text()
		}
		about := codeSpan(f.Code)
		if f.Policy != "" {
			about += " of policy " + codeSpan(cutTo(f.Policy, mostName))
		}
		all = append(all, alarm{keyOf(f.Code, name, f.Policy), string(f.Severity), string(f.Severity) + " " + about, name, ""})
	}
	return all
}

func keyOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// keys are those of all alarms, sorted, each once.
func keys(all []alarm) []string {
	found := make([]string, 0, len(all))
	for _, a := range all {
		found = append(found, a.key)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// added returns the alarms that a plan has and an earlier one had not. Where that one
// had too many to remember them, all are returned when there are more of them now.
func added(now []alarm, before record) []alarm {
	if len(before.Keys) < before.Alarms {
		if len(keys(now)) > before.Alarms {
			return now
		}
		return nil
	}

	var more []alarm
	for _, a := range now {
		if !slices.Contains(before.Keys, a.key) {
			more = append(more, a)
		}
	}
	return more
}

// Bounds of the short comment.
const (
	mostLines = 10
	mostNames = 5
	mostName  = 150 // bytes
)

// lines are alarms as a list, with the clusters of a deletion in one line.
func lines(all []alarm) string {
	type row struct {
		alarm
		clusters []string
	}
	var rows []*row
	at := map[string]*row{}
	for _, a := range all {
		id := a.what + "\x00" + a.object
		if at[id] == nil {
			at[id] = &row{alarm: a}
			rows = append(rows, at[id])
		}
		if a.cluster != "" {
			at[id].clusters = append(at[id].clusters, a.cluster)
		}
	}

	var b strings.Builder
	for i, r := range rows {
		if i == mostLines {
			fmt.Fprintf(&b, "- and %d more\n", len(rows)-i)
			break
		}
		b.WriteString("- " + r.what)
		if r.object != "" {
			b.WriteString(" " + codeSpan(cutTo(r.object, mostName)))
		}
		if len(r.clusters) > 0 {
			b.WriteString(" on " + clusterNames(r.clusters))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func clusterNames(clusters []string) string {
	var spans []string
	for _, c := range clusters[:min(len(clusters), mostNames)] {
		spans = append(spans, codeSpan(cutTo(c, mostName)))
	}
	text := strings.Join(spans, ", ")
	if more := len(clusters) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"slices"
	"strings"
)

// TrailerAllowDelete releases a commit that is held for what it deletes.
const TrailerAllowDelete = "Fairlead-Allow-Delete"

// Deletion is an object that a step takes from a cluster.
type Deletion struct {
	Cluster string
	ID
	// Moved says that the same binding gains as many clusters in the step.
	Moved bool
}

// Guard is what a step would delete, and why that is too much (fold rule 21).
type Guard struct {
	Reasons   []string
	Deletions []Deletion
	Digest    Digest

	vanished []string // templates, when the last one goes
}

// Trailer is the line of a commit message that allows exactly this.
func (g *Guard) Trailer() string { return TrailerAllowDelete + ": " + g.Digest.String() }

// guard looks at a finished step. It returns nil when nothing about it needs
// to be confirmed, or when the commit or its like confirms it.
func (st *step) guard() *Guard {
	g := &Guard{Deletions: st.deletions}
	slices.SortFunc(g.Deletions, func(a, b Deletion) int { return strings.Compare(a.line(), b.line()) })
	g.emptied(st)
	g.excessive(st)
	if len(g.Reasons) == 0 {
		return nil
	}
	g.digest(st)
	for allowed := range st.commit.values(TrailerAllowDelete) {
		if allowed == g.Digest.String() {
			return nil
		}
	}
	return g
}

// emptied: a fleet, or a unit of it, that suddenly renders nothing is more
// likely broken than meant.
func (g *Guard) emptied(st *step) {
	before, after := st.prev.snapshot(), st.next.Snapshot
	if before.Templates.Len() > 0 && after.Templates.Len() == 0 {
		g.Reasons = append(g.Reasons, "it removes the last template of the fleet")
		for key := range before.Templates.All() {
			g.vanished = append(g.vanished, key)
		}
	}
	for _, path := range st.emptyUnits {
		g.Reasons = append(g.Reasons, fmt.Sprintf("%s rendered %s and now renders none, though its files are still there", path, count(before.Units.At(path).Objects, "object")))
	}
}

func (g *Guard) excessive(st *step) {
	counted := 0
	for _, d := range g.Deletions {
		switch d.GroupKind() {
		case crd, namespace:
			g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %s on %s, and with it everything inside", d.ID, d.Cluster))
		}
		if !d.Moved {
			counted++
		}
	}
	works := st.prev.Works
	if limit, limited := st.next.Snapshot.Settings.maxDelete(works); limited && counted > limit {
		g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %d of the fleet's %s, more than the %d that one commit may (spec.maxDelete)", counted, count(works, "work"), limit))
	}
}

// digest covers the sorted identities, so that a confirmation is good for
// these objects on these clusters and for no others.
func (g *Guard) digest(st *step) {
	var b strings.Builder
	for _, d := range g.Deletions {
		b.WriteString(d.line() + "\n")
	}
	for _, key := range g.vanished {
		b.WriteString("template\t" + key + "\n")
	}
	for _, path := range st.emptyUnits {
		b.WriteString("unit\t" + path + "\n")
	}
	g.Digest = DigestOf([]byte(b.String()))
}

func (d Deletion) line() string { return d.ID.Key() + "\t" + d.Cluster }

// problems are the reasons, each with what to do about it.
func (g *Guard) problems() []Problem {
	var problems []Problem
	for _, reason := range g.Reasons {
		problems = append(problems, Problem{Message: "held: " + reason + "; to allow it, add to a commit message: " + g.Trailer()})
	}
	return problems
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// TrailerAllowDelete confirms a commit that deletes more than the guard lets pass.
const TrailerAllowDelete = "Fairlead-Allow-Delete"

// Deletion is an object that a step takes from a cluster.
type Deletion struct {
	Cluster string
	object.ID
	// Moved says that the same binding gains as many clusters in the step.
	Moved bool
}

// Guard is what a step would delete, and why that is too much (fold rule 21).
type Guard struct {
	Reasons   []string
	Deletions []Deletion
	Digest    object.Digest

	vanished []string // templates, when the last one goes
}

// Trailer is the line of a commit message that allows exactly this.
func (g *Guard) Trailer() string { return TrailerAllowDelete + ": " + g.Digest.String() }

// newGuard checks a finished step. It returns nil when nothing about it needs
// to be confirmed, or when the commit or its like confirms it.
func newGuard(prev, next *State, c Commit, deletions []Deletion) *Guard {
	g := &Guard{Deletions: deletions}
	slices.SortFunc(g.Deletions, func(a, b Deletion) int { return strings.Compare(a.line(), b.line()) })

	empty := emptied(prev.snapshot(), next.snapshot())
	g.vanishes(prev.snapshot(), next.snapshot(), empty)
	g.deletes(next.snapshot(), prev.Works)
	if len(g.Reasons) == 0 {
		return nil
	}

	g.digest(empty)
	for allowed := range c.values(TrailerAllowDelete) {
		if allowed == g.Digest.String() {
			return nil
		}
	}
	return g
}

// emptied are the paths of the units that rendered something and now render
// nothing.
func emptied(before, after *fleet.Snapshot) (paths []string) {
	for d := range ordered.Diff(before.Units, after.Units) {
		if d.Had && d.Has && d.Before.Objects > 0 && d.After.Objects == 0 {
			paths = append(paths, d.Key)
		}
	}
	return paths
}

// vanishes gives a reason where a fleet, or a unit of it, suddenly renders
// nothing: that is more likely broken than meant.
func (g *Guard) vanishes(before, after *fleet.Snapshot, empty []string) {
	if before.Templates.Len() > 0 && after.Templates.Len() == 0 {
		g.Reasons = append(g.Reasons, "it removes the last template of the fleet")
		for key := range before.Templates.All() {
			g.vanished = append(g.vanished, key)
		}
	}

	for _, path := range empty {
		g.Reasons = append(g.Reasons, fmt.Sprintf("%s rendered %s and now renders none, though its files are still there", path, count(before.Units.At(path).Objects, "object")))
	}
}

// deletes gives a reason where what is deleted contains other objects, or is
// too much of the works that the fleet had.
func (g *Guard) deletes(after *fleet.Snapshot, works int) {
	counted := 0
	for _, d := range g.Deletions {
		switch d.GroupKind() {
		case object.CRD, object.Namespace:
			g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %s on %s, and with it everything inside", d.ID, d.Cluster))
		}
		if !d.Moved {
			counted++
		}
	}

	if limit, limited := after.Settings.MaxDelete(works); limited && counted > limit {
		g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %d of the fleet's %s, more than the %d that one commit may (spec.maxDelete)", counted, count(works, "work"), limit))
	}
}

// digest covers the sorted identities, so that a confirmation is good for
// these objects on these clusters and for no others.
func (g *Guard) digest(empty []string) {
	var b strings.Builder
	for _, d := range g.Deletions {
		b.WriteString(d.line() + "\n")
	}

	for _, key := range g.vanished {
		b.WriteString("template\t" + key + "\n")
	}

	for _, path := range empty {
		b.WriteString("unit\t" + path + "\n")
	}

	g.Digest = object.DigestOf([]byte(b.String()))
}

func (d Deletion) line() string { return d.ID.Key() + "\t" + d.Cluster }

// problems are the reasons, each with what to do about it.
func (g *Guard) problems() []fleet.Problem {
	var problems []fleet.Problem
	for _, reason := range g.Reasons {
		problems = append(problems, fleet.Problem{Message: "awaits confirmation: " + reason + "; to allow it, add to a commit message: " + g.Trailer()})
	}
	return problems
}

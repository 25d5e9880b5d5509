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

	// Moved says that something takes its place in the step: the same binding
	// gains as many clusters that may have it (decision 44), or the same generator
	// makes an object with another hash (decision 35).
	Moved bool

	required  bool // only its owners placed it
	elsewhere bool // the same binding gains a cluster, held or not
}

// Guard is what a step would delete, and why that is too much (fold rule 21).
type Guard struct {
	Reasons   []string
	Deletions []Deletion
	Digest    object.Digest

	vanished []string // templates, when the last one goes
}

// summary is the first reasons on one line.
func (g *Guard) summary() string {
	const most = 4
	if more := len(g.Reasons) - most; more > 0 {
		return fmt.Sprintf("%s; and for %s more", strings.Join(g.Reasons[:most], "; "), count(more, "reason"))
	}
	return strings.Join(g.Reasons, "; ")
}

// Trailer is the line of a commit message that allows exactly this.
func (g *Guard) Trailer() string { return TrailerAllowDelete + ": " + g.Digest.String() }

// newGuard checks a finished step. It returns nil when nothing about it needs
// to be confirmed, or when the commit or its like confirms it. It also returns what
// the fleet deleted in the last hour: what is confirmed does not count again.
func newGuard(prev, next *State, c Commit, deletions []Deletion) (*Guard, []Deleted) {
	g := &Guard{Deletions: deletions}
	slices.SortFunc(g.Deletions, func(a, b Deletion) int { return strings.Compare(a.line(), b.line()) })
	g.replaced(prev, next)

	empty := emptied(prev.snapshot(), next.snapshot())
	recent := deletedNow(prev.Recent, prev.later(c), g.counted(), prev.Works)
	g.vanishes(prev.snapshot(), next.snapshot(), empty)
	g.cascades()
	g.lastCopies(next)
	g.tooMany(prev, next, recent)
	if len(g.Reasons) == 0 {
		return nil, recent
	}

	g.digest(empty)
	for allowed := range c.values(TrailerAllowDelete) {
		if allowed == g.Digest.String() {
			return nil, nil
		}
	}
	return g, nil
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

// cascades gives a reason for each object with which others are deleted.
func (g *Guard) cascades() {
	on := map[object.ID][]string{}
	for _, d := range g.Deletions {
		switch d.GroupKind() {
		case object.CRD, object.Namespace:
			on[d.ID] = append(on[d.ID], d.Cluster)
		}
	}

	for _, d := range g.Deletions {
		if clusters := on[d.ID]; clusters != nil {
			g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %s on %s, and with it everything inside", d.ID, someOf(clusters)))
			delete(on, d.ID)
		}
	}
}

// counted is how many works are deleted for good.
func (g *Guard) counted() (n int) {
	for _, d := range g.Deletions {
		if !d.Moved {
			n++
		}
	}
	return n
}

// tooMany gives a reason where what is deleted is too much of the works that the
// fleet had, by itself or with what was deleted in the last hour (decision 45).
func (g *Guard) tooMany(prev, next *State, recent []Deleted) {
	counted := g.counted()
	if counted == 0 {
		return
	}

	if limit, limited := maxDelete(prev, next, prev.Works); limited && counted > limit {
		g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %d of the fleet's %s, more than the %d that one commit may (spec.maxDelete)", counted, count(prev.Works, "work"), limit))
		return
	}

	all, works := together(recent)
	if limit, limited := maxDelete(prev, next, works); limited && all > limit {
		g.Reasons = append(g.Reasons, fmt.Sprintf("it deletes %s, with the commits of the last hour %d of the fleet's %s, more than the %d that may go in an hour (spec.maxDelete)", count(counted, "work"), all, count(works, "work"), limit))
	}
}

// maxDelete is the limit for a fleet with so many works. A commit that raises it
// is itself still held to the one before (decision 46).
func maxDelete(prev, next *State, works int) (limit int, limited bool) {
	before, had := prev.snapshot().Settings.MaxDelete(works)
	after, has := next.snapshot().Settings.MaxDelete(works)
	switch {
	case !had:
		return after, has
	case !has:
		return before, had
	}
	return min(before, after), true
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

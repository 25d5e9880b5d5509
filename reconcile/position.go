// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/interpret"
)

// Position is where a cluster stands with one object, compared with what the
// fold wants there.
type Position string

// The positions.
const (
	AtHead   Position = "head"     // it acknowledges what is wanted, and does well
	Rolling  Position = "rolling"  // it acknowledges it, and is not there yet
	Behind   Position = "behind"   // it runs something older
	Waiting  Position = "waiting"  // nothing was ever released to it
	Broken   Position = "failed"   // it cannot get there by itself
	Silent   Position = "unknown"  // it did not answer
	Unplaced Position = "unplaced" // nothing is wanted there, and nothing is
)

// Cell is one object on one cluster: what git decided, and what was seen.
type Cell struct {
	Object  propagate.ID
	Cluster string
	Position
	Why string // it is where it is, in words
	// Held is whether a suspension keeps new content from it, Deferred whether
	// something waits for its template to change.
	Held, Deferred bool
	// Runs is the commit that what was seen there is of.
	Runs string
	// Behind is how many commits changed what is wanted there since, First the
	// oldest of them. -1 where it runs a commit that the branch does not have.
	Behind int
	First  string
	// Arrived is whether the cluster has what was released to it, no more to
	// come and no more to go.
	Arrived bool
	// Replicas it is told to have, or where it was not seen, was released with;
	// -1 where it has none.
	Replicas int64
	Sight    *Sight // nil where nothing was seen

	wanted bool // a work of the state
}

// Answer is what one cluster said.
type Answer struct {
	Sights Sights
	Err    error // why it said nothing
}

// Cells compares what was seen of clusters with what a state wants there, by
// object and cluster. A cluster without an answer was not asked.
func Cells(state *propagate.State, answers map[string]Answer) map[propagate.ID]map[string]*Cell {
	l := newLevel(state)
	cells := map[propagate.ID]map[string]*Cell{}
	put := func(c *Cell) {
		if cells[c.Object] == nil {
			cells[c.Object] = map[string]*Cell{}
		}
		cells[c.Object][c.Cluster] = c
	}
	for b := range state.Bindings.Values() {
		deferred := map[string]bool{}
		for _, waits := range state.Waiting(b) {
			deferred[waits.Cluster] = true
		}
		for i := range b.Works {
			w := &b.Works[i]
			if answer, asked := answers[w.Cluster]; asked {
				c := l.cell(b, w, answer)
				c.Deferred = deferred[w.Cluster]
				put(c)
			}
			delete(deferred, w.Cluster)
		}
		for cluster := range deferred {
			if _, asked := answers[cluster]; asked {
				put(&Cell{Object: b.ID, Cluster: cluster, Position: Unplaced, Deferred: true, Arrived: true, Replicas: -1})
			}
		}
	}
	for a := range state.Departed.Values() {
		for _, gone := range a.Clusters {
			if c := departed(state, a.ID, gone.Cluster, answers); c != nil {
				put(c)
			}
		}
	}
	return cells
}

// departed is what is not wanted on a cluster any more and still there.
func departed(state *propagate.State, id propagate.ID, cluster string, answers map[string]Answer) *Cell {
	gone := state.Departure(cluster, id)
	seen := answers[cluster].Sights[id]
	if gone == nil || seen == nil || !seen.Ours || dispatch.Unplaced(id, seen.Digest) {
		return nil
	}
	if b := state.Bindings.At(id.Key()); b != nil && b.Work(cluster) != nil {
		return nil
	}
	why := "it is not deleted yet"
	if gone.Preserve {
		why = "it is not released yet: it bears our marks"
	}
	return &Cell{Object: id, Cluster: cluster, Position: Behind, Why: why, Runs: seen.Revision, Replicas: seen.Replicas, Sight: seen}
}

// cell compares one work with what was seen of it.
func (l level) cell(b *propagate.Binding, w *propagate.Work, answer Answer) *Cell {
	c := &Cell{Object: b.ID, Cluster: w.Cluster, Held: w.Held, Replicas: -1, wanted: true}
	if w.Released != nil && w.Released.Replicas > 0 {
		c.Replicas = w.Released.Replicas
	}
	seen := answer.Sights[b.ID]
	switch {
	case answer.Err != nil:
		c.Position, c.Why = Silent, answer.Err.Error()
		return c
	case seen == nil && w.Released == nil && w.Blocked == "":
		c.Position, c.Why, c.Arrived = Waiting, "nothing was released to it yet", true
		return c
	case seen == nil && w.Blocked != "":
		c.Position, c.Why, c.First = Broken, w.Blocked, w.Want.Revision
		return c
	case seen == nil:
		c.Position, c.Why, c.First = Broken, "it is missing", w.Want.Revision
		return c
	}
	c.Sight = seen
	switch {
	case !seen.Ours && w.Released == nil && w.Blocked == "":
		c.Position, c.Why, c.Arrived = Waiting, "nothing was released to it yet; something of that name that is not ours is there", true
		return c
	case !seen.Ours:
		c.Position, c.Why, c.First = Broken, "it is there and not ours", w.Want.Revision
		return c
	}
	if seen.Replicas >= 0 {
		c.Replicas = seen.Replicas
	}
	c.Runs = seen.Revision
	released := w.Released == nil || l.acknowledges(w, w.Released, seen)
	c.Arrived = w.Blocked == "" && (released || l.acknowledges(w, w.Want, seen))
	switch {
	case w.Blocked != "":
		c.Position, c.Why, c.First = Broken, w.Blocked, w.Want.Revision
	case !l.acknowledges(w, w.Want, seen):
		c.Position, c.Why = Behind, c.lag(w)
	case seen.Progress == interpret.Failed:
		c.Position, c.Why = Broken, seen.Why
	case seen.Progress == interpret.InProgress:
		c.Position, c.Why = Rolling, seen.Why
	default:
		c.Position = AtHead
	}
	return c
}

// lag says why a cluster is behind.
func (c *Cell) lag(w *propagate.Work) string {
	switch {
	case w.Held && c.Arrived:
		return "it is held and runs " + cmp.Or(short(c.Runs), "an unknown commit")
	case w.Held:
		return fmt.Sprintf("it is held and runs %s, and %s was released to it", cmp.Or(short(c.Runs), "an unknown commit"), releasedTo(w))
	}
	return fmt.Sprintf("it runs %s", cmp.Or(short(c.Runs), "an unknown commit"))
}

func releasedTo(w *propagate.Work) string {
	if w.Released == nil {
		return "nothing"
	}
	return short(w.Released.Revision)
}

// acknowledges is whether an object bears the digest of a content, as it is
// sent or published to the work's cluster.
func (l level) acknowledges(w *propagate.Work, content *propagate.Content, seen *Sight) bool {
	if content == nil {
		return false
	}
	digests := []string{content.Digest.String()}
	if l.pulls(w.Cluster) {
		digests = append(digests, keptDigest(content.Digest).String())
	}
	return slices.Contains(digests, seen.Digest)
}

// Copies are the cells of a binding as its status is collected.
func Copies(cells map[string]*Cell) (copies []propagate.Copy) {
	for _, c := range cells {
		if !c.wanted {
			continue // it is not the binding's any more, or not yet
		}
		copied := propagate.Copy{Message: c.Why}
		copied.Cluster = c.Cluster
		copied.Applied = c.Arrived && c.Position != Waiting
		if c.Sight != nil {
			copied.Health, copied.Status = c.Sight.Health, c.Sight.Status
		}
		copies = append(copies, copied)
	}
	return copies
}

// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// State is the state of one object on one cluster, compared with what the fold wants
// there, in the terms of kstatus.
type State string

// The states. A cell without one has nothing yet, and nothing is wanted there yet,
// but something is deferred.
const (
	Current    State = "current"     // it has what is wanted, and is healthy
	InProgress State = "in-progress" // it has what is wanted, and still rolls out
	Outdated   State = "outdated"    // it runs something older
	Pending    State = "pending"     // nothing was ever released to it
	Failed     State = "failed"      // it does not recover by itself
	Unknown    State = "unknown"     // the cluster did not answer
)

// Cell is one object on one cluster: what git decided, and what was observed.
type Cell struct {
	Object  object.ID
	Cluster string
	State
	Why string // the reason for the state, as text
	// Failure is why a run could not send or delete it, if its record tells.
	Failure string
	// Held reports whether a suspension keeps new content from it, Deferred whether a
	// change waits for its template to change.
	Held, Deferred bool
	// Runs is the commit whose content the object has.
	Runs string
	// Behind is how many commits changed what is wanted there since, and First the
	// oldest of them. Behind is -1 if the branch does not have the commit in Runs.
	Behind int
	First  string
	// Arrived reports whether the cluster has what was released to it, and nothing is
	// left to send or to delete.
	Arrived bool
	// After is what clusters are to acknowledge before the object is deleted here, or
	// has replicas taken away, of what they do not show yet.
	After []string
	// Replicas is how many the live object should have, or if it was not observed, how
	// many were released; -1 if the kind has none.
	Replicas int64
	Observed *Observation // nil if nothing was observed

	wanted bool // it is of a work of the state
	owed   bool // it is to be sent or deleted, and nothing that a user decides is in the way
}

// Answer is the result of inspecting one cluster.
type Answer struct {
	Observations Observations
	Err          error // why there are no observations
}

// Cells compares what was observed on clusters with what a state wants there, by
// object and cluster. A cluster without an answer was not inspected, and has no cells.
func Cells(state *propagate.State, answers map[string]Answer) map[object.ID]map[string]*Cell {
	l := newComparing(state)
	cells := map[object.ID]map[string]*Cell{}
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
				c.shrinks(state, b, w, answers)
				put(c)
			}
			delete(deferred, w.Cluster)
		}
		for cluster := range deferred {
			if _, asked := answers[cluster]; asked {
				put(&Cell{Object: b.ID, Cluster: cluster, Deferred: true, Arrived: true, Replicas: -1})
			}
		}
	}

	for a := range state.Tombstones.Values() {
		for _, gone := range a.Clusters {
			if c := leftover(state, a.ID, gone.Cluster, answers); c != nil {
				put(c)
			}
		}
	}

	return cells
}

// leftover returns the cell of an object that is no longer wanted on a cluster and
// still there.
func leftover(state *propagate.State, id object.ID, cluster string, answers map[string]Answer) *Cell {
	gone := state.Removal(cluster, id)
	seen := answers[cluster].Observations[id]
	if gone == nil || seen == nil || !seen.Ours || object.IsNeeded(id, seen.Digest) {
		return nil
	}
	if b := state.Bindings.At(id.Key()); b != nil && b.Work(cluster) != nil {
		return nil
	}

	why := "it is not deleted yet"
	after := missing(state, id, state.Awaits(cluster, id), answers)
	if after != nil {
		why = "it waits for " + strings.Join(after, ", ")
	}
	if gone.Preserve {
		why = "it is not released yet: it has our marks"
	}

	return &Cell{Object: id, Cluster: cluster, State: Outdated, Why: why, After: after, Runs: seen.Revision, Replicas: seen.Replicas, Observed: seen, owed: after == nil}
}

// shrinks adds which clusters have replicas to get before this one has some taken away.
func (c *Cell) shrinks(state *propagate.State, b *propagate.Binding, w *propagate.Work, answers map[string]Answer) {
	if c.State != Outdated || w.Held || c.Observed == nil || c.Observed.Replicas <= w.Want.Replicas {
		return
	}
	if c.After = missing(state, b.ID, state.AwaitsShare(b, w), answers); c.After != nil {
		c.Why += ", and waits for " + strings.Join(c.After, ", ")
	}
}

// missing returns what is awaited for an object, of which the clusters that answered do
// not show that they have it (decision 42).
func missing(state *propagate.State, id object.ID, awaited []propagate.Awaited, answers map[string]Answer) (after []string) {
	for _, a := range awaited {
		answer, asked := answers[a.Cluster]
		seen := answer.Observations[a.ID]
		switch {
		case a.Content == nil:
		case !asked, seen != nil && seen.Ours && has(state, a.Cluster, a.Content, seen):
			continue
		}
		after = append(after, a.For(id))
	}

	slices.Sort(after)
	return slices.Compact(after)
}

// cell compares one work with what was observed.
func (l comparing) cell(b *propagate.Binding, w *propagate.Work, answer Answer) *Cell {
	c := &Cell{Object: b.ID, Cluster: w.Cluster, Held: w.Held, Replicas: -1, wanted: true}
	if w.Released != nil && w.Released.Replicas > 0 {
		c.Replicas = w.Released.Replicas
	}
	seen := answer.Observations[b.ID]
	switch {
	case answer.Err != nil:
		c.State, c.Why = Unknown, answer.Err.Error()
		return c
	case seen != nil && seen.Err != nil && (w.Released != nil || w.Blocked != ""):
		c.State, c.Why, c.First = Failed, Cause(seen.Err), w.Want.Revision
		return c
	case seen != nil && seen.Err != nil:
		seen = nil
	}
	switch {
	case seen == nil && w.Released == nil && w.Blocked == "":
		c.State, c.Why, c.Arrived = Pending, "nothing was released to it yet", true
		return c
	case seen == nil && w.Blocked != "":
		c.State, c.Why, c.First = Failed, w.Blocked, w.Want.Revision
		return c
	case seen == nil && w.Held:
		c.State, c.Why, c.First = Failed, fmt.Sprintf("released by %s, and held before it arrived: it is not there", releasedTo(w)), w.Want.Revision
		return c
	case seen == nil:
		c.State, c.Why, c.First, c.owed = Failed, "it is missing", w.Want.Revision, true
		return c
	}

	c.Observed = seen
	switch {
	case !seen.Ours && w.Released == nil && w.Blocked == "":
		c.State, c.Why, c.Arrived = Pending, "nothing was released to it yet; something of that name that is not ours is there"+seen.ofFleet(), true
		return c
	case !seen.Ours:
		c.State, c.Why, c.First = Failed, "it is there and not ours"+seen.ofFleet(), w.Want.Revision
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
		c.State, c.Why, c.First = Failed, w.Blocked, w.Want.Revision
	case !l.acknowledges(w, w.Want, seen):
		c.State, c.Why, c.owed = Outdated, c.lag(w), !w.Held
	case seen.Progress == interpret.Failed:
		c.State, c.Why = Failed, seen.Why
	case seen.Progress == interpret.InProgress:
		c.State, c.Why = InProgress, seen.Why
	default:
		c.State = Current
	}

	return c
}

// ofFleet adds to a reason which other fleet has the object.
func (o *Observation) ofFleet() string {
	if o.Fleet == "" {
		return ""
	}
	return ": it belongs to the fleet " + OneLine(o.Fleet)
}

// lag returns the reason why a cluster is behind.
func (c *Cell) lag(w *propagate.Work) string {
	switch {
	case w.Held && c.Arrived:
		return "it is held and runs " + cmp.Or(source.Short(c.Runs), "an unknown commit")
	case w.Held && w.Released != nil && c.Runs == w.Released.Revision:
		return fmt.Sprintf("it is held, and is not as %s released it", releasedTo(w))
	case w.Held:
		return fmt.Sprintf("released by %s, and held before it arrived: it runs %s", releasedTo(w), cmp.Or(source.Short(c.Runs), "an unknown commit"))
	}
	return fmt.Sprintf("it runs %s", cmp.Or(source.Short(c.Runs), "an unknown commit"))
}

func releasedTo(w *propagate.Work) string {
	if w.Released == nil {
		return "nothing"
	}
	return source.Short(w.Released.Revision)
}

// acknowledges reports whether an object has the digest of a content, as it is sent
// or published to the work's cluster.
func (l comparing) acknowledges(w *propagate.Work, content *propagate.Content, seen *Observation) bool {
	return content != nil && has(l.state, w.Cluster, content, seen)
}

func has(state *propagate.State, cluster string, content *propagate.Content, seen *Observation) bool {
	digests := []string{content.Digest.String()}
	if state.Pulls(cluster) {
		digests = append(digests, object.KeptDigest(content.Digest).String())
	}
	return slices.Contains(digests, seen.Digest)
}

// Copies returns the cells of a binding as the copies whose status is collected.
func Copies(cells map[string]*Cell) (copies []propagate.Copy) {
	for _, c := range cells {
		if !c.wanted {
			continue // it is no longer the binding's, or not yet
		}
		copied := propagate.Copy{Message: c.Reason(), Runs: c.Runs}
		copied.Cluster = c.Cluster
		copied.Applied = c.Arrived && c.State != Pending
		if c.Observed != nil {
			copied.Health, copied.Status = c.Observed.Health, c.Observed.Status
		}
		copies = append(copies, copied)
	}

	return copies
}

// comparing is a state to compare members with.
type comparing struct {
	state   *propagate.State
	scalers *propagate.Scalers
}

func newComparing(state *propagate.State) comparing {
	return comparing{state, propagate.NewScalers(state)}
}

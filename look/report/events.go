// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Events prints what happened, commit by commit, for the selected objects and
// clusters.
type Events struct {
	*history.Timeline
	states   *history.States
	filter   *object.Reference
	clusters []string
	After    string           // print only what comes after this commit
	Record   []eventlog.Event // of a run, not printed yet
	state    propagate.State
	known    map[string]bool // the commits that were folded, or will be now
	out      EventsPrinter
}

// Account is what one commit did, and what a run did while the fleet was at it.
type Account struct {
	Commit   *source.Commit
	Verdict  string // accepted, refused, awaiting-confirmation
	Problems []fleet.Problem
	Changes  []propagate.Change
	Released map[object.ID]map[string][]string
	Joined   []string // clusters
	Acts     []eventlog.Event
}

// NewEvents returns the events of the objects that asked matches, on clusters. A nil
// asked selects all objects, and no clusters select all.
func NewEvents(l *history.States, asked *object.Reference, clusters []string, out EventsPrinter) *Events {
	n := &Events{states: l, out: out, filter: asked, clusters: clusters, known: map[string]bool{}, Timeline: history.NewTimeline()}
	if asked != nil {
		n.Asked = *asked
	}
	return n
}

// Fold folds on to a commit, and prints each commit on the way.
func (n *Events) Fold(head string) error {
	commits, err := n.states.Commits(n.state.Commit, head)
	if err != nil {
		return err
	}

	for _, c := range commits {
		n.known[c.Hash] = true
	}

	silent := n.After != "" && n.state.Commit == ""
	if silent && !n.known[n.After] {
		return fmt.Errorf("--since: commit %s is not among those that are folded up to %s", source.Short(n.After), source.Short(head))
	}

	early, acts := n.did()
	if !silent {
		if err := n.Acts(early); err != nil {
			return err
		}
	}
	_, err = n.states.History.Fold(n.state, commits, func(c *source.Commit, after propagate.State) error {
		n.Step(c, &n.state, &after)
		a := n.account(c, &n.state, &after)
		a.Acts = slices.DeleteFunc(acts[c.Hash], func(e eventlog.Event) bool { return !n.wants(e) })
		n.state = after
		if silent {
			silent = c.Hash != n.After
			return nil
		}
		return n.tell(a)
	})

	return err
}

// account returns the account of one commit. Its verdict is empty if the commit does
// not change the fleet.
func (n *Events) account(c *source.Commit, before, after *propagate.State) *Account {
	a := &Account{Commit: c, Verdict: "accepted", Released: map[object.ID]map[string][]string{}}
	if r := after.Refusal; r != nil && r.Commit == c.Hash {
		a.Verdict, a.Problems = "refused", r.Problems
		if r.Guard != nil {
			a.Verdict = "awaiting-confirmation"
		}
	}
	for _, h := range n.Changes {
		o := n.Objects[h.Object]
		if len(o.Entries) > 0 {
			a.Released[h.Object] = o.Entries[len(o.Entries)-1].Released
			o.Entries = nil // it is not needed again
		}
		if h.Cluster == "" || n.shows(h.Cluster) {
			a.Changes = append(a.Changes, h)
		}
	}

	if n.filter == nil && before.Snapshot != after.Snapshot {
		a.Joined = n.joined(before, after)
	}
	if before.Snapshot == after.Snapshot && before.Refusal == nil && a.Verdict == "accepted" && len(a.Changes) == 0 {
		a.Verdict = ""
	}

	return a
}

// joined returns the clusters that a commit adds to the fleet.
func (n *Events) joined(before, after *propagate.State) (names []string) {
	var was ordered.Map[*fleet.Cluster]
	if before.Snapshot != nil {
		was = before.Snapshot.Clusters
	}
	for d := range ordered.Diff(was, after.Snapshot.Clusters) {
		if !d.Had && n.shows(d.Key) {
			names = append(names, d.Key)
		}
	}

	return names
}

// Folded reports whether a commit has been folded.
func (n *Events) Folded(commit string) bool { return n.known[commit] }

func (n *Events) shows(cluster string) bool {
	return len(n.clusters) == 0 || slices.ContainsFunc(n.clusters, func(word string) bool {
		matches, _ := path.Match(word, cluster) // ClustersCalled tells of a pattern that is none
		return matches || word == cluster
	})
}

// did assigns what a run did to the commits that the fleet was at. What it did at a
// commit that is no longer on the branch goes to the commit before.
func (n *Events) did() (early []eventlog.Event, by map[string][]eventlog.Event) {
	by = map[string][]eventlog.Event{}
	at := ""
	for _, e := range n.Record {
		if n.known[e.Commit] {
			at = e.Commit
		}
		if at == "" {
			early = append(early, e)
			continue
		}
		by[at] = append(by[at], e)
	}

	n.Record = nil
	return early, by
}

// wants reports whether an act is of the selected objects and clusters.
func (n *Events) wants(e eventlog.Event) bool {
	switch {
	case e.Cluster != "" && !n.shows(e.Cluster), e.Cluster == "" && len(n.clusters) > 0:
		return false
	case n.filter == nil:
		return true
	}
	return e.Object != nil && n.filter.Matches(e.Object.ID(), n.Kinds)
}

// tell prints an account, unless nothing in it is selected. A commit that is refused
// or awaits confirmation is printed for every selected object that exists: it keeps
// everything back.
func (n *Events) tell(a *Account) error {
	chosen := n.filter != nil || len(n.clusters) > 0
	empty := len(a.Changes)+len(a.Acts)+len(a.Joined) == 0
	switch {
	case !empty:
	case a.Verdict == "", a.Verdict == "accepted" && chosen, n.filter != nil && len(n.Objects) == 0:
		return nil
	}

	a.Verdict = cmp.Or(a.Verdict, "accepted")
	return n.out.account(a, n.Timeline)
}

// Acts prints what a run did, as far as it is selected.
func (n *Events) Acts(acts []eventlog.Event) error {
	for _, e := range acts {
		if !n.wants(e) {
			continue
		}
		if err := n.out.act(e); err != nil {
			return err
		}
	}

	return nil
}

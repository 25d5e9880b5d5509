// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Fleet is a fleet as git wants it, and as observed on its clusters.
type Fleet struct {
	*history.States
	Head     string
	State    propagate.State
	Marker   object.Marker    // by what the fleet knows its objects
	Clusters []*fleet.Cluster // to inspect
	// Cells are by object and cluster. Silent has the errors of the clusters that gave
	// no answer.
	Cells  map[object.ID]map[string]*Cell
	Silent map[string]error
	// Failures are what a run has recorded, for Explain to tell of cells.
	Failures Failures

	members *Members
	now     func() time.Time
	line    []*source.Commit // of the fold up to head; nil until it is needed
	heard   map[string]time.Time
	counted map[copyAt]counted // of the head
	ready   map[string]bool    // whether clusters are ready; nil without AskReady
	fetched time.Time
}

// fetchInterval is the least time between two fetches of a remote repository.
const fetchInterval = 30 * time.Second

// Open returns the fleet of states, to be inspected through members. now is the clock.
func Open(states *history.States, members *Members, now func() time.Time) *Fleet {
	return &Fleet{States: states, members: members, Failures: Failures{}, now: now, heard: map[string]time.Time{}, fetched: now()}
}

// Fold folds up to a revision as it is now. choose selects the clusters to inspect.
func (f *Fleet) Fold(ref string, choose func(*propagate.State) ([]*fleet.Cluster, error)) error {
	head, err := f.Resolve(ref)
	if err != nil || head == f.Head {
		return err
	}
	state, err := f.At(head)
	if err != nil {
		return err
	}

	if state.Snapshot == nil {
		state.Snapshot = &fleet.Snapshot{}
	}
	f.Head, f.State, f.line, f.counted = head, state, nil, map[copyAt]counted{}
	f.Marker = f.MarkerOf(&state)
	f.Clusters, err = choose(&state)
	return err
}

// Fetch updates the mirror of a remote repository, unless it did so recently.
func (f *Fleet) Fetch(ctx context.Context) error {
	if f.now().Sub(f.fetched) < fetchInterval {
		return nil
	}
	f.fetched = f.now()
	if err := f.Repo.Fetch(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// AskReady makes Inspect read the readiness of clusters, too.
func (f *Fleet) AskReady() { f.ready = map[string]bool{} }

// Inspect inspects the clusters. One that gives no answer is in Silent, and its cells
// are Unknown. An error means that no cluster could be reached at all.
func (f *Fleet) Inspect(ctx context.Context) error {
	var mu sync.Mutex
	answers := map[string]Answer{}
	f.Silent = f.members.Each(ctx, f.Clusters, func(ctx context.Context, cluster string, r *push.Reader) error {
		ready := false
		if f.ready != nil {
			var err error
			if ready, err = r.Ready(ctx); err != nil {
				return err
			}
		}
		sights, err := Inspect(ctx, &f.State, f.Marker, cluster, r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if f.ready != nil {
			f.ready[cluster] = ready
		}
		answers[cluster] = Answer{Observations: sights}
		f.heard[cluster] = f.now()
		return nil
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := NoneAsked(len(f.Clusters), f.Silent); err != nil {
		return err
	}

	for cluster, err := range f.Silent {
		answers[cluster] = Answer{Err: errors.New(Cause(err))}
	}

	f.Cells = Cells(&f.State, answers)
	return nil
}

// Explain tells of cells what Failures has of them.
func (f *Fleet) Explain() {
	for _, c := range f.All() {
		if c.owed {
			c.Failure = f.Failures[placeOf(c).Place]
		}
	}
}

// Unexplained reports whether there are cells that Failures could explain.
func (f *Fleet) Unexplained() bool {
	return slices.ContainsFunc(f.All(), func(c *Cell) bool { return c.owed })
}

// All returns the cells of every object, sorted by object and cluster.
func (f *Fleet) All() (cells []*Cell) {
	for _, id := range f.IDs() {
		for _, cluster := range slices.Sorted(maps.Keys(f.Cells[id])) {
			cells = append(cells, f.Cells[id][cluster])
		}
	}
	return cells
}

// IDs returns the objects that have cells, sorted.
func (f *Fleet) IDs() []object.ID {
	return slices.SortedFunc(maps.Keys(f.Cells), func(a, b object.ID) int { return strings.Compare(a.Key(), b.Key()) })
}

// CountBehind counts the commits that outdated cells are behind. A count is reused
// as long as the head and the commit that the cluster runs stay the same.
func (f *Fleet) CountBehind() (err error) {
	if err := f.loadLine(); err != nil {
		return err
	}

	var unknown []*Cell
	for _, c := range f.All() {
		if was, ok := f.counted[placeOf(c)]; ok && c.State == Outdated {
			c.Behind, c.First = was.behind, was.first
			continue
		}
		unknown = append(unknown, c)
	}

	err = Lag(f.History, f.line, unknown, f.At)
	for _, c := range unknown {
		if c.State == Outdated {
			f.counted[placeOf(c)] = counted{c.Behind, c.First}
		}
	}

	return err
}

// copyAt is an object on a cluster at a commit, and counted how far that is behind.
type copyAt struct {
	propagate.Place
	commit string
}

type counted struct {
	behind int
	first  string
}

func placeOf(c *Cell) copyAt {
	return copyAt{propagate.Place{Cluster: c.Cluster, ID: c.Object}, c.Runs}
}

func (f *Fleet) loadLine() (err error) {
	if f.line == nil {
		f.line, err = f.Commits("", f.Head)
	}
	return err
}

// Reached returns the newest commit of which a cluster has everything that is not
// held; "" if that is not known.
func (f *Fleet) Reached(cluster string) string {
	if f.Silent[cluster] != nil {
		return ""
	}

	place := make(map[string]int, len(f.line))
	for i, c := range f.line {
		place[c.Hash] = i
	}

	first := len(f.line)
	for _, cells := range f.Cells {
		c := cells[cluster]
		if c == nil || c.Arrived && c.First == "" || c.Held && c.Arrived {
			continue
		}
		i, known := place[c.First]
		if !known {
			return ""
		}
		first = min(first, i)
	}

	switch first {
	case 0:
		return ""
	case len(f.line):
		return f.State.Accepted // a refused head has nothing to apply
	}

	return f.line[first-1].Hash
}

// Failed returns how many objects of a cluster have failed.
func (f *Fleet) Failed(cluster string) (n int) {
	for _, cells := range f.Cells {
		if c := cells[cluster]; c != nil && c.State == Failed {
			n++
		}
	}
	return n
}

// Observed returns a cluster's document with the condition Ready as observed.
func (f *Fleet) Observed(doc *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	is := metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "It answers and takes work."}
	switch {
	case f.Silent[doc.Name] != nil:
		is.Status, is.Reason, is.Message = metav1.ConditionUnknown, "ClusterNotReachable", Cause(f.Silent[doc.Name])
	case !f.ready[doc.Name]:
		is.Status, is.Reason, is.Message = metav1.ConditionFalse, "ClusterNotReady", "It answers that it is not ready."
	}

	doc = doc.DeepCopy()
	for i, condition := range doc.Status.Conditions {
		if condition.Type != is.Type {
			continue
		}
		if condition.Status == is.Status {
			is.LastTransitionTime = condition.LastTransitionTime
		}
		doc.Status.Conditions[i] = is
		return doc
	}

	doc.Status.Conditions = append(doc.Status.Conditions, is)
	return doc
}

// Notes returns, for each cluster that did not answer, the reason and since when. What
// a kubeconfig lacks for many is one note.
func (f *Fleet) Notes() []string {
	notes, others := member.WithoutContext(f.Silent, len(f.Clusters))
	for _, name := range slices.Sorted(maps.Keys(others)) {
		since := ""
		if at := f.unknownSince(name); !at.IsZero() {
			since = "unknown since " + at.UTC().Format(time.RFC3339) + ": "
		}
		notes = append(notes, fmt.Sprintf("%s: %s%s", name, since, Cause(f.Silent[name])))
	}
	return notes
}

// Unclear returns the reasons why the health or the status of objects is not known.
func (f *Fleet) Unclear() (notes []string) {
	for _, c := range f.All() {
		if c.Observed != nil && c.Observed.Unclear != nil {
			notes = append(notes, fmt.Sprintf("%s on %s: %s", c.Object, c.Cluster, OneLine(c.Observed.Unclear.Error())))
		}
	}
	return notes
}

// unknownSince returns when the condition of a silent cluster was last known: when it
// last answered, or when its Cluster document says that it ceased to be ready.
func (f *Fleet) unknownSince(cluster string) time.Time {
	if at, ok := f.heard[cluster]; ok {
		return at
	}

	if c := f.State.Snapshot.Clusters.At(cluster); c != nil {
		for _, condition := range c.Status.Conditions {
			if condition.Type == clusterv1alpha1.ConditionReady && condition.Status != metav1.ConditionTrue {
				return condition.LastTransitionTime.Time
			}
		}
	}

	return time.Time{}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// outlook is a fleet as git decides it and as its clusters are seen to be.
type outlook struct {
	*look
	head     string
	state    propagate.State
	ask      *asking
	clusters []*propagate.Cluster // that are asked
	line     []*source.Commit     // of the fold up to head; nil while nobody needed it

	cells   map[propagate.ID]map[string]*reconcile.Cell
	failed  map[string]error // why clusters gave no answer
	heard   map[string]time.Time
	counted map[copyAt]lagging // of the head
	ready   map[string]bool    // whether clusters take work; nil where nobody wants to know
	fetched time.Time
}

// lookAgain is the time between two looks at the clusters; the tests have
// less. fetchAgain is that between two at a repository that is elsewhere.
var lookAgain = 2 * time.Second

const fetchAgain = 30 * time.Second

// outlook folds the history up to --ref, and finds the clusters to be asked.
func (f *lookFlags) outlook(ctx context.Context, members *memberFlags, only []string) (*outlook, error) {
	l, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	o := &outlook{look: l, heard: map[string]time.Time{}, fetched: time.Now()}
	if o.ask, err = members.open(); err != nil {
		return nil, err
	}
	return o, o.fold(f.ref, only)
}

// fold takes in what git says now.
func (o *outlook) fold(ref string, only []string) error {
	head, err := o.resolve(ref)
	if err != nil || head == o.head {
		return err
	}
	state, err := o.at(head)
	if err != nil {
		return err
	}
	if state.Snapshot == nil {
		state.Snapshot = &propagate.Snapshot{}
	}
	o.head, o.state, o.line, o.counted = head, state, nil, map[copyAt]lagging{}
	o.clusters, err = chosen(&state, only)
	return err
}

// fetch brings a mirror of a repository up to date, now and then.
func (o *outlook) fetch(ctx context.Context, stderr io.Writer) {
	if time.Since(o.fetched) < fetchAgain {
		return
	}
	o.fetched = time.Now()
	if err := o.repo.Fetch(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "fairlead: %v\n", err)
	}
}

// see asks the clusters.
func (o *outlook) see(ctx context.Context) error {
	var mu sync.Mutex
	answers := map[string]reconcile.Answer{}
	o.failed = o.ask.each(ctx, o.clusters, func(ctx context.Context, cluster string, r *dispatch.Reader) error {
		ready := false
		if o.ready != nil {
			var err error
			if ready, err = r.Ready(ctx); err != nil {
				return err
			}
		}
		sights, err := reconcile.Survey(ctx, &o.state, cluster, r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if o.ready != nil {
			o.ready[cluster] = ready
		}
		answers[cluster] = reconcile.Answer{Sights: sights}
		o.heard[cluster] = time.Now()
		return nil
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := nobodyAsked(len(o.clusters), o.failed); err != nil {
		return err
	}
	for cluster, err := range o.failed {
		answers[cluster] = reconcile.Answer{Err: errors.New(cause(err))}
	}
	o.cells = reconcile.Cells(&o.state, answers)
	return nil
}

// all are the cells of every object, sorted by object and cluster.
func (o *outlook) all() (cells []*reconcile.Cell) {
	for _, id := range o.ids() {
		for _, cluster := range slices.Sorted(maps.Keys(o.cells[id])) {
			cells = append(cells, o.cells[id][cluster])
		}
	}
	return cells
}

func (o *outlook) ids() []propagate.ID {
	return slices.SortedFunc(maps.Keys(o.cells), func(a, b propagate.ID) int { return strings.Compare(a.Key(), b.Key()) })
}

// lag counts the commits that clusters are behind. What was counted holds as
// long as the head and what a cluster runs are the same.
func (o *outlook) lag() (err error) {
	if err := o.lines(); err != nil {
		return err
	}
	var unknown []*reconcile.Cell
	for _, c := range o.all() {
		if was, ok := o.counted[placeOf(c)]; ok && c.Position == reconcile.Behind {
			c.Behind, c.First = was.behind, was.first
			continue
		}
		unknown = append(unknown, c)
	}
	err = o.history.Lag(o.line, unknown, o.at)
	for _, c := range unknown {
		if c.Position == reconcile.Behind {
			o.counted[placeOf(c)] = lagging{c.Behind, c.First}
		}
	}
	return err
}

// copyAt is what runs where, and lagging how far that is behind.
type copyAt struct {
	propagate.Place
	commit string
}

type lagging struct {
	behind int
	first  string
}

func placeOf(c *reconcile.Cell) copyAt {
	return copyAt{propagate.Place{Cluster: c.Cluster, ID: c.Object}, c.Runs}
}

func (o *outlook) lines() (err error) {
	if o.line == nil {
		o.line, err = o.commits("", o.head)
	}
	return err
}

// reached is the newest commit of which a cluster has everything that is not
// held; "" where that is not known.
func (o *outlook) reached(cluster string) string {
	if o.failed[cluster] != nil {
		return ""
	}
	place := make(map[string]int, len(o.line))
	for i, c := range o.line {
		place[c.Hash] = i
	}
	first := len(o.line)
	for _, cells := range o.cells {
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
	case len(o.line):
		return o.state.Accepted // a refused head has nothing to apply
	}
	return o.line[first-1].Hash
}

// broken is how many objects of a cluster cannot get where they are to be.
func (o *outlook) broken(cluster string) (n int) {
	for _, cells := range o.cells {
		if c := cells[cluster]; c != nil && c.Position == reconcile.Broken {
			n++
		}
	}
	return n
}

// observed is a cluster's document with the condition Ready as it is now.
func (o *outlook) observed(doc *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	is := metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "It answers and takes work."}
	switch {
	case o.failed[doc.Name] != nil:
		is.Status, is.Reason, is.Message = metav1.ConditionUnknown, "ClusterNotReachable", cause(o.failed[doc.Name])
	case !o.ready[doc.Name]:
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

// silence tells on stderr which clusters did not answer, and since when.
func (o *outlook) silence(stderr io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(o.failed)) {
		since := ""
		if at := o.unknownSince(name); !at.IsZero() {
			since = "unknown since " + at.UTC().Format(time.RFC3339) + ": "
		}
		fmt.Fprintf(stderr, "fairlead: %s: %s%s\n", name, since, cause(o.failed[name]))
	}
}

// unknownSince is when a cluster that does not answer was last known: when it
// answered us, or when its Cluster document says that it ceased to be ready.
func (o *outlook) unknownSince(cluster string) time.Time {
	if at, ok := o.heard[cluster]; ok {
		return at
	}
	if c := o.state.Snapshot.Clusters.At(cluster); c != nil {
		for _, condition := range c.Status.Conditions {
			if condition.Type == clusterv1alpha1.ConditionReady && condition.Status != metav1.ConditionTrue {
				return condition.LastTransitionTime.Time
			}
		}
	}
	return time.Time{}
}

// chosen are the clusters of the fleet that were asked for: by their names, by
// globs, and by wave=N of any policy's waves.
func chosen(s *propagate.State, words []string) ([]*propagate.Cluster, error) {
	names := map[string]bool{}
	for _, word := range words {
		found, err := clustersCalled(s, word)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names[name] = true
		}
	}
	var clusters []*propagate.Cluster
	for c := range s.Snapshot.Clusters.Values() {
		if len(words) == 0 || names[c.Name] {
			clusters = append(clusters, c)
		}
	}
	return clusters, nil
}

func clustersCalled(s *propagate.State, word string) (found []string, err error) {
	if text, ok := strings.CutPrefix(word, "wave="); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, usagef("-c %s: waves are numbered from 1", word)
		}
		if found = inWave(s, n); len(found) == 0 {
			return nil, fmt.Errorf("-c: no policy has a wave %d", n)
		}
		return found, nil
	}
	if _, ok := s.Snapshot.Clusters.Get(word); ok {
		return []string{word}, nil
	}
	for c := range s.Snapshot.Clusters.Values() {
		ok, err := path.Match(word, c.Name)
		if err != nil {
			return nil, usagef("-c %q: %w", word, err)
		}
		if ok {
			found = append(found, c.Name)
		}
	}
	if len(found) == 0 && strings.ContainsAny(word, "*?[") {
		return nil, fmt.Errorf("-c: no cluster of the fleet matches %q", word)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("-c: the fleet has no cluster %q", word)
	}
	return found, nil
}

// inWave are the clusters of a wave of any policy.
func inWave(s *propagate.State, n int) (names []string) {
	for p := range s.Snapshot.Policies.Values() {
		if n <= len(p.Waves) {
			names = append(names, p.Waves[n-1]...)
		}
	}
	return names
}

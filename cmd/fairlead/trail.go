// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/source"
)

// trail is what walking the history commit by commit tells and the state at
// its end does not: when a document changed last, and what became of the
// objects that a user asks about.
type trail struct {
	asked   resource
	commits map[string]*source.Commit
	edited  map[propagate.ID]string // the commit that changed a document last
	kinds   kindNames
	objects map[propagate.ID]*objectTrail // that the question may be about
	// happenings are those of the commit that was walked last: to the objects,
	// or without a question to all.
	happenings []propagate.Happening
}

func newTrail() *trail {
	return &trail{commits: map[string]*source.Commit{}, edited: map[propagate.ID]string{}, kinds: kindNames{}, objects: map[propagate.ID]*objectTrail{}}
}

// objectTrail is what became of one object.
type objectTrail struct {
	moments []moment // oldest first
	// waiting are the commits whose content has not reached a cluster, oldest
	// first, and held the commit since which the cluster is held.
	waiting map[string][]string
	held    map[string]string
}

// moment is what one commit did to an object.
type moment struct {
	commit   *source.Commit
	happened []propagate.Happening
	// released are the commits that had waited, by cluster.
	released map[string][]string
}

// follow walks the history up to head.
func (l *look) follow(head string, asked resource) (*trail, propagate.State, error) {
	t := newTrail()
	t.asked = asked
	commits, err := l.commits("", head)
	if err != nil {
		return nil, propagate.State{}, err
	}
	before := propagate.State{}
	state, err := l.history.Fold(before, commits, func(c *source.Commit, after propagate.State) error {
		t.step(c, &before, &after)
		before = after
		return nil
	})
	if state.Snapshot == nil {
		state.Snapshot = &propagate.Snapshot{}
	}
	return t, state, err
}

func (t *trail) step(c *source.Commit, before, after *propagate.State) {
	t.commits[c.Hash] = c
	if after.Snapshot != before.Snapshot {
		t.documents(c, before.Snapshot, after.Snapshot)
	}
	t.happenings = t.happened(before, after)
	for i := 0; i < len(t.happenings); {
		j := i
		for j < len(t.happenings) && t.happenings[j].Object == t.happenings[i].Object {
			j++
		}
		t.object(t.happenings[i].Object).add(c, t.happenings[i:j])
		i = j
	}
}

func (t *trail) happened(before, after *propagate.State) []propagate.Happening {
	if t.asked == (resource{}) {
		return propagate.Happened(before, after)
	}
	var all []propagate.Happening
	for _, id := range slices.SortedFunc(maps.Keys(t.objects), byKey) {
		all = append(all, propagate.HappenedTo(id, before, after)...)
	}
	return all
}

func (t *trail) object(id propagate.ID) *objectTrail {
	if t.objects[id] == nil {
		t.objects[id] = &objectTrail{waiting: map[string][]string{}, held: map[string]string{}}
	}
	return t.objects[id]
}

func byKey(a, b propagate.ID) int { return cmp.Compare(a.Key(), b.Key()) }

// documents notes what a commit edits, and the objects that come up.
func (t *trail) documents(c *source.Commit, before, after *propagate.Snapshot) {
	for id := range propagate.Edited(before, after) {
		t.edited[id] = c.Hash
	}
	var was ordered.Map[*propagate.Template]
	if before != nil {
		was = before.Templates
	}
	for d := range ordered.Diff(was, after.Templates) {
		if d.Has {
			t.kinds.define(d.After)
		}
	}
	for d := range ordered.Diff(was, after.Templates) {
		if d.Has && t.asked.is(d.After.ID, t.kinds) {
			t.object(d.After.ID)
		}
	}
}

func (o *objectTrail) add(c *source.Commit, happened []propagate.Happening) {
	m := moment{commit: c, happened: happened, released: map[string][]string{}}
	for _, h := range happened {
		at := h.Cluster
		switch {
		case at == "":
		case h.What == propagate.WhatHeld:
			o.waiting[at] = append(o.waiting[at], c.Hash)
			o.held[at] = cmp.Or(o.held[at], c.Hash)
		case h.What == propagate.WhatSuspended, h.What == propagate.WhatEvicted:
			o.held[at] = cmp.Or(o.held[at], c.Hash)
		case h.What == propagate.WhatReverted:
			delete(o.waiting, at)
		case h.What == propagate.WhatReleased:
			m.released[at] = o.waiting[at]
			fallthrough
		case h.What.Sends(), h.What.Removes(), h.What == propagate.WhatResumed:
			delete(o.waiting, at)
			delete(o.held, at)
		}
	}
	o.moments = append(o.moments, m)
}

// found is the object that was asked about. Those that are in the fleet are
// preferred to those that were.
func (t *trail) found(state *propagate.State) (propagate.ID, error) {
	var present, past []propagate.ID
	for _, id := range slices.SortedFunc(maps.Keys(t.objects), byKey) {
		past = append(past, id)
		if state.Snapshot.Templates.At(id.Key()) != nil || state.Bindings.At(id.Key()) != nil {
			present = append(present, id)
		}
	}
	switch {
	case len(present) > 0:
		return t.asked.one(present)
	case len(past) > 0:
		return t.asked.one(past)
	}
	return propagate.ID{}, fmt.Errorf("%s is no template of the fleet, and was none; 'fairlead get templates' lists them", t.asked)
}

// checkClusters refuses names of clusters that never were of the fleet.
func (t *trail) checkClusters(names []string) error {
	for _, name := range names {
		if t.edited[propagate.ID{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster", Name: name}] == "" {
			return fmt.Errorf("-c: the fleet has no cluster %q, and had none", name)
		}
	}
	return nil
}

// reportCommit is a commit as reports name it.
type reportCommit struct {
	Commit  string    `json:"commit"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	Date    time.Time `json:"date"` // when it was written
}

// commit is nil where the hash is none that was walked.
func (t *trail) commit(hash string) *reportCommit { return newReportCommit(t.commits[hash]) }

func newReportCommit(c *source.Commit) *reportCommit {
	if c == nil {
		return nil
	}
	return &reportCommit{c.Hash, c.Subject, c.Author, c.Authored}
}

// list is empty, not nil, where none of the hashes was walked.
func (t *trail) list(hashes []string) []reportCommit {
	all := []reportCommit{}
	for _, hash := range hashes {
		if c := t.commit(hash); c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// String reads "e55a9f0, 2 days ago: web 1.18.2".
func (c *reportCommit) String() string {
	return fmt.Sprintf("%s, %s: %s", short(c.Commit), age(time.Since(c.Date)), c.Subject)
}

// age reads "2 days ago".
func age(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int(d / unit.long); n > 0 {
			return count(n, unit.name) + " ago"
		}
	}
	return "just now"
}

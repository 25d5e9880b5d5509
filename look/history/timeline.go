// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Timeline records what a walk of the history shows and the state at its end does
// not: which commit changed a document last, and what happened to objects.
type Timeline struct {
	Asked   object.Reference // the objects to record; zero is all
	Commits map[string]*source.Commit
	Edited  map[object.ID]string // the commit that last changed a document
	Kinds   object.KindNames
	Objects map[object.ID]*ObjectTimeline // that Asked matches
	// Changes are those of the last commit, to Objects, or to all if Asked is zero.
	Changes []propagate.Change

	repo *source.Repo // that the commits are in, if Commits has not all of them
	err  error
}

// Commit returns a commit that was walked; nil if it was not, or cannot be read, which Err
// tells.
func (t *Timeline) Commit(hash string) *source.Commit {
	if c := t.Commits[hash]; c != nil || hash == "" || t.repo == nil {
		return c
	}

	c, err := t.repo.Commit(hash)
	if err != nil {
		t.err = cmp.Or(t.err, err)
		return nil
	}
	t.Commits[hash] = c
	return c
}

// Err returns why a commit could not be read.
func (t *Timeline) Err() error { return t.err }

// NewTimeline returns a timeline of all objects, before the first commit.
func NewTimeline() *Timeline {
	return &Timeline{Commits: map[string]*source.Commit{}, Edited: map[object.ID]string{}, Kinds: object.KindNames{}, Objects: map[object.ID]*ObjectTimeline{}}
}

// ObjectTimeline is what happened to one object.
type ObjectTimeline struct {
	Entries []Entry // oldest first
	// Waiting are the commits whose content is held back from a cluster, oldest
	// first, and Held is the commit since which the cluster is held.
	Waiting map[string][]string
	Held    map[string]string
}

func newObjectTimeline() *ObjectTimeline {
	return &ObjectTimeline{Waiting: map[string][]string{}, Held: map[string]string{}}
}

// Entry is what one commit did to an object.
type Entry struct {
	Commit   *source.Commit
	Happened []propagate.Change
	// Released are the commits that were held until then, by cluster.
	Released map[string][]string
}

// Follow walks the history up to head, and returns the timeline of the objects that
// asked matches, and the state at head.
func (l *States) Follow(head string, asked object.Reference) (*Timeline, propagate.State, error) {
	t := NewTimeline()
	t.Asked = asked
	commits, err := l.Commits("", head)
	if err != nil {
		return nil, propagate.State{}, err
	}

	before := propagate.State{}
	state, err := l.History.Fold(before, commits, func(c *source.Commit, after propagate.State) error {
		t.Step(c, &before, &after)
		before = after
		return nil
	})
	if state.Snapshot == nil {
		state.Snapshot = &fleet.Snapshot{}
	}

	return t, state, err
}

// Standing is Follow without the entries of the objects, so that the walk goes on from the
// nearest commit in the cache.
func (l *States) Standing(head string, asked object.Reference) (*Timeline, propagate.State, error) {
	folded, err := l.at(head, true)
	if err != nil {
		return nil, propagate.State{}, err
	}
	if folded.Snapshot == nil {
		folded.Snapshot = &fleet.Snapshot{}
	}
	return folded.past.Timeline(asked, l.Repo), folded.State, nil
}

// Step records one commit, given the states before and after it.
func (t *Timeline) Step(c *source.Commit, before, after *propagate.State) {
	t.Commits[c.Hash] = c
	if after.Snapshot != before.Snapshot {
		t.documents(c, before.Snapshot, after.Snapshot)
	}
	t.Changes = t.happened(before, after)
	for of := range objects(t.Changes) {
		t.object(of[0].Object).add(c, of)
	}
}

// objects yields changes, which are in the order of their objects, one object at a time.
func objects(changes []propagate.Change) iter.Seq[[]propagate.Change] {
	return func(yield func([]propagate.Change) bool) {
		for i := 0; i < len(changes); {
			j := i
			for j < len(changes) && changes[j].Object == changes[i].Object {
				j++
			}
			if !yield(changes[i:j]) {
				return
			}
			i = j
		}
	}
}

func (t *Timeline) happened(before, after *propagate.State) []propagate.Change {
	if t.Asked == (object.Reference{}) {
		return propagate.Changes(before, after)
	}
	var all []propagate.Change
	for _, id := range slices.SortedFunc(maps.Keys(t.Objects), byKey) {
		all = append(all, propagate.ChangesOf(id, before, after)...)
	}
	return all
}

func (t *Timeline) object(id object.ID) *ObjectTimeline {
	if t.Objects[id] == nil {
		t.Objects[id] = newObjectTimeline()
	}
	return t.Objects[id]
}

func byKey(a, b object.ID) int { return cmp.Compare(a.Key(), b.Key()) }

// documents records the documents that a commit edits, and the objects that it adds.
func (t *Timeline) documents(c *source.Commit, before, after *fleet.Snapshot) {
	for id := range fleet.Edited(before, after) {
		t.Edited[id] = c.Hash
	}

	for template := range added(before, after, t.Kinds) {
		if t.Asked.Matches(template.ID, t.Kinds) {
			t.object(template.ID)
		}
	}
}

// added yields the templates that a commit adds or changes. Before the first one, kinds has
// those that they define.
func added(before, after *fleet.Snapshot, kinds object.KindNames) iter.Seq[*fleet.Template] {
	var was ordered.Map[*fleet.Template]
	if before != nil {
		was = before.Templates
	}
	return func(yield func(*fleet.Template) bool) {
		for d := range ordered.Diff(was, after.Templates) {
			if d.Has && d.After.GroupKind() == object.CRD {
				kinds.Define(d.After.ID, d.After.Object())
			}
		}
		for d := range ordered.Diff(was, after.Templates) {
			if d.Has && !yield(d.After) {
				return
			}
		}
	}
}

func (o *ObjectTimeline) add(c *source.Commit, happened []propagate.Change) {
	o.Entries = append(o.Entries, o.follow(c, happened))
}

// follow notes what waits after a commit, and returns its entry.
func (o *ObjectTimeline) follow(c *source.Commit, happened []propagate.Change) Entry {
	m := Entry{Commit: c, Happened: happened, Released: map[string][]string{}}
	for _, h := range happened {
		at := h.Cluster
		switch {
		case at == "":
		case h.Type == propagate.ChangeHeld:
			o.Waiting[at] = append(o.Waiting[at], c.Hash)
			o.Held[at] = cmp.Or(o.Held[at], c.Hash)
		case h.Type == propagate.ChangeSuspended, h.Type == propagate.ChangeEvicted:
			o.Held[at] = cmp.Or(o.Held[at], c.Hash)
		case h.Type == propagate.ChangeReverted:
			delete(o.Waiting, at)
		case h.Type == propagate.ChangeReleased:
			m.Released[at] = o.Waiting[at]
			fallthrough
		case h.Type.Sends(), h.Type.Removes(), h.Type == propagate.ChangeResumed:
			delete(o.Waiting, at)
			delete(o.Held, at)
		}
	}

	return m
}

// Found returns the one object that Asked matches. Objects in the fleet are preferred
// to former ones. It is an error if there is none, or more than one.
func (t *Timeline) Found(state *propagate.State) (object.ID, error) {
	var present, past []object.ID
	for _, id := range slices.SortedFunc(maps.Keys(t.Objects), byKey) {
		past = append(past, id)
		if state.Snapshot.Templates.At(id.Key()) != nil || state.Bindings.At(id.Key()) != nil {
			present = append(present, id)
		}
	}

	switch {
	case len(present) > 0:
		return t.Asked.One(present)
	case len(past) > 0:
		return t.Asked.One(past)
	}

	return object.ID{}, fmt.Errorf("%s is not a template of the fleet, and never was; 'fairlead get templates' lists them", t.Asked)
}

// ClustersCalled returns the clusters that the fleet has or had and that words name, by
// name or glob. It is an error if a word names none.
func (t *Timeline) ClustersCalled(words []string) (names []string, err error) {
	for _, word := range words {
		var found []string
		for id := range t.Edited {
			if id.Group != clusterv1alpha1.GroupVersion.Group || id.Kind != "Cluster" {
				continue
			}
			matches, err := path.Match(word, id.Name)
			if err != nil {
				return nil, fmt.Errorf("-c %q: %w", word, err)
			}
			if matches || id.Name == word {
				found = append(found, id.Name)
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("-c: the fleet has no cluster %q, and had none", word)
		}
		names = append(names, found...)
	}

	slices.Sort(names)
	return slices.Compact(names), nil
}

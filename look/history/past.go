// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/compact"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Past is what the history up to a commit says and the state there does not: which commit
// changed a document last, which templates there were, and what waits for clusters that are
// held. It is a [Timeline] of all objects without their entries, small enough to be kept
// beside each state in the cache. Its cost a commit follows the change.
type Past struct {
	edited    map[object.ID]string
	templates map[object.ID]bool
	kinds     object.KindNames
	held      map[object.ID]*ObjectTimeline // that something waits for, or that are held
}

// NewPast returns the past of the first commit.
func NewPast() *Past {
	return &Past{edited: map[object.ID]string{}, templates: map[object.ID]bool{}, kinds: object.KindNames{}, held: map[object.ID]*ObjectTimeline{}}
}

// Step adds a commit, given the states before and after it.
func (p *Past) Step(c *source.Commit, before, after *propagate.State) {
	if after.Snapshot != before.Snapshot {
		for id := range fleet.Edited(before.Snapshot, after.Snapshot) {
			p.edited[id] = c.Hash
		}
		for t := range added(before.Snapshot, after.Snapshot, p.kinds) {
			p.templates[t.ID] = true
		}
	}

	// Only a binding that changed can hold, and only what is held can be released.
	changes := propagate.BindingChanges(before, after, func(was, is *propagate.Binding) bool {
		return mayHold(is) || p.holds(was) || p.holds(is)
	})
	for of := range objects(changes) {
		id := of[0].Object
		o := p.held[id]
		if o == nil {
			o = newObjectTimeline()
		}
		o.follow(c, of)
		p.held[id] = o
		if len(o.Waiting) == 0 && len(o.Held) == 0 {
			delete(p.held, id)
		}
	}
}

// holds reports whether something is known to wait for a binding.
func (p *Past) holds(b *propagate.Binding) bool { return b != nil && p.held[b.ID] != nil }

// mayHold reports whether a cluster may be without what is wanted there.
func mayHold(b *propagate.Binding) bool {
	if b == nil {
		return false
	}
	return len(b.Evictions) > 0 || slices.ContainsFunc(b.Works, func(w propagate.Work) bool {
		return w.Held || w.Blocked != ""
	})
}

// Timeline is the timeline of what asked matches, without entries, until the next Step.
// Commits are read when they are asked for.
func (p *Past) Timeline(asked object.Reference, repo *source.Repo) *Timeline {
	t := NewTimeline()
	t.Asked, t.Edited, t.Kinds, t.repo = asked, p.edited, p.kinds, repo
	for id := range p.templates {
		if !asked.Matches(id, p.kinds) {
			continue
		}
		t.Objects[id] = p.held[id]
		if t.Objects[id] == nil {
			t.Objects[id] = newObjectTimeline()
		}
	}
	return t
}

// pastFormat is the format of a kept past.
const pastFormat = "fairlead past 1"

func (p *Past) encode() ([]byte, error) {
	w := &compact.Writer{}
	if err := w.JSON(p.definitions()); err != nil {
		return nil, err
	}

	w.Uint(len(p.edited))
	for _, id := range slices.SortedFunc(maps.Keys(p.edited), byKey) {
		w.Text(id.Key())
		w.Text(p.edited[id])
	}
	w.Uint(len(p.templates))
	for _, id := range slices.SortedFunc(maps.Keys(p.templates), byKey) {
		w.Text(id.Key())
	}
	w.Uint(len(p.held))
	for _, id := range slices.SortedFunc(maps.Keys(p.held), byKey) {
		w.Text(id.Key())
		if err := w.JSON(heldRecord{p.held[id].Waiting, p.held[id].Held}); err != nil {
			return nil, err
		}
	}
	return w.Bytes(pastFormat), nil
}

func decodePast(raw []byte) (*Past, error) {
	r, err := compact.NewReader(pastFormat, raw)
	if err != nil {
		return nil, err
	}

	p := NewPast()
	for _, k := range compact.JSON[[]kindRecord](r) {
		p.kinds[k.GroupKind] = k.Names
	}
	n := r.Count()
	p.edited = make(map[object.ID]string, n)
	for ; n > 0 && r.Err() == nil; n-- {
		id, _ := object.ParseKey(r.Text())
		p.edited[id] = r.Text()
	}
	n = r.Count()
	p.templates = make(map[object.ID]bool, n)
	for ; n > 0 && r.Err() == nil; n-- {
		id, _ := object.ParseKey(r.Text())
		p.templates[id] = true
	}
	for n = r.Count(); n > 0 && r.Err() == nil; n-- {
		id, _ := object.ParseKey(r.Text())
		p.held[id] = compact.JSON[heldRecord](r).timeline()
	}
	return p, r.Done()
}

// heldRecord is what waits for the clusters of an object, on disk.
type heldRecord struct {
	Waiting map[string][]string `json:"waiting,omitempty"`
	Held    map[string]string   `json:"held,omitempty"`
}

// timeline shares nothing with the record, which others may have as well.
func (r heldRecord) timeline() *ObjectTimeline {
	o := newObjectTimeline()
	for cluster, commits := range r.Waiting {
		o.Waiting[cluster] = slices.Clone(commits)
	}
	maps.Copy(o.Held, r.Held)
	return o
}

// kindRecord is a kind that a template defines, on disk.
type kindRecord struct {
	schema.GroupKind
	Names []string
}

// definitions are the kinds in their order.
func (p *Past) definitions() (all []kindRecord) {
	for kind, names := range p.kinds {
		all = append(all, kindRecord{kind, names})
	}
	slices.SortFunc(all, func(a, b kindRecord) int { return strings.Compare(a.String(), b.String()) })
	return all
}

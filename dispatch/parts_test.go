// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"iter"
	"maps"
	"sync"
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// The tests of the parts of a worker are inside the package, and cannot use
// dispatchtest, which imports it. These are the simplest doubles there are.

// scripted is a member that answers as it was told, and notes what it is asked.
// What it is not told of panics.
type scripted struct {
	member.Member
	found []member.Found
	fail  map[string]error // by what is asked: "list Namespace"
	asked []string
}

func (s *scripted) ask(what string) error {
	s.asked = append(s.asked, what)
	return s.fail[what]
}

// take is what was asked since the last time.
func (s *scripted) take() []string {
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *scripted) List(_ context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		if err := s.ask("list " + gvk.Kind); err != nil {
			yield(member.Found{}, err)
			return
		}
		for _, f := range s.found {
			if f.ID.GroupKind() == gvk.GroupKind() && f.ID.Namespace == namespace && !yield(f, nil) {
				return
			}
		}
	}
}

func (s *scripted) Get(_ context.Context, ref member.Ref) (*member.Found, error) {
	if err := s.ask("get " + ref.Kind); err != nil {
		return nil, err
	}
	for _, f := range s.found {
		if f.ID == ref.ID() {
			return &f, nil
		}
	}
	return nil, nil
}

func (s *scripted) Apply(_ context.Context, manifest map[string]any, _ member.ApplyOptions) (member.Applied, error) {
	ref := member.RefOf(manifest)
	return member.Applied{UID: "made", Created: true}, s.ask("apply " + ref.Kind + " " + ref.Name)
}

// desires is a Fleet of one cluster.
type desires map[object.ID]Desire

func (d desires) Desire(_ string, id object.ID) Desire { return d[id] }
func (d desires) Wants(string) iter.Seq2[Key, Want] {
	return func(yield func(Key, Want) bool) {
		for id, want := range d {
			if !yield(unique.Make(id), want.Want) {
				return
			}
		}
	}
}
func (d desires) Namespace(_, name string) map[string]any { return nil }
func (d desires) Source() member.Source                   { return member.Source{} }
func (d desires) Marker() object.Marker                   { return sea }

var sea = object.Marker{Name: "sea"}

// disk is an Inventory that may refuse.
type disk struct {
	mu      sync.Mutex
	refusal error
	saved   map[object.ID]*Entry
	saves   int
}

func (d *disk) Load(_ string, begin func(int), held func(object.ID, *Entry)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	begin(len(d.saved))
	for id, e := range d.saved {
		if e != nil {
			held(id, e)
		}
	}
	return nil
}

func (d *disk) Save(changed map[string]map[object.ID]*Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusal != nil {
		return d.refusal
	}

	d.saves++
	if d.saved == nil {
		d.saved = map[object.ID]*Entry{}
	}
	for _, entries := range changed {
		maps.Copy(d.saved, entries)
	}
	return nil
}

// idleWorker has a member, and a fleet when it is given one, and starts nothing by
// itself.
func idleWorker(t *testing.T, m member.Member, inventory Inventory) *worker {
	t.Helper()
	d := New(inventory, Options{Backoff: steady})
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := newWorker(d, "eu-1")
	w.member = m
	return w
}

func found(text, uid string) member.Found {
	return member.Found{ID: idOf(text), UID: types.UID(uid)}
}

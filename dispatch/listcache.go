// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// listCache is what was read of a member for the creates of one Sync: each kind
// and namespace once, however many objects are to be created there.
type listCache struct {
	// expect counts the jobs there were for each place when it began.
	expect map[place]int

	mu    sync.Mutex
	lists map[place]*cachedList
}

func newListCache(jobs map[object.ID]*job) *listCache {
	c := &listCache{expect: map[place]int{}}
	for id := range jobs {
		c.expect[placeOf(id)]++
	}
	return c
}

// placeOf is a place without the version.
func placeOf(id object.ID) place {
	return place{schema.GroupVersionKind{Group: id.Group, Kind: id.Kind}, id.Namespace}
}

// place is a kind in a namespace.
type place struct {
	schema.GroupVersionKind
	namespace string
}

type cachedList struct {
	once  sync.Once
	found map[object.ID]*member.Found
	err   error
}

func (c *listCache) at(p place) *cachedList {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = map[place]*cachedList{}
	}
	if c.lists[p] == nil {
		c.lists[p] = &cachedList{}
	}
	return c.lists[p]
}

// forget has a place that could not be read be read again.
func (c *listCache) forget(p place, was *cachedList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[p] == was {
		delete(c.lists, p)
	}
}

// find returns what stands where an object is to be created, nil when nothing
// does. A second attempt does not rely on what the first one read.
func (w *worker) find(m member.Member, ref member.Ref) (*member.Found, error) {
	w.mu.Lock()
	if w.lists == nil {
		w.lists = newListCache(w.queue.jobs)
	}
	c, fleet := w.lists, w.fleet
	j := w.queue.jobs[ref.ID()]
	w.mu.Unlock()
	if j == nil || j.failures > 0 {
		return m.Get(w.d.ctx, ref)
	}

	p := place{ref.GroupVersionKind, ref.Namespace}
	wanted := func(id object.ID) bool { return fleet.Desire(w.cluster, id).Verb != Leave }
	list := c.at(p)
	list.once.Do(func() {
		if c.expect[placeOf(ref.ID())] != 1 {
			list.found, list.err = w.list(m, fleet, p, wanted)
			return
		}
		// A list for one is a get.
		var found *member.Found
		if found, list.err = m.Get(w.d.ctx, ref); found != nil {
			list.found = map[object.ID]*member.Found{ref.ID(): trimmed(*found, fleet.Marker(), w.d.opt.Knows != nil)}
		}
	})
	if list.err != nil {
		c.forget(p, list)
		return nil, list.err
	}
	return list.found[ref.ID()], nil
}

// list returns what stands at a place, as far as it is wanted: a member may hold
// many times as much of others.
func (w *worker) list(m member.Member, fleet Fleet, p place, wanted func(object.ID) bool) (map[object.ID]*member.Found, error) {
	out, of := map[object.ID]*member.Found{}, fleet.Marker()
	for found, err := range m.List(w.d.ctx, p.GroupVersionKind, p.namespace) {
		if err != nil {
			return nil, err
		}
		if wanted(found.ID) {
			out[found.ID] = trimmed(found, of, w.d.opt.Knows != nil)
		}
	}
	return out, nil
}

// trimmed is what a cache needs to remember: whose it is, and what it has.
func trimmed(f member.Found, of object.Marker, revision bool) *member.Found {
	out := &member.Found{ID: f.ID, UID: f.UID, Deleting: f.Deleting}
	if !object.IsManaged(f.Labels) {
		return out
	}

	name := f.Labels[object.LabelFleet]
	out.Labels = map[string]string{object.LabelManaged: "true", object.LabelFleet: name}
	out.Annotations = map[string]string{object.AnnotationDigest: f.Annotations[object.AnnotationDigest]}
	if name != of.Name || revision {
		out.Annotations[object.AnnotationRevision] = f.Annotations[object.AnnotationRevision]
	}
	return out
}

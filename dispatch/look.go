// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
)

// round is what was read of a member for the creates of one Sync: each kind
// and namespace once, however many objects are to be created there.
type round struct {
	// expect counts the jobs there were for each place when it began.
	expect map[place]int

	mu    sync.Mutex
	looks map[place]*look
}

func newRound(jobs map[propagate.ID]*job) *round {
	r := &round{expect: map[place]int{}}
	for id := range jobs {
		r.expect[placeOf(id)]++
	}
	return r
}

// placeOf is a place without the version.
func placeOf(id propagate.ID) place {
	return place{schema.GroupVersionKind{Group: id.Group, Kind: id.Kind}, id.Namespace}
}

// place is a kind in a namespace.
type place struct {
	schema.GroupVersionKind
	namespace string
}

type look struct {
	once  sync.Once
	found map[propagate.ID]*Found
	err   error
}

func (r *round) at(p place) *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks == nil {
		r.looks = map[place]*look{}
	}
	if r.looks[p] == nil {
		r.looks[p] = &look{}
	}
	return r.looks[p]
}

// forget has a place that could not be read be read again.
func (r *round) forget(p place, was *look) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks[p] == was {
		delete(r.looks, p)
	}
}

// look returns what stands where an object is to be created, nil when nothing
// does. A second attempt does not rely on what the first one read.
func (l *lane) look(m Member, ref Ref) (*Found, error) {
	l.mu.Lock()
	if l.round == nil {
		l.round = newRound(l.jobs)
	}
	r, fleet := l.round, l.fleet
	j := l.jobs[ref.ID()]
	l.mu.Unlock()
	wanted := func(id propagate.ID) bool { return fleet.Desire(l.cluster, id).Verb != Leave }
	if j == nil || j.failures > 0 {
		return m.Get(l.d.ctx, ref)
	}
	p := place{ref.GroupVersionKind, ref.Namespace}
	look := r.at(p)
	look.once.Do(func() {
		if r.expect[placeOf(ref.ID())] != 1 {
			look.found, look.err = l.list(m, p, wanted)
			return
		}
		// A list for one is a get.
		var found *Found
		if found, look.err = m.Get(l.d.ctx, ref); found != nil {
			look.found = map[propagate.ID]*Found{ref.ID(): trimmed(*found)}
		}
	})
	if look.err != nil {
		r.forget(p, look)
		return nil, look.err
	}
	return look.found[ref.ID()], nil
}

// list returns what stands at a place, as far as the fleet wants or wanted
// anything of that name: a member may hold many times as much of others.
func (l *lane) list(m Member, p place, wanted func(propagate.ID) bool) (map[propagate.ID]*Found, error) {
	out := map[propagate.ID]*Found{}
	for found, err := range m.List(l.d.ctx, p.GroupVersionKind, p.namespace) {
		if err != nil {
			return nil, err
		}
		if wanted(found.ID) {
			out[found.ID] = trimmed(found)
		}
	}
	return out, nil
}

// trimmed is what a round needs to remember.
func trimmed(f Found) *Found {
	out := &Found{ID: f.ID, UID: f.UID, Deleting: f.Deleting}
	if f.Ours() {
		out.Labels = map[string]string{LabelManaged: "true"}
		out.Annotations = map[string]string{AnnotationDigest: f.Annotations[AnnotationDigest]}
	}
	return out
}

// readMarks lists every place where the fleet has or had objects, and returns
// those that bear our label. Where the member has not even the namespace there
// is nothing to list.
func (l *lane) readMarks(m Member, fleet Fleet) (map[propagate.ID]Entry, *round, error) {
	places := map[place][]propagate.ID{}
	givenUp := map[propagate.ID]bool{} // of what others need
	for id, want := range fleet.Desires(l.cluster) {
		if want.Verb == Leave || want.APIVersion == "" {
			continue
		}
		if foundation(id) && (want.Verb == Delete || want.Verb == Release) {
			givenUp[id] = true
		}
		p := place{refTo(id, want.APIVersion).GroupVersionKind, id.Namespace}
		places[p] = append(places[p], id)
	}
	lists, err := l.listEmpty(m, fleet, places)
	if err == nil {
		lists, err = l.listRest(m, fleet, slices.Collect(maps.Keys(places)), lists)
	}
	if err != nil {
		return nil, nil, err
	}
	ours, seen := map[propagate.ID]Entry{}, &round{}
	for p, found := range lists {
		for _, id := range places[p] {
			f := found[id]
			if f == nil || !f.Ours() || f.Deleting || givenUp[id] && Unplaced(id, f.Annotations[AnnotationDigest]) {
				continue
			}
			ours[id] = Entry{APIVersion: p.GroupVersion().String(), UID: f.UID, Digest: digestOf(f)}
		}
		look := seen.at(p)
		look.once.Do(func() { look.found = found })
	}
	return ours, seen, nil
}

// listEmpty are the places that need no list of their own once the namespaces
// are listed: those that the member cannot have, and the namespaces. It is nil
// when listing them would not spare anything.
func (l *lane) listEmpty(m Member, fleet Fleet, places map[place][]propagate.ID) (map[place]map[propagate.ID]*Found, error) {
	namespaced := 0
	for p := range places {
		if p.namespace != "" {
			namespaced++
		}
	}
	if housed(m) || namespaced < 2 {
		return nil, nil
	}
	l.mu.Lock()
	l.forgetNamespaces()
	l.mu.Unlock()
	found, err := l.listNamespaces(m, func(id propagate.ID) bool { return fleet.Desire(l.cluster, id).Verb != Leave })
	if err != nil {
		return nil, at(place{namespaceKind, ""}, err)
	}
	lists := map[place]map[propagate.ID]*Found{}
	for p := range places {
		switch {
		case p == place{namespaceKind, ""} && found != nil:
			lists[p] = found
		case p.namespace != "" && !l.hasNamespace(p.namespace):
			lists[p] = nil
		}
	}
	return lists, nil
}

// listRest lists the places that lists lacks, and leaves out those of kinds that
// the member does not serve. Where nothing was listed yet one request tries the
// water; then as many go at once as the member may have.
func (l *lane) listRest(m Member, fleet Fleet, places []place, lists map[place]map[propagate.ID]*Found) (map[place]map[propagate.ID]*Found, error) {
	var (
		mu      sync.Mutex
		failure error
	)
	places = slices.DeleteFunc(places, func(p place) bool { _, listed := lists[p]; return listed })
	tried := lists != nil
	if !tried {
		lists = map[place]map[propagate.ID]*Found{}
	}
	wanted := func(id propagate.ID) bool { return fleet.Desire(l.cluster, id).Verb != Leave }
	list := func(p place) {
		mu.Lock()
		failed := failure != nil
		mu.Unlock()
		if failed {
			return
		}
		found, err := l.list(m, p, wanted)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, NotServed): // nothing of the kind can be there
		case err != nil && failure == nil:
			failure = at(p, err)
		case err == nil:
			lists[p] = found
		}
	}
	if !tried && len(places) > 0 {
		list(places[0])
		places = places[1:]
	}
	left := make(chan place)
	var listing sync.WaitGroup
	for range min(l.d.opt.Parallel, l.d.share(), len(places)) {
		listing.Go(func() {
			for p := range left {
				list(p)
			}
		})
	}
	for _, p := range places {
		left <- p
	}
	close(left)
	listing.Wait()
	return lists, failure
}

// at adds to an error what was being listed.
func at(p place, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Reason.ofMember() {
		return err
	}
	out := *e
	if p.namespace == "" {
		out.Err = fmt.Errorf("%s: %w", p.Kind, e.Err)
	} else {
		out.Err = fmt.Errorf("%s in %s: %w", p.Kind, p.namespace, e.Err)
	}
	return &out
}

// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// firstContact reads what a member holds of ours, before anything is sent to a
// member of which nothing is known. What cannot be read ends it: an object that
// we did not see may be there.
type firstContact struct {
	w          *worker
	m          member.Member
	fleet      Fleet
	syncs      int
	generation int
}

// contact makes first contact. The lock is held.
func (w *worker) contact() func() {
	c := &firstContact{w, w.member, w.fleet, w.syncs, w.breaker.generation}
	return c.run
}

func (c *firstContact) run() {
	began := time.Now()
	w := c.w
	var at member.Position
	var err error
	batch, isBatch := member.As[member.BatchMember](c.m)
	if isBatch {
		at, err = w.publisher.position(batch, true)
	}
	var ours map[object.ID]Entry
	var seen *listCache
	if err == nil {
		ours, seen, err = c.readMarks()
	}
	var failure *member.Error
	if err != nil {
		failure = w.failed("list", object.ID{}, err)
	}
	w.d.log(Event{Cluster: w.cluster, Op: OpContact, Err: asError(failure), Took: time.Since(began)})

	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	defer w.schedule()
	if w.member != c.m || w.d.closed() {
		return
	}
	if failure != nil {
		w.trip(failure, c.generation)
		return
	}

	w.breaker.reset(c.generation)
	for id, e := range ours {
		w.record(id, &e)
	}
	if isBatch {
		w.publisher.standAt(at)
	}
	if w.onlyKnown && len(ours) == 0 {
		// A member without our marks gets nothing of a head that is refused
		// or awaits confirmation. The next Sync asks it again.
		w.fleet, w.fresh = nil, true
		return
	}
	if w.onlyKnown {
		if err := w.intend(); err != nil {
			w.trip(w.failed("save", object.ID{}, err), w.breaker.generation)
			return
		}
	}
	w.contacted = true
	if w.syncs == c.syncs {
		w.lists = seen
	}
	for key := range w.fleet.Wants(w.cluster) {
		w.enqueue(key.Value())
	}
}

// intend saves the intents that Sync left out because the member was not
// known to bear our marks.
func (w *worker) intend() error {
	if w.readOnly {
		return nil
	}

	changed := map[object.ID]*Entry{}
	for key, want := range w.fleet.Wants(w.cluster) {
		id := key.Value()
		if !w.holdings.has(id) && want.Verb == Apply {
			changed[id] = w.holdings.intent(id, want.APIVersion)
			w.know(id, changed[id])
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return w.d.inventory.Save(map[string]map[object.ID]*Entry{w.cluster: changed})
}

// intendAgain saves that an object which is gone is to be made again, before
// it is: from then on our label says whether what stands there is ours.
func (w *worker) intendAgain(id object.ID, apiVersion string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readOnly {
		return nil
	}

	e := w.holdings.intent(id, apiVersion)
	if err := w.d.inventory.Save(map[string]map[object.ID]*Entry{w.cluster: {id: e}}); err != nil {
		return &member.Error{Reason: member.Unavailable, Err: fmt.Errorf("save: %w", err)}
	}
	w.record(id, e) // also on disk, after what may be on its way there
	return nil
}

// wanted reports whether the fleet has or had to do with an object.
func (c *firstContact) wanted(id object.ID) bool {
	return c.fleet.Desire(c.w.cluster, id).Verb != Leave
}

// readMarks lists every place where the fleet has or had objects, and returns
// those that bear our marks. Where the member has not even the namespace there
// is nothing to list.
func (c *firstContact) readMarks() (map[object.ID]Entry, *listCache, error) {
	places := map[place][]object.ID{}
	givenUp := map[object.ID]bool{} // of what others need
	for key, want := range c.fleet.Wants(c.w.cluster) {
		id := key.Value()
		if want.Verb == Leave || want.APIVersion == "" {
			continue
		}
		if object.IsPrerequisite(id) && (want.Verb == Delete || want.Verb == Orphan) {
			givenUp[id] = true
		}
		p := place{member.RefTo(id, want.APIVersion).GroupVersionKind, id.Namespace}
		places[p] = append(places[p], id)
	}

	lists, err := c.listEmpty(places)
	if err == nil {
		lists, err = c.listRest(slices.Collect(maps.Keys(places)), lists)
	}
	if err != nil {
		return nil, nil, err
	}

	ours, seen, of := map[object.ID]Entry{}, &listCache{}, c.fleet.Marker()
	for p, found := range lists {
		for _, id := range places[p] {
			f := found[id]
			if f == nil || !f.Ours(of) || f.Deleting || givenUp[id] && object.IsNeeded(id, f.Annotations[object.AnnotationDigest]) {
				continue
			}
			if err := c.w.d.behind(f); err != nil {
				return nil, nil, &member.Error{Reason: member.Withheld, Err: fmt.Errorf("%s: %w", id, errors.Unwrap(err))}
			}
			ours[id] = Entry{APIVersion: p.GroupVersion().String(), UID: f.UID, Digest: f.Digest()}
		}
		list := seen.at(p)
		list.once.Do(func() { list.found = found })
	}
	return ours, seen, nil
}

// listEmpty are the places that need no list of their own once the namespaces
// are listed: those that the member cannot have, and the namespaces. It is nil
// when listing them would not spare anything.
func (c *firstContact) listEmpty(places map[place][]object.ID) (map[place]map[object.ID]*member.Found, error) {
	namespaced := 0
	for p := range places {
		if p.namespace != "" {
			namespaced++
		}
	}
	if member.Is[member.NamespaceCreator](c.m) || namespaced < 2 {
		return nil, nil
	}

	w := c.w
	w.mu.Lock()
	w.namespaces.known.forget()
	w.mu.Unlock()
	found, err := w.namespaces.list(c.m, c.fleet, c.wanted)
	if err != nil {
		return nil, at(place{member.NamespaceKind, ""}, err)
	}

	lists := map[place]map[object.ID]*member.Found{}
	for p := range places {
		switch {
		case p == place{member.NamespaceKind, ""} && found != nil:
			lists[p] = found
		case p.namespace != "" && !w.namespaces.has(p.namespace):
			lists[p] = nil
		}
	}
	return lists, nil
}

// listRest lists the places that lists lacks, and leaves out those of kinds that
// the member does not serve. Where nothing was listed yet, one request goes
// first; then as many go at once as the member may have.
func (c *firstContact) listRest(places []place, lists map[place]map[object.ID]*member.Found) (map[place]map[object.ID]*member.Found, error) {
	var (
		mu      sync.Mutex
		failure error
	)
	places = slices.DeleteFunc(places, func(p place) bool { _, listed := lists[p]; return listed })
	tried := lists != nil
	if !tried {
		lists = map[place]map[object.ID]*member.Found{}
	}
	list := func(p place) {
		mu.Lock()
		failed := failure != nil
		mu.Unlock()
		if failed {
			return
		}
		found, err := c.w.list(c.m, c.fleet, p, c.wanted)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, member.NotServed): // nothing of the kind can be there
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
	for range min(c.w.d.opt.Parallel, c.w.d.share(), len(places)) {
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
	var e *member.Error
	if !errors.As(err, &e) || e.Reason.OfMember() {
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

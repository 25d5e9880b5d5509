// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
)

// opRestore is what an event calls an apply that undoes what somebody did.
const opRestore = "restore"

const (
	// fightTime and fightLimit say when a field fight is one: that many
	// restorations of one object in that time, and it is left to the other.
	fightTime  = 10 * time.Minute
	fightLimit = 5
)

// vigil is the watch over one kind on one member.
type vigil struct{ end context.CancelFunc }

// drift is an object that is not as it was acknowledged.
type drift struct{ how string }

// restored are the times at which an object was restored, and why.
type restored struct{ times []time.Time }

// drift is how an object differs from what was acknowledged; nil when it is
// not known to.
func (l *lane) drift(id propagate.ID) *drift {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drifts[id]
}

// watchKinds begins to watch the kinds that the member holds objects of, and
// ceases to watch others. The lock is held.
func (l *lane) watchKinds() {
	w, ok := l.member.(Watcher)
	if !ok || !l.d.opt.Watch || !l.contacted || l.d.closed() {
		l.unwatch()
		return
	}
	for gvk := range l.kinds {
		if l.vigils[gvk] != nil {
			continue
		}
		ctx, end := context.WithCancel(l.d.ctx)
		l.vigils[gvk] = &vigil{end}
		go l.watch(ctx, w, gvk)
	}
	for gvk, v := range l.vigils {
		if l.kinds[gvk] == 0 {
			v.end()
			delete(l.vigils, gvk)
		}
	}
}

func (l *lane) unwatch() {
	for gvk, v := range l.vigils {
		v.end()
		delete(l.vigils, gvk)
	}
}

// watch looks after one kind until it is told to end. Every watch begins with
// all objects, so each is a sweep as well: what an earlier one missed is found
// by the next.
func (l *lane) watch(ctx context.Context, w Watcher, gvk schema.GroupVersionKind) {
	for failures := 0; ctx.Err() == nil; {
		all := l.sweep(gvk)
		// Not all at once, though they began at once.
		lasting := l.d.opt.Sweep/2 + rand.N(l.d.opt.Sweep)
		began := time.Now()
		err := w.Watch(ctx, gvk, lasting, func(s Sighting) { l.sight(w, gvk, s, all) })
		if ctx.Err() != nil {
			return
		}
		if err == nil || time.Since(began) > time.Minute {
			failures = 0
		}
		if errors.Is(err, errTurn) {
			l.d.scarce()
			if !sleep(ctx, watchAgain/2+rand.N(watchAgain)) {
				return
			}
			continue
		}
		if err != nil {
			failures++
			l.d.log(Event{Cluster: l.cluster, Op: "watch " + gvk.Kind, Err: l.failed("watch", propagate.ID{}, err)})
		}
		pause := l.d.opt.Backoff.afterError(err, max(failures, 1))
		if errors.Is(err, Forbidden) || errors.Is(err, NotServed) {
			pause = l.d.opt.Backoff.Max
		}
		sleep(ctx, pause)
	}
}

// sleep reports false when ctx ended before the time was over.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// sweeper is a Member that tells once what a watch begins with.
type sweeper interface {
	Watcher
	Sweep(ctx context.Context, gvk schema.GroupVersionKind, tell func(Sighting)) error
}

// patrol looks once at what the member holds, for a process that ends before
// there is anything to watch. Nothing waits for it. The lock is held.
func (l *lane) patrol() {
	s, ok := l.member.(sweeper)
	if !ok || !l.d.opt.Look || l.looked {
		return
	}
	l.looked, l.looking = true, true
	go func() {
		var err error
		for _, gvk := range l.held() {
			all := l.sweep(gvk)
			if err = s.Sweep(l.d.ctx, gvk, func(told Sighting) { l.sight(s, gvk, told, all) }); err != nil {
				break
			}
		}
		if err != nil {
			l.d.log(Event{Cluster: l.cluster, Op: "look", Err: l.failed("look", propagate.ID{}, err)})
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.looking = false
		l.pump()
	}()
}

// held are the kinds that the member holds objects of.
func (l *lane) held() []schema.GroupVersionKind {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.kinds))
}

// sweep is the beginning of a watch, which tells of every object as it is then.
type sweep struct {
	seen map[propagate.ID]bool
	done bool
	// newest is the last version of the kind that was acknowledged before the
	// watch began, so that all objects are told as they are after it.
	newest uint64
}

func (l *lane) sweep(gvk schema.GroupVersionKind) *sweep {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := &sweep{seen: map[propagate.ID]bool{}}
	for id, e := range l.known {
		if id.GroupKind() == gvk.GroupKind() {
			all.newest = max(all.newest, e.Version)
		}
	}
	return all
}

// sight takes what a watch tells of an object.
func (l *lane) sight(w Watcher, gvk schema.GroupVersionKind, s Sighting, all *sweep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, ok := l.member.(Watcher); !ok || now != w || l.fleet == nil {
		return
	}
	defer l.pump()
	if s.All {
		l.absent(gvk, s.Version, all)
		all.done, all.seen = true, nil
		return
	}
	if !all.done {
		all.seen[s.ID] = true
	}
	if j := l.jobs[s.ID]; j != nil && !j.waits {
		// What we are about to do, or just did, is in the member's answer.
		l.late[s.ID] = s
		return
	}
	if !all.done && l.setBack(s, all) {
		return
	}
	l.judge(s)
}

// setBack finds what is not what was acknowledged, though nobody took a field
// from us: a member that was restored from a backup has what we wrote earlier.
// Its versions begin again there, and what comes next is news by those. While a
// watch goes on that cannot be told from another of us who was faster, so it is
// asked of the sweep alone. The lock is held.
func (l *lane) setBack(s Sighting, all *sweep) bool {
	e, known := l.known[s.ID]
	if !known || s.UID != e.UID || s.Gone || s.Deleting || s.Version == 0 || s.Version < e.Version && e.Version > all.newest {
		return false
	}
	if s.Version < e.Version {
		e.Version = s.Version - 1
		l.know(s.ID, &e)
	}
	if digestOf(&s.Found) == e.Digest || s.Annotations[AnnotationDigest] == "" {
		return false
	}
	l.drifted(s.ID, "had other content of ours than was acknowledged", "")
	return true
}

// absent finds what should be there as of a version and is not. What was
// acknowledged since need not be. The lock is held.
func (l *lane) absent(gvk schema.GroupVersionKind, version uint64, all *sweep) {
	for id, e := range l.known {
		since := e.Version > version && e.Version > all.newest
		if id.GroupKind() == gvk.GroupKind() && e.UID != "" && !all.seen[id] && l.jobs[id] == nil && !since {
			l.drifted(id, "was deleted", "")
		}
	}
}

// judge compares an object with what was acknowledged. The lock is held.
func (l *lane) judge(s Sighting) {
	e, known := l.known[s.ID]
	switch {
	case !known || e.UID == "":
		// It was released, or is on its way.
	case s.Gone && s.UID != e.UID && s.UID != "":
		// The one before ours.
	case s.Gone:
		l.drifted(s.ID, "was deleted", s.By)
	case s.UID != e.UID:
		l.drifted(s.ID, "was replaced", s.By)
	case s.Deleting, s.Version != 0 && s.Version <= e.Version:
	case e.Fields == 0 && l.fleet.Desire(l.cluster, s.ID).Verb == Hold:
		// Which fields were ours is not known, and what they should be is not at
		// hand. It is told when the hold ends.
		l.late[s.ID] = s
	case e.Fields == 0 && digestOf(&s.Found) == e.Digest && l.whole(s):
		// An inventory that did not say which fields are ours; they all are.
		e.Fields, e.Version = s.Fields, s.Version
		l.know(s.ID, &e)
		if !l.dry() {
			l.d.saver.put(l.cluster, s.ID, &e)
		}
	case !e.Fields.same(s.Fields, l.fleet.Desire(l.cluster, s.ID).RetainReplicas):
		l.drifted(s.ID, "was changed", s.By)
	}
}

// whole is whether all that we set on an object is still ours. Of what is to go
// nothing can be said, and nothing is to be restored. The lock is held.
func (l *lane) whole(s Sighting) bool {
	want := l.fleet.Desire(l.cluster, s.ID)
	if want.Verb != Apply {
		return true
	}
	manifest, err := want.Manifest()
	return err == nil && owns(s.Set, manifest, want.RetainReplicas)
}

// drifted has an object restored. One that is held is restored when it is
// released: nothing is sent to it before. The lock is held.
func (l *lane) drifted(id propagate.ID, how, by string) {
	if by != "" {
		how += " by " + by
	}
	l.drifts[id] = &drift{how}
	if l.fleet.Desire(l.cluster, id).Verb != Apply {
		return
	}
	r := l.restores[id]
	if r == nil {
		r = &restored{}
		l.restores[id] = r
	}
	for len(r.times) > 0 && time.Since(r.times[0]) > fightTime {
		r.times = r.times[1:]
	}
	if len(r.times) >= fightLimit {
		l.contest(id, by)
		return
	}
	r.times = append(r.times, time.Now())
	l.enqueue(id)
}

// contest leaves an object to whoever else keeps writing it, and says so,
// until its content changes or everything is looked at again.
func (l *lane) contest(id propagate.ID, by string) {
	if by == "" {
		by = "somebody"
	}
	err := &Error{Cluster: l.cluster, ID: id, Op: opRestore, Reason: Contested, Err: fmt.Errorf(
		"%s and %s both write it: restored %d times within %s, and now left alone; have one of the two leave the field out", Manager, by, fightLimit, fightTime)}
	l.drop(id)
	l.jobs[id] = &job{id: id, final: true, waits: true, err: err}
	l.d.log(Event{Cluster: l.cluster, ID: id, Op: opRestore, Err: err})
}

// know writes the inventory in memory; nil drops an entry. The lock is held.
func (l *lane) know(id propagate.ID, e *Entry) {
	if id == IdentityID {
		// It is no object that could be watched.
		if e == nil {
			delete(l.known, id)
		} else {
			l.known[id] = *e
		}
		return
	}
	if was, ok := l.known[id]; ok && was.UID != "" {
		l.countKind(id, was, -1)
	}
	if e == nil {
		delete(l.known, id)
		delete(l.drifts, id)
		delete(l.restores, id)
	} else {
		l.known[id] = *e
		if e.UID != "" {
			l.countKind(id, *e, +1)
		}
	}
}

func (l *lane) countKind(id propagate.ID, e Entry, by int) {
	gvk := refTo(id, e.APIVersion).GroupVersionKind
	if l.kinds[gvk] += by; l.kinds[gvk] <= 0 {
		delete(l.kinds, gvk)
	}
	l.watchSoon = l.watchSoon || (l.vigils[gvk] == nil) == (l.kinds[gvk] > 0)
}

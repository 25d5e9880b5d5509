// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// watchAgain is how long a preempted watch leaves its connection to others.
const watchAgain = 30 * time.Second

// driftWatch looks after what a worker's member holds, and has restored what was
// changed there by hand. Its fields are guarded by worker.mu.
type driftWatch struct {
	drifts
	w *worker

	// watches end the watches over the kinds that the member holds objects of.
	watches map[schema.GroupVersionKind]context.CancelFunc
	stale   bool // watches were begun for another member
	// relisted: what was changed before this process began was looked for;
	// relisting while it is.
	relisted, relisting bool
}

func newDriftWatch(w *worker) driftWatch {
	return driftWatch{drifts: newDrifts(), w: w, watches: map[schema.GroupVersionKind]context.CancelFunc{}}
}

// restart is for another member. The lock is held.
func (d *driftWatch) restart() {
	d.stop()
	d.stale, d.relisted = true, false
}

// concerned reports whether the member is to be looked at. The lock is held.
func (d *driftWatch) concerned() bool {
	return d.w.d.opt.Watch || d.w.d.opt.Look && !d.relisted && !d.w.readOnly
}

// update begins to watch the kinds that the member holds objects of, and ceases to
// watch others. The lock is held.
func (d *driftWatch) update() {
	if d.stale || d.w.holdings.kindsChanged {
		d.stale, d.w.holdings.kindsChanged = false, false
		d.watchKinds()
	}
	d.relistOnce()
}

func (d *driftWatch) watchKinds() {
	w := d.w
	watcher, ok := member.As[member.Watcher](w.member)
	if !ok || !w.d.opt.Watch || w.readOnly || w.d.closed() {
		d.stop()
		return
	}

	for gvk := range w.holdings.kinds {
		if d.watches[gvk] != nil {
			continue
		}
		ctx, end := context.WithCancel(w.d.ctx)
		d.watches[gvk] = end
		go d.watch(ctx, &kindWatch{m: w.member, watcher: watcher, gvk: gvk})
	}
	for gvk, end := range d.watches {
		if w.holdings.kinds[gvk] == 0 {
			end()
			delete(d.watches, gvk)
		}
	}
}

func (d *driftWatch) stop() {
	for gvk, end := range d.watches {
		end()
		delete(d.watches, gvk)
	}
}

// kindWatch is the watch over one kind on one member.
type kindWatch struct {
	m       member.Member
	watcher member.Watcher
	gvk     schema.GroupVersionKind
}

// watch looks after one kind until it is told to end. Every watch begins with all
// objects, so each is a relist as well: what an earlier one missed is found by the
// next.
func (d *driftWatch) watch(ctx context.Context, k *kindWatch) {
	opt := d.w.d.opt
	for failures := 0; ctx.Err() == nil; {
		all := d.beginRelist(k)
		// Not all at once, though they began at once.
		lasting := opt.Relist/2 + rand.N(opt.Relist)
		began := time.Now()
		err := k.watcher.Watch(ctx, k.gvk, lasting, func(e member.WatchEvent) { d.observe(e, all) })
		if ctx.Err() != nil {
			return
		}
		if err == nil || time.Since(began) > time.Minute {
			failures = 0
		}
		if preempted := (*member.Preempted)(nil); errors.As(err, &preempted) {
			d.w.d.scarce(preempted)
			sleep(ctx, watchAgain/2+rand.N(watchAgain))
			continue
		}
		if err != nil {
			failures++
			d.w.d.log(Event{Cluster: d.w.cluster, Op: OpWatch, Kind: k.gvk.Kind, Err: d.w.failed("watch", object.ID{}, err)})
		}
		pause := opt.Backoff.afterError(err, max(failures, 1))
		if errors.Is(err, member.Forbidden) || errors.Is(err, member.NotServed) {
			pause = opt.Backoff.Max
		}
		sleep(ctx, pause)
	}
}

// sleep ends early when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// relistOnce looks once at what the member holds, for a process that ends before
// there is anything to watch. Nothing waits for it. The lock is held.
func (d *driftWatch) relistOnce() {
	w := d.w
	relister, ok := member.As[member.Relister](w.member)
	if !ok || !w.d.opt.Look || w.readOnly || d.relisted {
		return
	}

	d.relisted, d.relisting = true, true
	m, kinds := w.member, w.holdings.held()
	go func() {
		var err error
		for _, gvk := range kinds {
			all := d.beginRelist(&kindWatch{m: m, gvk: gvk})
			if err = relister.Relist(w.d.ctx, gvk, func(e member.WatchEvent) { d.observe(e, all) }); err != nil {
				break
			}
		}
		if err != nil {
			w.d.log(Event{Cluster: w.cluster, Op: OpRelist, Err: w.failed("look", object.ID{}, err)})
		}

		w.mu.Lock()
		defer w.mu.Unlock()
		d.relisting = false
		w.schedule()
	}()
}

// relist is the beginning of a watch, which tells of every object as it is then.
type relist struct {
	*kindWatch
	seen map[object.ID]bool
	done bool
	// newest is the last version of the kind that was acknowledged before the
	// watch began, so that all objects are told as they are after it.
	newest uint64
}

func (d *driftWatch) beginRelist(k *kindWatch) *relist {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	all := &relist{kindWatch: k, seen: map[object.ID]bool{}}
	for _, version := range d.w.holdings.versions(k.gvk.GroupKind()) {
		all.newest = max(all.newest, version)
	}
	return all
}

// observe takes what a watch tells of an object.
func (d *driftWatch) observe(e member.WatchEvent, all *relist) {
	w := d.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.member != all.m || w.fleet == nil {
		return
	}

	defer w.schedule()
	if e.All {
		d.findAbsent(e.Version, all)
		all.done, all.seen = true, nil
		return
	}
	if !all.done && d.concerns(e.ID) {
		all.seen[e.ID] = true
	}
	if j := w.queue.jobs[e.ID]; j != nil && !j.waits {
		// What we are about to do, or just did, is in the member's answer.
		d.late[e.ID] = e
		return
	}
	if w.d.behind(&e.Found) != nil {
		d.late[e.ID] = e // it is judged by the commit that it is as of
		return
	}
	if !all.done && d.setBack(e, all) {
		return
	}
	d.judge(e)
}

// concerns reports whether we have to do with an object. A member may tell of any
// number of others, and what it tells of those is not kept. What is to be made is
// on record before it is. The lock is held.
func (d *driftWatch) concerns(id object.ID) bool {
	return d.w.holdings.has(id) || d.w.queue.jobs[id] != nil
}

// setBack finds what is not what was acknowledged, though nobody took a field
// from us: a member that was restored from a backup has what we wrote earlier.
// Its versions begin again there, and what comes next is news by those. While a
// watch goes on that may be another of us who was faster, so only a relist is
// asked, whatever the commit. The lock is held.
func (d *driftWatch) setBack(told member.WatchEvent, all *relist) bool {
	e, known := d.w.holdings.entry(told.ID)
	if d.isTaken(told) {
		return false
	}
	if !known || told.UID != e.UID || told.Gone || told.Deleting || told.Version == 0 || told.Version < e.Version && e.Version > all.newest {
		return false
	}
	if told.Version < e.Version {
		e.Version = told.Version - 1
		d.w.know(told.ID, &e)
	}
	if told.Digest() == e.Digest || told.Annotations[object.AnnotationDigest] == "" {
		return false
	}
	d.drifted(told.ID, "had other content of ours than was acknowledged", "")
	return true
}

// findAbsent finds what should be there as of a version and is not. What was
// acknowledged since need not be. The lock is held.
func (d *driftWatch) findAbsent(version uint64, all *relist) {
	for id, acknowledged := range d.w.holdings.versions(all.gvk.GroupKind()) {
		since := acknowledged > version && acknowledged > all.newest
		if !all.seen[id] && d.w.queue.jobs[id] == nil && !since && d.w.holdings.there(id) {
			d.deleted(id, "")
		}
	}
}

// judge compares an object with what was acknowledged. The lock is held.
func (d *driftWatch) judge(told member.WatchEvent) {
	w := d.w
	e, known := w.holdings.entry(told.ID)
	switch {
	case !known || e.UID == "":
		// It is not ours any more, or is on its way.
	case told.Gone && told.UID != e.UID && told.UID != "":
		// The one before ours.
	case told.Gone:
		d.deleted(told.ID, told.By)
	case told.UID != e.UID:
		d.drifted(told.ID, "was replaced", told.By)
	case told.Deleting, told.Version != 0 && told.Version <= e.Version:
	case d.isTaken(told):
		d.taken(told, e)
	case e.Fields == 0 && w.fleet.Desire(w.cluster, told.ID).Verb == Hold:
		// Which fields were ours is not known, and what they should be is not at
		// hand. It is told when the hold ends.
		d.late[told.ID] = told
	case e.Fields == 0 && told.Digest() == e.Digest && d.isWhole(told):
		// An inventory that did not say which fields are ours; they all are.
		e.Fields, e.Version = told.Fields, told.Version
		w.record(told.ID, &e)
	case !e.Fields.Same(told.Fields, w.fleet.Desire(w.cluster, told.ID).RetainReplicas):
		d.drifted(told.ID, "was changed", told.By)
		d.drifts.lost(told.ID, d.lost(told))
	case d.isLate(told, e):
		d.drifted(told.ID, fmt.Sprintf("was set back to commit %.7s by a late write of ours", told.Annotations[object.AnnotationRevision]), "")
	}
}

// isLate reports whether a member tells of a write of ours that was sent before what was
// acknowledged and arrived after it: a process that was stopped in between goes on. Its
// fields are those that we own, and its commit is of our history. One of a later commit
// is of a process that was faster. The lock is held.
func (d *driftWatch) isLate(told member.WatchEvent, e Entry) bool {
	digest := told.Digest()
	if digest == (object.Digest{}) || digest == e.Digest || d.w.queue.jobs[told.ID] != nil {
		return false // it is what we know of, or is sent again anyway
	}
	if d.w.d.opt.Knows != nil {
		return d.w.d.behind(&told.Found) == nil
	}
	has := d.w.fleet.Marker().Has
	return has != nil && has(told.Annotations[object.AnnotationRevision])
}

// lost names the fields that somebody else has written, so that what is about to be
// changed back leaves a trace; empty where nothing is. The lock is held.
func (d *driftWatch) lost(told member.WatchEvent) string {
	want := d.w.fleet.Desire(d.w.cluster, told.ID)
	if want.Verb != Apply {
		return ""
	}
	manifest, err := want.Manifest()
	if err != nil {
		return ""
	}

	const most = 5
	var paths []string
	for path := range member.Lost(told.Set, manifest, want.RetainReplicas) {
		if len(paths) == most {
			return strings.Join(paths, ", ") + " and more"
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ", ")
}

// wasDeleted is how what a watch does not tell of any more differs.
const wasDeleted = "was deleted"

// deleted has an object made again that is gone. A Job that its cluster removes a while
// after it has finished is not: it has done what it was for, and would do it again. The
// lock is held.
func (d *driftWatch) deleted(id object.ID, by string) {
	if !d.expires(id) {
		d.drifted(id, wasDeleted, by)
		return
	}
	d.w.notes[id] = "finished, and removed by its ttlSecondsAfterFinished"
}

// expires reports whether what was acknowledged of an object has its cluster remove it.
// The lock is held.
func (d *driftWatch) expires(id object.ID) bool {
	want := d.w.fleet.Desire(d.w.cluster, id)
	if id.Group != "batch" || id.Kind != "Job" || want.Verb != Apply {
		return false
	}
	if acknowledged, _ := d.w.holdings.acknowledged(unique.Make(id)); acknowledged != want.Digest {
		return false
	}
	manifest, err := want.Manifest()
	spec, _ := manifest["spec"].(map[string]any)
	return err == nil && spec["ttlSecondsAfterFinished"] != nil
}

// isTaken reports whether another fleet has made an object its own that we have on
// record. The lock is held.
func (d *driftWatch) isTaken(told member.WatchEvent) bool {
	return !told.Gone && told.Whose(d.w.fleet.Marker(), true) == object.AnotherFleets
}

// taken strikes an object off the record. Where it is wanted the next attempt finds
// it foreign, and takes it back only under Overwrite. The lock is held.
func (d *driftWatch) taken(told member.WatchEvent, e Entry) {
	d.w.record(told.ID, &Entry{APIVersion: e.APIVersion})
	d.w.lists = nil // they may have it as ours
	d.drifts.forget(told.ID)

	want := d.w.fleet.Desire(d.w.cluster, told.ID)
	if want.Verb == Apply && want.Overwrite {
		d.drifted(told.ID, fmt.Sprintf("was taken over by the fleet %q", told.Labels[object.LabelFleet]), "")
		return
	}
	d.w.enqueue(told.ID)
}

// isWhole reports whether all that we set on an object is still ours. Of what is
// to go nothing can be said, and nothing is to be restored. The lock is held.
func (d *driftWatch) isWhole(told member.WatchEvent) bool {
	want := d.w.fleet.Desire(d.w.cluster, told.ID)
	if want.Verb != Apply {
		return true
	}
	manifest, err := want.Manifest()
	if err == nil && told.Labels[object.LabelFleet] == "" {
		// An older version made it. It gets the name with its next apply.
		delete(object.Section(object.Section(manifest, "metadata"), "labels"), object.LabelFleet)
	}
	return err == nil && member.Owns(told.Set, manifest, want.RetainReplicas)
}

// drifted has an object restored. One that is held is restored when it is
// released: nothing is sent to it before. The lock is held.
func (d *driftWatch) drifted(id object.ID, how, by string) {
	if by != "" {
		how += " by " + by
	}
	d.note(id, how)
	if d.w.fleet.Desire(d.w.cluster, id).Verb != Apply {
		return
	}
	if !d.mayRestore(id, time.Now()) {
		d.giveUp(id, by)
		return
	}
	d.w.enqueue(id)
}

// giveUp leaves an object to whoever else keeps writing it, and says so, until its
// content changes or everything is looked at again.
func (d *driftWatch) giveUp(id object.ID, by string) {
	if by == "" {
		by = "somebody"
	}
	err := &member.Error{Cluster: d.w.cluster, ID: id, Op: string(OpRestore), Reason: member.Contested, Err: fmt.Errorf(
		"%s and %s keep overwriting each other: restored %d times within %s, now left alone; remove the field from one of the two", object.Manager, by, flapLimit, flapWindow)}
	d.w.queue.giveUp(id, err)
	d.w.d.log(Event{Cluster: d.w.cluster, ID: id, Op: OpRestore, Err: err})
}

// scarce tells, once, that watches take turns.
func (d *Dispatcher) scarce(why *member.Preempted) {
	d.turns.Do(func() { d.log(Event{Op: OpWarn, Note: why.Error()}) })
}

// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
)

// lane is the work of one member: its queue, its pace, what is known of it.
// act.go says what is done with one object.
type lane struct {
	d       *Dispatcher
	cluster string

	mu     sync.Mutex
	member Member // nil: the cluster was forgotten
	fleet  Fleet
	level  int // counts the Syncs
	// fresh lanes have every key of the fleet looked at by the next Sync.
	fresh bool

	// known is the inventory. Without a UID in it the member's marks are read
	// before anything else (first contact).
	known     map[propagate.ID]Entry
	verified  time.Time // when the member was last who it should be; zero when it is not known to be
	loaded    bool
	contacted bool
	onlyKnown bool

	// kinds counts the objects that the member holds, vigils are the watches
	// over them; watchSoon says that the two do not fit.
	kinds     map[schema.GroupVersionKind]int
	vigils    map[schema.GroupVersionKind]*vigil
	watchSoon bool
	// looked: what was changed by hand before was looked for; looking while it is.
	looked, looking bool
	// drifts are objects that are not as they were acknowledged, restores when
	// they were restored, and late is what was seen while a job was under way, or
	// a hold.
	drifts   map[propagate.ID]*drift
	restores map[propagate.ID]*restored
	late     map[propagate.ID]Sighting

	jobs    map[propagate.ID]*job
	ready   [stages]jobs
	running [stages]int // first attempts in flight
	flying  int         // jobs in flight, first contact included
	landed  *sync.Cond
	open    int       // jobs that waiting may mend
	busy    bool      // as counted by the Dispatcher
	wake    time.Time // when the first waiting job's time comes; zero without one
	timer   *time.Timer

	// Pace. A failure of the member as a whole pauses the lane and begins a
	// new epoch, so that what was in flight together fails once.
	limit    int
	epoch    int
	failures int
	resume   time.Time
	err      *Error

	batch batch

	// round is what was read for the creates since the last Sync.
	round *round
	// namespaces that the member has; see namespace.go.
	namespaces namespaces

	notes map[propagate.ID]string
}

// job is one key with work to do.
type job struct {
	id       propagate.ID
	stage    stage
	rank     int
	failures int
	epoch    int
	running  bool
	again    bool // the level changed while it was running
	final    bool // not mended by waiting
	at       time.Time
	err      *Error
	waits    bool // for its time, or for another Sync when at is zero
}

// jobs is a heap in the order of sending.
type jobs []*job

func (q jobs) Len() int      { return len(q) }
func (q jobs) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *jobs) Push(x any)   { *q = append(*q, x.(*job)) }
func (q *jobs) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return j
}
func (q jobs) Less(i, j int) bool {
	a, b := q[i], q[j]
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(a.id.Namespace, b.id.Namespace),
		cmp.Compare(a.id.Kind, b.id.Kind),
		cmp.Compare(a.id.Name, b.id.Name),
	) < 0
}

func newLane(d *Dispatcher, cluster string) *lane {
	l := &lane{
		d: d, cluster: cluster, fresh: true, limit: 1,
		jobs:     map[propagate.ID]*job{},
		notes:    map[propagate.ID]string{},
		kinds:    map[schema.GroupVersionKind]int{},
		vigils:   map[schema.GroupVersionKind]*vigil{},
		drifts:   map[propagate.ID]*drift{},
		restores: map[propagate.ID]*restored{},
		late:     map[propagate.ID]Sighting{},
	}
	l.landed = sync.NewCond(&l.mu)
	return l
}

// setMember forgets the pace and what was read of the member before.
func (l *lane) setMember(m Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.member == m {
		return
	}
	if m == nil && !l.dry() {
		l.forgetPosition()
	}
	l.member, l.verified = m, time.Time{}
	l.unwatch()
	l.watchSoon, l.looked = true, false
	l.limit, l.failures, l.err, l.resume = 1, 0, nil, time.Time{}
	l.epoch++
	l.round = nil
	l.forgetNamespaces()
	l.restart()
	l.batch.ask = true
	if m == nil {
		l.jobs, l.ready, l.open = map[propagate.ID]*job{}, [stages]jobs{}, 0
		l.fresh = true
	}
	l.pump()
}

// load reads the inventory, once.
func (l *lane) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded {
		return nil
	}
	known, err := l.d.inventory.Load(l.cluster)
	if err != nil {
		return fmt.Errorf("inventory of %s: %w", l.cluster, err)
	}
	if known == nil {
		known = map[propagate.ID]Entry{}
	}
	l.takePosition(known)
	l.known, l.loaded = known, true
	for id, e := range known {
		if e.UID != "" && id != IdentityID {
			l.countKind(id, e, +1)
			l.contacted = true
		}
	}
	return nil
}

// dry reports whether writes are not sent, so that nothing is saved either.
func (l *lane) dry() bool {
	_, ok := l.member.(dryRun)
	return ok
}

// keys are what a Sync looks at: those that changed, or every one that may need
// work. After a restart that is few of very many.
func (l *lane) keys(fleet Fleet, changed []propagate.ID, all bool) []propagate.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.fresh && !all {
		return changed
	}
	var keys []propagate.ID
	if !l.fresh {
		// What is not desired any more may still have a failure on record.
		keys = slices.Clone(changed)
	}
	for id, want := range fleet.Desires(l.cluster) {
		if !l.contacted || !l.settled(id, want) || l.remembers(id) {
			keys = append(keys, id)
		}
	}
	return keys
}

// remembers is whether there is more about a key than what the member holds.
func (l *lane) remembers(id propagate.ID) bool {
	if _, seen := l.late[id]; seen {
		return true
	}
	return l.jobs[id] != nil || l.restores[id] != nil || l.isStaged(id)
}

// intents are the entries to save before keys are worked on.
func (l *lane) intents(fleet Fleet, keys []propagate.ID, opt SyncOptions) map[propagate.ID]*Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.member == nil || l.dry() || opt.OnlyKnown && !l.contacted {
		return nil
	}
	out := map[propagate.ID]*Entry{}
	for _, id := range keys {
		if _, ok := l.known[id]; ok {
			continue
		}
		if want := fleet.Desire(l.cluster, id); want.Verb == Apply {
			out[id] = &Entry{APIVersion: want.APIVersion}
		}
	}
	return out
}

// sync makes fleet the level and queues the keys. Their intents are saved.
func (l *lane) sync(fleet Fleet, keys []propagate.ID, intents map[propagate.ID]*Entry, opt SyncOptions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.member == nil {
		return
	}
	for id, e := range intents {
		if _, ok := l.known[id]; !ok {
			l.know(id, e)
		}
	}
	for _, id := range keys {
		delete(l.restores, id) // what is wanted changed, and with it the fight
	}
	l.batch.ask = l.batch.ask || l.fresh || opt.All
	l.fleet, l.fresh, l.onlyKnown = fleet, false, opt.OnlyKnown
	l.level++
	l.round = nil
	if l.contacted {
		for _, id := range keys {
			l.enqueue(id)
		}
		l.forgive()
	}
	if opt.All && l.err != nil && l.err.Reason.final() {
		l.resume = time.Time{}
	}
	l.pump()
}

// forgive ends failed jobs of which the level wants nothing any more.
func (l *lane) forgive() {
	for id, j := range l.jobs {
		if j.waits && l.settled(id, l.fleet.Desire(l.cluster, id)) {
			l.drop(id)
		}
	}
}

// enqueue makes or refreshes the job of a key, or ends it when there is
// nothing to do.
func (l *lane) enqueue(id propagate.ID) {
	want := l.fleet.Desire(l.cluster, id)
	j := l.jobs[id]
	if j != nil && (j.running || l.batch.busy && l.isStaged(id)) {
		j.again = true
		return
	}
	if s, ok := l.late[id]; ok && j == nil && want.Verb == Apply {
		delete(l.late, id)
		l.judge(s) // it was seen under a hold
		j = l.jobs[id]
	}
	if l.isStaged(id) {
		l.restart()
	}
	if l.settled(id, want) {
		if j != nil && !j.waits {
			return // in the queue; its turn finds nothing to do
		}
		l.drop(id)
		return
	}
	if j == nil {
		j = &job{id: id, final: true}
		l.jobs[id] = j
		j.stage, j.rank = stageOf(want.Verb, id), rank(want.Verb, id)
		heap.Push(&l.ready[j.stage], j)
	} else if j.waits {
		j.stage, j.rank = stageOf(want.Verb, id), rank(want.Verb, id)
		heap.Push(&l.ready[j.stage], j)
	}
	j.waits, j.failures, j.err = false, 0, nil
	l.setFinal(j, false)
}

// settled reports whether a key needs no request.
func (l *lane) settled(id propagate.ID, want Desire) bool {
	e, ok := l.known[id]
	switch want.Verb {
	case Apply:
		return ok && e.Digest == want.Digest && e.Digest != propagate.Digest{} && l.drifts[id] == nil
	case Delete, Release:
		// What was never intended was never sent.
		return !ok
	}
	return true
}

func (l *lane) drop(id propagate.ID) {
	if j := l.jobs[id]; j != nil {
		l.setFinal(j, true)
		delete(l.jobs, id)
	}
}

func (l *lane) setFinal(j *job, final bool) {
	if j.final == final {
		return
	}
	j.final = final
	if final {
		l.open--
	} else {
		l.open++
	}
}

// pump starts what may be started now, and sees to it that it is called again
// when more may. Whoever changes the lane calls it last.
func (l *lane) pump() {
	defer l.count()
	l.landed.Broadcast()
	if l.member == nil || l.fleet == nil || l.d.closed() {
		return
	}
	if wait := time.Until(l.resume); wait > 0 {
		l.wakeIn(wait)
		return
	}
	if l.unidentified() && l.concerned() {
		if l.flying == 0 {
			l.flying++
			go l.identify(l.member, l.epoch)
		}
		return
	}
	if !l.contacted {
		if l.flying == 0 {
			l.flying++
			go l.contact(l.member, l.fleet, l.level, l.epoch)
		}
		return
	}
	if l.watchSoon {
		l.watchSoon = false
		l.watchKinds()
	}
	l.patrol()
	l.wakeWaiting()
	if l.begin() {
		return
	}
	defer l.flush()
	for limit := min(l.limit, l.d.share()); l.flying < limit; {
		j := l.next()
		if j == nil {
			return
		}
		j.running, j.epoch = true, l.epoch
		l.flying++
		if j.failures == 0 {
			l.running[j.stage]++
		}
		go l.work(l.member, j)
	}
}

// concerned is whether anything is to be sent to the member, or read from it.
func (l *lane) concerned() bool {
	for s := range l.ready {
		if l.ready[s].Len() > 0 {
			return true
		}
	}
	if !l.contacted {
		for range l.fleet.Desires(l.cluster) {
			return true
		}
	}
	return (l.d.opt.Watch || l.d.opt.Look && !l.looked && !l.dry()) && len(l.kinds) > 0
}

// next takes the first job of the lowest stage, unless a lower one still has
// first attempts in flight.
func (l *lane) next() *job {
	for s := range l.ready {
		for l.ready[s].Len() > 0 {
			j := heap.Pop(&l.ready[s]).(*job)
			if l.jobs[j.id] == j && !j.running && !j.waits {
				return j
			}
		}
		if l.running[s] > 0 {
			return nil
		}
	}
	return nil
}

// wakeWaiting queues the failed jobs whose time has come.
func (l *lane) wakeWaiting() {
	if l.wake.IsZero() {
		return
	}
	now := time.Now()
	if now.Before(l.wake) {
		l.wakeIn(l.wake.Sub(now))
		return
	}
	l.wake = time.Time{}
	for _, j := range l.jobs {
		if !j.waits || j.at.IsZero() {
			continue
		}
		if j.at.After(now) {
			l.wakeAt(j.at)
			continue
		}
		j.waits = false
		heap.Push(&l.ready[j.stage], j)
	}
	if !l.wake.IsZero() {
		l.wakeIn(l.wake.Sub(now))
	}
}

func (l *lane) wakeAt(at time.Time) {
	if l.wake.IsZero() || at.Before(l.wake) {
		l.wake = at
	}
}

func (l *lane) wakeIn(wait time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pump()
	})
}

// work does one job.
func (l *lane) work(m Member, j *job) {
	began := time.Now()
	op, note, err := l.act(m, j.id)
	if (op != "" || err != nil) && !l.stage(j.id, op, note, time.Since(began)) {
		l.d.log(Event{Cluster: l.cluster, ID: j.id, Op: op, Note: note, Err: asError(err), Took: time.Since(began)})
	}
	if op == opRestore {
		note = "" // it was news, and is over
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying--
	if j.failures == 0 {
		l.running[j.stage]--
	}
	j.running = false
	if l.jobs[j.id] == j {
		l.finish(j, note, err)
	}
	l.pump()
}

// finish decides what becomes of a job that was tried.
func (l *lane) finish(j *job, note string, err *Error) {
	if l.d.closed() && err != nil {
		// Our own end is not the member's failure.
		return
	}
	switch {
	case err == nil && l.isStaged(j.id):
		// The flush acknowledges it.
	case err == nil:
		l.well(j.epoch)
		l.drop(j.id)
		delete(l.notes, j.id)
		if note != "" {
			l.notes[j.id] = note
		}
		if s, ok := l.late[j.id]; ok {
			delete(l.late, j.id)
			l.judge(s)
		}
		if j.again {
			l.enqueue(j.id)
		}
		return
	case err.Reason.ofMember():
		l.down(err, j.epoch)
		heap.Push(&l.ready[j.stage], j)
	case l.outrun(err):
		heap.Push(&l.ready[j.stage], j)
	default:
		l.well(j.epoch)
		j.failures++
		j.err = err
		j.waits = true
		j.at = time.Now().Add(max(err.RetryAfter, l.d.opt.Backoff.after(j.failures)))
		if err.Reason.final() {
			j.at = time.Time{}
		}
		if err.Reason == Forbidden {
			// Someone may grant it, but asking often would not help.
			j.at = time.Now().Add(l.d.opt.Backoff.Max)
		}
		l.setFinal(j, err.Reason.final())
		if !j.at.IsZero() {
			l.wakeAt(j.at)
		}
	}
	if j.again {
		j.again = false
		l.enqueue(j.id)
	}
}

// well notes that the member answers.
func (l *lane) well(epoch int) {
	if epoch != l.epoch {
		return
	}
	throttled := l.err != nil && l.err.Reason == Throttled || l.limit > 1
	l.failures, l.err = 0, nil
	if throttled {
		l.limit = min(l.limit+1, l.d.opt.Parallel)
		return
	}
	l.limit = l.d.opt.Parallel
}

// down pauses the whole lane. Afterwards one request tries the water.
func (l *lane) down(err *Error, epoch int) {
	if epoch != l.epoch {
		return
	}
	l.epoch++
	l.failures++
	l.err = err
	if err.Reason != Throttled {
		l.verified = time.Time{} // who answers next may be somebody else
	}
	pause := l.d.opt.Backoff.afterError(err, l.failures)
	switch err.Reason {
	case Throttled:
		pause = max(err.RetryAfter, pause)
		l.limit = max(1, l.limit/2)
	case Unauthorized, Forbidden, Replaced:
		pause = l.d.opt.Backoff.Max
		l.limit = 1
	default:
		pause = max(err.RetryAfter, pause)
		l.limit = 1
	}
	l.resume = time.Now().Add(pause)
}

// drain waits for the requests in flight.
func (l *lane) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.flying > 0 || l.looking {
		l.landed.Wait()
	}
}

// count tells the Dispatcher when the lane begins or ceases to have work that
// waiting may mend.
func (l *lane) count() {
	busy := l.member != nil && l.fleet != nil && (l.open > 0 || !l.contacted || l.flying > 0 || l.looking)
	if l.flying == 0 && l.err != nil && l.err.Reason.final() {
		busy = false
	}
	if busy != l.busy {
		l.busy = busy
		l.d.count(busy)
	}
}

// save notes an entry, or the end of one, for the next write of the
// inventory.
func (l *lane) save(id propagate.ID, e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dry() {
		return
	}
	if _, ok := l.together(); ok {
		if l.batch.staged == nil {
			l.batch.staged = map[propagate.ID]staged{}
		}
		l.batch.staged[id] = staged{entry: e}
		return
	}
	if e != nil {
		delete(l.drifts, id)
	}
	l.know(id, e)
	l.d.saver.put(l.cluster, id, e)
}

func (l *lane) entry(id propagate.ID) (Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.known[id]
	return e, ok
}

// failed makes an error of a Member complete.
func (l *lane) failed(op string, id propagate.ID, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Reason: Unavailable, Err: err}
	}
	out := *e
	out.Cluster, out.ID, out.Op = l.cluster, id, op
	if out.Reason.ofMember() {
		out.ID, out.Op = propagate.ID{}, "reach"
		if out.Reason == Throttled {
			out.Op = "apply"
		}
	}
	return &out
}

func asError(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}

// outcomes are what is not acknowledged. With pending also what merely was
// not reached yet.
func (l *lane) outcomes(pending bool) []Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Outcome
	for id, note := range l.notes {
		out = append(out, Outcome{Cluster: l.cluster, ID: id, Note: note, Final: true})
	}
	if l.err != nil {
		out = append(out, Outcome{Cluster: l.cluster, Err: l.err, Final: l.err.Reason.final(), Waiting: l.open, Settled: l.contacted && l.open == 0})
	}
	for id, j := range l.jobs {
		switch {
		case l.err != nil && !j.final:
			// One line for the member says it.
		case j.err != nil:
			out = append(out, Outcome{Cluster: l.cluster, ID: id, Err: j.err, Final: j.final})
		case pending:
			err := &Error{Cluster: l.cluster, ID: id, Op: "send", Reason: Pending, Err: errors.New("not acknowledged yet")}
			out = append(out, Outcome{Cluster: l.cluster, ID: id, Err: err})
		}
	}
	if pending && l.err == nil && !l.contacted && l.fleet != nil && l.member != nil {
		err := &Error{Cluster: l.cluster, Op: "reach", Reason: Pending, Err: errors.New("not answered yet")}
		out = append(out, Outcome{Cluster: l.cluster, Err: err})
	}
	return out
}

func digestOf(f *Found) propagate.Digest {
	d, _ := propagate.ParseDigest(f.Annotations[AnnotationDigest])
	return d
}

// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// worker brings one member to what the fleet wants. It is made of parts: what is
// to do (queue), whether anything may be sent (breaker), what the member is known
// to hold (holdings), who it is (identity), what was changed there by hand
// (driftWatch), which namespaces it has (namespaceCreator), and for a member that
// takes many changes as one the publisher. act.go says what is done with one
// object. Beside the seven parts its fields are what the parts share under one lock:
// the member, the fleet, how far first contact is, and what is in flight.
type worker struct {
	d       *Dispatcher
	cluster string

	mu       sync.Mutex
	member   member.Member // nil: the cluster was forgotten
	readOnly bool          // its writes go nowhere, so nothing is recorded
	fleet    Fleet
	syncs    int // counts them
	// fresh workers have every key of the fleet looked at by the next Sync.
	fresh bool
	// contacted: what the member holds of ours is known. onlyKnown: until it is
	// known to hold something, nothing is sent.
	contacted, onlyKnown bool

	queue    queue
	breaker  breaker
	holdings holdings
	loaded   bool // holdings were read from the inventory
	// lists is what was read for the creates since the last Sync.
	lists *listCache
	notes map[object.ID]string

	identity   identity
	drift      driftWatch
	namespaces namespaceCreator
	publisher  publisher

	inFlight int // requests, first contact included
	landed   *sync.Cond
	free     bool // the goroutine that calls schedule takes the next job itself
	taken    *job // by that goroutine
	busy     bool // as counted by the Dispatcher
	timer    *time.Timer
}

func newWorker(d *Dispatcher, cluster string) *worker {
	w := &worker{
		d: d, cluster: cluster, fresh: true,
		queue:    newQueue(),
		breaker:  newBreaker(d.opt.Parallel, d.opt.Backoff),
		holdings: newHoldings(0),
		notes:    map[object.ID]string{},
	}
	w.landed = sync.NewCond(&w.mu)
	w.identity.w = w
	w.drift = newDriftWatch(w)
	w.namespaces.w = w
	w.publisher.w = w
	return w
}

// setMember forgets the pace and what was read of the member before.
func (w *worker) setMember(m member.Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.member != m {
		w.replace(m)
	}
}

// release forgets the member and records nothing more of it. It returns what it was.
func (w *worker) release() member.Member {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.member
	w.replace(nil)
	w.readOnly = true // what is in flight is not recorded either
	return was
}

// await waits until nothing is in flight, or ctx ends.
func (w *worker) await(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.landed.Broadcast()
	})
	defer stop()

	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inFlight > 0 && ctx.Err() == nil {
		w.landed.Wait()
	}
}

// replace makes m the member. The lock is held.
func (w *worker) replace(m member.Member) {
	if m == nil {
		w.publisher.forgetPosition()
	}
	w.member, w.readOnly = m, m != nil && member.Is[member.ReadOnly](m)
	w.identity.doubt()
	w.drift.restart()
	w.breaker.forget()
	w.lists = nil
	w.namespaces.known.forget()
	w.publisher.restart()
	w.publisher.look = true
	if m == nil {
		w.queue.clear()
		w.fresh = true
	}
	w.schedule()
}

// load reads the inventory, once.
func (w *worker) load() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loaded {
		return nil
	}

	held, position := newHoldings(0), Entry{}
	begin := func(entries int) { held = newHoldings(entries) }
	err := w.d.inventory.Load(w.cluster, begin, func(id object.ID, e *Entry) {
		if id == PositionID {
			position = *e
			return
		}
		held.put(id, e)
	})
	if err != nil {
		return fmt.Errorf("inventory of %s: %w", w.cluster, err)
	}

	w.publisher.takePosition(&position)
	w.holdings, w.loaded = held, true
	w.contacted = w.holdings.any()
	w.d.remember(w.cluster, w.holdings.uid(IdentityID))
	return nil
}

// keys are what a Sync looks at: those that changed, or every one that may need
// work. After a restart that is few of very many.
func (w *worker) keys(fleet Fleet, changed []object.ID, all bool) []object.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.fresh && !all {
		return changed
	}

	var keys []object.ID
	if !w.fresh {
		// What is not desired any more may still have a failure on record.
		keys = slices.Clone(changed)
	}
	for key, want := range fleet.Wants(w.cluster) {
		if id := key.Value(); !w.contacted || !w.settled(key, want) || w.remembers(id) {
			keys = append(keys, id)
		}
	}
	return keys
}

// remembers reports whether there is more about a key than what the member holds.
func (w *worker) remembers(id object.ID) bool {
	return w.queue.jobs[id] != nil || w.drift.remembers(id) || w.publisher.isStaged(id)
}

// intents are the entries to save before keys are worked on.
func (w *worker) intents(fleet Fleet, keys []object.ID, opt SyncOptions) map[object.ID]*Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.member == nil || w.readOnly || opt.OnlyKnown && !w.contacted {
		return nil
	}

	out := map[object.ID]*Entry{}
	for _, id := range keys {
		if w.holdings.has(id) {
			continue
		}
		if want := fleet.Desire(w.cluster, id); want.Verb == Apply {
			out[id] = w.holdings.intent(id, want.APIVersion)
		}
	}
	return out
}

// sync makes fleet the desired state and queues the keys. Their intents are saved.
func (w *worker) sync(fleet Fleet, keys []object.ID, intents map[object.ID]*Entry, opt SyncOptions) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.member == nil {
		return
	}

	for id, e := range intents {
		if !w.holdings.has(id) {
			w.know(id, e)
		}
	}
	for _, id := range keys {
		w.drift.changed(id)
	}
	w.publisher.look = w.publisher.look || w.fresh || opt.All
	w.fleet, w.fresh, w.onlyKnown = fleet, false, opt.OnlyKnown
	w.syncs++
	w.lists = nil
	if w.contacted {
		for _, id := range keys {
			w.enqueue(id)
		}
		w.forgive()
	}
	if opt.All {
		w.breaker.retryNow()
	}
	w.schedule()
}

// forgive ends failed jobs of which the fleet wants nothing any more.
func (w *worker) forgive() {
	for id, j := range w.queue.jobs {
		if j.waits && w.settled(unique.Make(id), w.fleet.Desire(w.cluster, id).Want) {
			w.queue.drop(id)
		}
	}
}

// enqueue makes or refreshes the job of a key, or ends it when there is nothing to
// do.
func (w *worker) enqueue(id object.ID) {
	want := w.fleet.Desire(w.cluster, id)
	j := w.queue.jobs[id]
	if j != nil && (j.running || w.publisher.busy && w.publisher.isStaged(id)) {
		j.again = true
		return
	}

	if j == nil && want.Verb == Apply {
		if e, told := w.drift.takeLate(id); told {
			w.drift.judge(e) // it was told under a hold
			j = w.queue.jobs[id]
		}
	}
	if w.publisher.isStaged(id) {
		w.publisher.restart()
	}
	if !w.settled(unique.Make(id), want.Want) {
		w.queue.put(id, want.Verb)
		return
	}
	if j == nil || j.waits { // one in the queue finds nothing to do when its turn comes
		w.queue.drop(id)
	}
}

// settled reports whether a key needs no request.
func (w *worker) settled(key Key, want Want) bool {
	digest, known := w.holdings.acknowledged(key)
	switch want.Verb {
	case Apply:
		return digest == want.Digest && digest != object.Digest{} && !w.drift.has(key.Value())
	case Delete, Orphan:
		// What was never intended was never sent.
		return !known
	}
	return true
}

// schedule starts what may be started now, and sees to it that it is called again
// when more may. Whoever changes the worker calls it last.
func (w *worker) schedule() {
	defer w.count()
	w.landed.Broadcast()
	if w.member == nil && w.inFlight == 0 {
		w.d.hasLanded(w)
	}
	if w.member == nil || w.fleet == nil || w.d.closed() {
		return
	}
	now := time.Now()
	if w.breaker.state(now) == open {
		w.wakeIn(w.breaker.wait(now))
		return
	}
	if w.identity.unknown() && w.concerned() {
		m, generation := w.member, w.breaker.generation // of this moment: it may be released
		w.alone(func() { w.identity.verify(m, generation) })
		return
	}
	if !w.contacted {
		w.alone(w.contact())
		return
	}

	w.drift.update()
	if at := w.queue.due(now); !at.IsZero() {
		w.wakeIn(at.Sub(now))
	}
	if w.publisher.begin() {
		return
	}

	defer w.publisher.flush()
	for limit := min(w.breaker.allowed(now), w.d.share()); w.inFlight < limit; {
		j := w.queue.next()
		if j == nil {
			return
		}
		w.queue.start(j, w.breaker.generation)
		w.inFlight++
		if w.free {
			w.free, w.taken = false, j
			continue
		}
		go w.work(w.member, j)
	}
}

// alone starts what nothing else may be in flight beside. It ends its flight
// itself.
func (w *worker) alone(do func()) {
	if w.inFlight > 0 {
		return
	}
	w.inFlight++
	go do()
}

// concerned reports whether anything is to be sent to the member, or read from it.
func (w *worker) concerned() bool {
	if w.queue.hasReady() {
		return true
	}
	if !w.contacted {
		for range w.fleet.Wants(w.cluster) {
			return true
		}
	}
	return w.drift.concerned() && w.holdings.any()
}

func (w *worker) wakeIn(wait time.Duration) {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(wait, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.schedule()
	})
}

// work does a job, and then what is due, as long as something is: a goroutine that goes
// on has the stack that a request needs.
func (w *worker) work(m member.Member, j *job) {
	for j != nil {
		m, j = w.workOne(m, j)
	}
}

// workOne does one job and returns the next.
func (w *worker) workOne(m member.Member, j *job) (member.Member, *job) {
	began := time.Now()
	op, note, err := w.act(m, j.id)
	if (op != "" || err != nil) && !w.publisher.stageAct(j.id, op, note, time.Since(began)) {
		w.d.log(Event{Cluster: w.cluster, ID: j.id, Op: op, Note: note, Err: asError(err), Took: time.Since(began)})
	}
	if op == OpRestore || op == OpApply {
		note = "" // it was news, and is over
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	if w.queue.end(j) {
		w.finish(j, note, err)
	}

	w.free = true
	w.schedule()
	next := w.taken
	w.free, w.taken = false, nil
	return w.member, next
}

// finish decides what becomes of a job that was tried.
func (w *worker) finish(j *job, note string, err *member.Error) {
	if w.d.closed() && err != nil {
		// Our own end is not the member's failure.
		return
	}

	switch {
	case err == nil && w.publisher.isStaged(j.id):
		// The flush acknowledges it.
	case err == nil:
		w.breaker.reset(j.generation)
		w.done(j, note)
		return
	case err.Reason.OfMember():
		w.trip(err, j.generation)
		w.queue.retry(j)
	case w.publisher.retryOnConflict(err):
		w.queue.retry(j)
	case err.Reason == member.Waiting:
		w.queue.fail(j, err, time.Now(), w.d.opt.Backoff)
	default:
		w.breaker.reset(j.generation)
		w.queue.fail(j, err, time.Now(), w.d.opt.Backoff)
	}
	if j.again {
		j.again = false
		w.enqueue(j.id)
	}
}

// done ends a job that was acknowledged.
func (w *worker) done(j *job, note string) {
	w.queue.drop(j.id)
	delete(w.notes, j.id)
	if note != "" {
		w.notes[j.id] = note
	}
	if e, told := w.drift.takeLate(j.id); told {
		w.drift.judge(e)
	}
	if j.again {
		w.enqueue(j.id)
	}
}

// trip pauses the whole worker. Who answers next may be another cluster, unless
// the member merely asked to slow down.
func (w *worker) trip(err *member.Error, generation int) {
	if w.breaker.trip(err, generation, time.Now()) && err.Reason != member.Throttled {
		w.identity.doubt()
	}
}

// drain waits for the requests in flight.
func (w *worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inFlight > 0 || w.drift.relisting {
		w.landed.Wait()
	}
}

// count tells the Dispatcher when the worker begins or ceases to have work that
// waiting may mend.
func (w *worker) count() {
	busy := w.member != nil && w.fleet != nil && (w.queue.open > 0 || !w.contacted || w.inFlight > 0 || w.drift.relisting)
	if w.inFlight == 0 && w.breaker.isFinal() {
		busy = false
	}
	if busy != w.busy {
		w.busy = busy
		w.d.count(busy)
	}
}

// know writes the inventory in memory; nil drops an entry. The lock is held.
func (w *worker) know(id object.ID, e *Entry) {
	w.holdings.set(id, e)
	if e != nil && e.Digest != (object.Digest{}) {
		w.d.wake(w.d.waits.take(copyKey{w.cluster, id}))
	}
	if e == nil || e.isLeft() {
		w.drift.forget(id)
	}
}

// record writes the inventory, in memory and on disk. The lock is held.
func (w *worker) record(id object.ID, e *Entry) {
	w.know(id, e)
	if !w.readOnly {
		w.d.writer.put(w.cluster, id, e)
	}
}

// acknowledge notes an entry, or the end of one, once the member has confirmed it.
func (w *worker) acknowledge(id object.ID, e *Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readOnly || w.publisher.stage(id, e) {
		return
	}
	if e != nil {
		w.drift.settled(id)
	}
	w.record(id, e)
}

func (w *worker) entry(id object.ID) (Entry, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holdings.entry(id)
}

// failed makes an error of a Member complete.
func (w *worker) failed(op string, id object.ID, err error) *member.Error {
	var e *member.Error
	if !errors.As(err, &e) {
		e = &member.Error{Reason: member.Unavailable, Err: err}
	}
	out := *e
	out.Cluster, out.ID, out.Op = w.cluster, id, op
	if out.Reason.OfMember() {
		out.ID, out.Op = object.ID{}, "reach"
		if out.Reason == member.Throttled {
			out.Op = "apply"
		}
	}
	return &out
}

func asError(err *member.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// progress is how far the member is.
func (w *worker) progress() Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Progress{Contacted: w.contacted}
	for _, j := range w.queue.jobs {
		if j.err == nil {
			p.Pending++
		}
	}
	return p
}

// outcomes are what is not acknowledged. With pending also what merely was not
// reached yet.
func (w *worker) outcomes(pending bool) []Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Outcome
	for id, note := range w.notes {
		out = append(out, Outcome{Cluster: w.cluster, ID: id, Note: note, Final: true})
	}
	down := w.breaker.err
	if down != nil {
		out = append(out, Outcome{Cluster: w.cluster, Err: down, Final: down.Reason.Final(), Waiting: w.queue.open, Settled: w.contacted && w.queue.open == 0})
	}
	for id, j := range w.queue.jobs {
		switch {
		case down != nil && !j.final:
			// One line for the member says it.
		case j.err != nil:
			out = append(out, Outcome{Cluster: w.cluster, ID: id, Err: j.err, Final: j.err.Reason.Final()})
		case pending:
			err := &member.Error{Cluster: w.cluster, ID: id, Op: "send", Reason: member.Pending, Err: errors.New("not acknowledged yet")}
			out = append(out, Outcome{Cluster: w.cluster, ID: id, Err: err})
		}
	}
	if pending && down == nil && !w.contacted && w.fleet != nil && w.member != nil {
		err := &member.Error{Cluster: w.cluster, Op: "reach", Reason: member.Pending, Err: errors.New("not answered yet")}
		out = append(out, Outcome{Cluster: w.cluster, Err: err})
	}
	return out
}

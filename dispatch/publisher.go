// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// PositionID is where the inventory keeps a Position.
var PositionID = object.ID{Group: "fairlead.dev", Kind: "Position"}

// maxConflicts is how often in a row somebody else may be faster before we pause.
const maxConflicts = 10

var errConflicts = errors.New("somebody else keeps writing to it")

// publisher is the part of a worker that is for a member which takes many changes
// as one: begin, stage each, flush. Its fields are guarded by worker.mu.
type publisher struct {
	w *worker
	batch
}

// batch is what is to reach a member as one.
type batch struct {
	// staged is done, and is acknowledged by the next flush.
	staged map[object.ID]staged
	// begun: the member stands at left, and what is known is true there.
	begun bool
	// look has the member look before anything else.
	look bool
	// busy: the member begins or flushes.
	busy bool
	left member.Position
	// conflicts in a row, and failures of flushes. Those of the worker end with
	// every answer.
	conflicts, failures int
}

type staged struct {
	entry *Entry // nil: it is gone
	op    Op
	note  string
	took  time.Duration
}

// batchState is what a batch waits for.
type batchState string

// idle has nothing to say to the member, beginning must know where it stands
// first, busy waits for its answer, and staging takes more.
const (
	batchIdle      batchState = "idle"
	batchBeginning batchState = "beginning"
	batchBusy      batchState = "busy"
	batchStaging   batchState = "staging"
)

func (b *batch) state(hasWork bool) batchState {
	switch {
	case b.busy:
		return batchBusy
	case b.look, !b.begun && (hasWork || len(b.staged) > 0):
		return batchBeginning
	case b.begun:
		return batchStaging
	}
	return batchIdle
}

func (b *batch) isStaged(id object.ID) bool {
	_, ok := b.staged[id]
	return ok
}

// conflicted notes that somebody else was faster, and reports whether another
// attempt is due at once.
func (b *batch) conflicted() bool {
	b.look = true
	b.conflicts++
	return b.conflicts < maxConflicts
}

// flushed takes what was staged: it has reached the member.
func (b *batch) flushed() map[object.ID]staged {
	all := b.staged
	b.staged, b.conflicts, b.failures = nil, 0, 0
	return all
}

func (p *publisher) member() (member.BatchMember, bool) {
	return member.As[member.BatchMember](p.w.member)
}

// stage notes an entry that the next flush acknowledges; false for a member that
// acknowledges each. The lock is held.
func (p *publisher) stage(id object.ID, e *Entry) bool {
	if _, ok := p.member(); !ok {
		return false
	}
	if p.staged == nil {
		p.staged = map[object.ID]staged{}
	}
	p.staged[id] = staged{entry: e}
	return true
}

// stageAct notes what an act did, when it is not acknowledged before the flush.
func (p *publisher) stageAct(id object.ID, op Op, note string, took time.Duration) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	s, ok := p.staged[id]
	if ok {
		s.op, s.note, s.took = op, note, took
		p.staged[id] = s
	}
	return ok
}

// restart has everything staged done again, after another begin. The lock is
// held.
func (p *publisher) restart() {
	for id := range p.staged {
		if j := p.w.queue.jobs[id]; j != nil {
			p.w.queue.retry(j)
		}
	}
	p.staged, p.begun = nil, false
}

// begin sees to it that the member knows where it stands before it is told
// anything, and reports whether that is waited for. The lock is held.
func (p *publisher) begin() bool {
	m, ok := p.member()
	if !ok {
		return false
	}
	switch p.state(p.w.queue.hasReady()) {
	case batchBusy:
		return true
	case batchIdle, batchStaging:
		return false
	}

	if p.w.inFlight > 0 {
		return true
	}
	p.restart()
	p.busy = true
	p.w.inFlight++
	go p.findPosition(p.w.member, m, p.look, p.w.breaker.generation)
	return true
}

// findPosition begins a batch. What is not as it was left is brought back.
func (p *publisher) findPosition(of member.Member, m member.BatchMember, look bool, generation int) {
	at, err := p.position(m, look)
	var strays map[object.ID]types.UID
	if err == nil {
		strays, err = p.strays(m, at)
	}

	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	p.busy = false
	defer w.schedule()
	if w.member != of || w.d.closed() {
		return
	}
	if err != nil {
		p.failed(err, generation)
		return
	}

	elsewhere := p.left.Where != at.Where
	for id, uid := range strays {
		e, _ := w.holdings.entry(id)
		e.UID, e.Digest = uid, object.Digest{}
		w.record(id, &e)
	}
	p.standAt(at) // after them: who reads this relies on those
	for id, uid := range strays {
		switch {
		case elsewhere:
			w.enqueue(id) // it never was there
		case uid == "":
			w.drift.drifted(id, "was deleted", "")
		default:
			w.drift.drifted(id, "was changed", "")
		}
	}
	w.breaker.reset(generation)
}

// standAt notes where the member stands, with everything known true there. The
// lock is held.
func (p *publisher) standAt(at member.Position) {
	p.begun, p.look = true, false
	if p.left == at {
		return
	}
	p.left = at
	p.w.d.writer.put(p.w.cluster, PositionID, &Entry{APIVersion: at.Where, UID: at.At})
}

// takePosition takes in where the member was left, as the inventory has it.
func (p *publisher) takePosition(e *Entry) {
	p.left = member.Position{Where: e.APIVersion, At: e.UID}
}

// forgetPosition is for a cluster that leaves: its branch is nobody's.
func (p *publisher) forgetPosition() {
	if p.left != (member.Position{}) && !p.w.readOnly {
		p.left = member.Position{}
		p.w.d.writer.put(p.w.cluster, PositionID, nil)
	}
}

// position begins a batch. A branch that is gone is not made again from what
// has changed: a tool that applies it would delete everything else.
func (p *publisher) position(m member.BatchMember, look bool) (member.Position, error) {
	at, err := m.Begin(p.w.d.ctx, look)
	if err != nil {
		return at, err
	}

	p.w.mu.Lock()
	left := p.left
	p.w.mu.Unlock()
	if at.At == "" && left.At != "" && left.Where == at.Where {
		return at, &member.Error{Reason: member.Forbidden, Err: fmt.Errorf(
			"%s is gone: it was at %s. Push that commit to restore it, or push any other commit and everything is published again, except what is held", at.Where, left.At)}
	}
	return at, nil
}

// strays are the objects that are not as they were left, and what is there
// instead. When the member stands where it was left there are none, and
// nothing is looked at.
func (p *publisher) strays(m member.BatchMember, at member.Position) (map[object.ID]types.UID, error) {
	w := p.w
	w.mu.Lock()
	if p.left == at {
		w.mu.Unlock()
		return nil, nil
	}
	known := w.holdings.all()
	w.mu.Unlock()

	strays := map[object.ID]types.UID{}
	for id, e := range known {
		if e.UID == "" || id == IdentityID {
			continue // an intent: its job finds out
		}
		uid, err := m.Holds(w.d.ctx, member.RefTo(id, e.APIVersion))
		if err != nil {
			return nil, err
		}
		if uid != e.UID {
			strays[id] = uid
		}
	}
	return strays, nil
}

// flush sends what is staged, once nothing is left to be staged. The lock is held.
func (p *publisher) flush() {
	m, ok := p.member()
	if !ok || p.w.inFlight > 0 || len(p.staged) == 0 {
		return
	}
	p.busy = true
	p.w.inFlight++
	go p.publish(p.w.member, m, p.w.fleet.Source(), p.w.breaker.generation)
}

func (p *publisher) publish(of member.Member, m member.BatchMember, source member.Source, generation int) {
	began := time.Now()
	w := p.w
	done, err := m.Flush(w.d.ctx, source)

	var events []Event
	w.mu.Lock()
	w.inFlight--
	p.busy = false
	switch {
	case w.member != of:
	case err != nil && !w.d.closed():
		p.failed(err, generation)
	case err == nil:
		events = p.published(done, generation, time.Since(began))
	}
	w.schedule()
	w.mu.Unlock()

	for _, e := range events {
		w.d.log(e)
	}
}

// published acknowledges what was staged. The lock is held.
func (p *publisher) published(done member.Flushed, generation int, took time.Duration) []Event {
	w := p.w
	all := p.flushed()
	w.breaker.reset(generation)
	var events []Event
	for _, id := range slices.SortedFunc(maps.Keys(all), func(x, y object.ID) int { return cmp.Compare(x.Key(), y.Key()) }) {
		s := all[id]
		w.drift.settled(id)
		w.record(id, s.entry)
		delete(w.notes, id)
		if s.note != "" && s.op != OpRestore {
			w.notes[id] = s.note
		}
		if s.op != "" {
			events = append(events, Event{Cluster: w.cluster, ID: id, Op: s.op, Note: s.note, Took: s.took})
		}
		if j := w.queue.jobs[id]; j != nil {
			again := j.again
			j.again = false
			w.queue.drop(id)
			if again {
				w.enqueue(id)
			}
		}
	}

	p.standAt(done.Position)
	if done.Changes > 0 {
		note := fmt.Sprintf("commit %.8s on %s", done.At, done.Where)
		events = append(events, Event{Cluster: w.cluster, Op: OpPublish, Note: note, Took: took})
	}
	for _, warning := range done.Warnings {
		events = append(events, Event{Cluster: w.cluster, Op: OpWarn, Note: warning})
	}
	return events
}

// retryOnConflict has everything done again on what is there now, unless somebody
// else was faster too often. The lock is held.
func (p *publisher) retryOnConflict(err error) bool {
	if _, ok := p.member(); !ok || !errors.Is(err, member.Conflict) {
		return false
	}
	p.restart()
	return p.conflicted()
}

// failed has it all done again, now or later. The lock is held.
func (p *publisher) failed(err error, generation int) {
	if p.retryOnConflict(err) {
		return
	}

	p.restart()
	p.look = true
	if errors.Is(err, member.Conflict) {
		p.conflicts = 0
		err = &member.Error{Reason: member.Conflict, Err: fmt.Errorf("%s: %w", p.left.Where, errConflicts)}
	}
	p.w.breaker.failures = p.failures
	p.w.trip(p.w.failed("publish", object.ID{}, err), generation)
	p.failures = p.w.breaker.failures
}

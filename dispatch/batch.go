// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/propagate"
)

// together is a Member that takes what it is told as one: nothing of it has
// reached the cluster before Flush says so, and then all of it has.
type together interface {
	Member
	// Begin forgets what was not flushed, and says where the cluster stands.
	// With ask it looks; else it may rely on what it knows, for Flush will see.
	Begin(ctx context.Context, ask bool) (Position, error)
	// Holds is the UID of an object as of Begin, "" when it is not there.
	Holds(ctx context.Context, ref Ref) (types.UID, error)
	// Flush is all or nothing. The error Conflict, here and elsewhere, says that
	// somebody else was faster, and that another Begin is due.
	Flush(ctx context.Context, of Source) (Flushed, error)
}

// Position is where a cluster stands as a whole.
type Position struct {
	Where string    // "branch fairlead/eu-1 of https://example.com/deploy"
	At    types.UID // its last commit; "" when there is none
}

// Flushed is what a Flush did.
type Flushed struct {
	Position
	Changes  int      // 0: everything was so already
	Warnings []string // what somebody should know
}

// batch is the part of a lane that is for a member of this kind.
type batch struct {
	// staged is done, and is acknowledged by the next flush.
	staged map[propagate.ID]staged
	// begun: the member stands at left, and what is known is true there.
	begun bool
	// ask has the member look before anything else.
	ask bool
	// busy: the member begins or flushes.
	busy  bool
	left  Position
	moved int // how often in a row somebody else was faster
	// failures of flushes in a row. Those of the lane end with every look.
	failures int
}

type staged struct {
	entry    *Entry // nil: it is gone
	op, note string
	took     time.Duration
}

// races is how often another one may be faster before we pause.
const races = 10

var errRaces = errors.New("somebody else keeps writing to it")

func (l *lane) together() (together, bool) {
	m, ok := l.member.(together)
	return m, ok
}

// stage notes what an act did, when it is not acknowledged before the flush.
func (l *lane) stage(id propagate.ID, op, note string, took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.batch.staged[id]
	if ok {
		s.op, s.note, s.took = op, note, took
		l.batch.staged[id] = s
	}
	return ok
}

func (l *lane) isStaged(id propagate.ID) bool {
	_, ok := l.batch.staged[id]
	return ok
}

// restart has everything staged done again, after another Begin.
func (l *lane) restart() {
	for id := range l.batch.staged {
		if j := l.jobs[id]; j != nil {
			heap.Push(&l.ready[j.stage], j)
		}
	}
	l.batch.staged, l.batch.begun = nil, false
}

// begin sees to it that the member knows where it stands before it is told
// anything, and reports whether that is waited for.
func (l *lane) begin() bool {
	m, ok := l.together()
	b := &l.batch
	switch {
	case !ok:
		return false
	case b.busy:
		return true
	case b.begun && !b.ask, !b.ask && !l.hasWork():
		return false
	case l.flying > 0:
		return true
	}
	l.restart()
	b.busy = true
	l.flying++
	go l.lookAround(m, b.ask, l.epoch)
	return true
}

// hasWork is whether anything waits for nothing but its turn.
func (l *lane) hasWork() bool {
	return len(l.batch.staged) > 0 || slices.ContainsFunc(l.ready[:], func(q jobs) bool { return q.Len() > 0 })
}

// lookAround begins a batch. What is not as it was left is brought back.
func (l *lane) lookAround(m together, ask bool, epoch int) {
	at, err := l.position(m, ask)
	var strays map[propagate.ID]types.UID
	if err == nil {
		strays, err = l.strays(m, at)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying--
	l.batch.busy = false
	defer l.pump()
	if l.member != m || l.d.closed() {
		return
	}
	if err != nil {
		l.unpublished(err, epoch)
		return
	}
	elsewhere := l.batch.left.Where != at.Where
	for id, uid := range strays {
		e := l.known[id]
		e.UID, e.Digest = uid, propagate.Digest{}
		l.know(id, &e)
		l.d.saver.put(l.cluster, id, &e)
	}
	l.standAt(at) // after them: who reads this relies on those
	for id, uid := range strays {
		switch {
		case elsewhere:
			l.enqueue(id) // it never was there
		case uid == "":
			l.drifted(id, "was deleted", "")
		default:
			l.drifted(id, "was changed", "")
		}
	}
	l.well(epoch)
}

// standAt notes where the member stands, with everything known true there.
func (l *lane) standAt(at Position) {
	b := &l.batch
	b.begun, b.ask = true, false
	if b.left == at {
		return
	}
	b.left = at
	l.d.saver.put(l.cluster, PositionID, &Entry{APIVersion: at.Where, UID: at.At})
}

// PositionID is where the inventory keeps a Position.
var PositionID = propagate.ID{Group: "fairlead.dev", Kind: "Position"}

// takePosition takes out of the inventory where the member was left.
func (l *lane) takePosition(known map[propagate.ID]Entry) {
	e := known[PositionID]
	delete(known, PositionID)
	l.batch.left = Position{Where: e.APIVersion, At: e.UID}
}

// forgetPosition is for a cluster that leaves: its branch is nobody's.
func (l *lane) forgetPosition() {
	if l.batch.left != (Position{}) {
		l.batch.left = Position{}
		l.d.saver.put(l.cluster, PositionID, nil)
	}
}

// position begins a batch. A branch that is gone is not made again from what
// has changed: a tool that applies it would delete everything else.
func (l *lane) position(m together, ask bool) (Position, error) {
	at, err := m.Begin(l.d.ctx, ask)
	if err != nil {
		return at, err
	}
	l.mu.Lock()
	left := l.batch.left
	l.mu.Unlock()
	if at.At == "" && left.At != "" && left.Where == at.Where {
		return at, &Error{Reason: Forbidden, Err: fmt.Errorf(
			"%s is gone: it was at %s. Push that commit there again; or push any other one there, and everything is published anew, but for what is held", at.Where, left.At)}
	}
	return at, nil
}

// strays are the objects that are not as they were left, and what is there
// instead. When the member stands where it was left there are none, and
// nothing is looked at.
func (l *lane) strays(m together, at Position) (map[propagate.ID]types.UID, error) {
	l.mu.Lock()
	if l.batch.left == at {
		l.mu.Unlock()
		return nil, nil
	}
	known := maps.Clone(l.known)
	l.mu.Unlock()
	strays := map[propagate.ID]types.UID{}
	for id, e := range known {
		if e.UID == "" || id == IdentityID {
			continue // an intent: its job finds out
		}
		uid, err := m.Holds(l.d.ctx, refTo(id, e.APIVersion))
		if err != nil {
			return nil, err
		}
		if uid != e.UID {
			strays[id] = uid
		}
	}
	return strays, nil
}

// flush sends what is staged, once nothing is left to be staged.
func (l *lane) flush() {
	m, ok := l.together()
	if !ok || l.flying > 0 || len(l.batch.staged) == 0 {
		return
	}
	l.batch.busy = true
	l.flying++
	go l.publish(m, l.fleet.Source(), l.epoch)
}

func (l *lane) publish(m together, of Source, epoch int) {
	began := time.Now()
	done, err := m.Flush(l.d.ctx, of)
	var events []Event
	l.mu.Lock()
	l.flying--
	l.batch.busy = false
	switch {
	case l.member != m:
	case err != nil && !l.d.closed():
		l.unpublished(err, epoch)
	case err == nil:
		events = l.published(done, epoch, time.Since(began))
	}
	l.pump()
	l.mu.Unlock()
	for _, e := range events {
		l.d.log(e)
	}
}

// published acknowledges what was staged.
func (l *lane) published(done Flushed, epoch int, took time.Duration) []Event {
	b := &l.batch
	all := b.staged
	b.staged, b.moved, b.failures = nil, 0, 0
	l.well(epoch)
	var events []Event
	for _, id := range slices.SortedFunc(maps.Keys(all), func(x, y propagate.ID) int { return cmp.Compare(x.Key(), y.Key()) }) {
		s := all[id]
		l.know(id, s.entry)
		delete(l.drifts, id)
		l.d.saver.put(l.cluster, id, s.entry)
		delete(l.notes, id)
		if s.note != "" && s.op != opRestore {
			l.notes[id] = s.note
		}
		events = append(events, Event{Cluster: l.cluster, ID: id, Op: s.op, Note: s.note, Took: s.took})
		if j := l.jobs[id]; j != nil {
			again := j.again
			j.again = false
			l.drop(id)
			if again {
				l.enqueue(id)
			}
		}
	}
	l.standAt(done.Position)
	if done.Changes > 0 {
		note := fmt.Sprintf("commit %.8s on %s", done.At, done.Where)
		events = append(events, Event{Cluster: l.cluster, Op: "publish", Note: note, Took: took})
	}
	for _, warning := range done.Warnings {
		events = append(events, Event{Cluster: l.cluster, Op: "warn", Note: warning})
	}
	return events
}

// outrun has everything done again on what is there now, unless somebody else
// was faster too often.
func (l *lane) outrun(err error) bool {
	_, ok := l.together()
	if !ok || !errors.Is(err, Conflict) {
		return false
	}
	l.restart()
	l.batch.ask = true
	l.batch.moved++
	return l.batch.moved < races
}

// unpublished has it all done again, now or later.
func (l *lane) unpublished(err error, epoch int) {
	if l.outrun(err) {
		return
	}
	l.restart()
	b := &l.batch
	b.ask = true
	if errors.Is(err, Conflict) {
		b.moved = 0
		err = &Error{Reason: Conflict, Err: fmt.Errorf("%s: %w", b.left.Where, errRaces)}
	}
	l.failures = b.failures
	l.down(l.failed("publish", propagate.ID{}, err), epoch)
	b.failures = l.failures
}

// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

func TestBatchStates(t *testing.T) {
	one := map[object.ID]staged{idOf(web): {}}
	for _, test := range []struct {
		name    string
		b       batch
		hasWork bool
		want    batchState
	}{
		{"there is nothing to do", batch{}, false, batchIdle},
		{"there is something to do", batch{}, true, batchBeginning},
		{"something was staged before the member was doubted", batch{staged: one}, false, batchBeginning},
		{"the member is to be looked at", batch{look: true}, false, batchBeginning},
		{"the member stands where it is known to", batch{begun: true}, true, batchStaging},
		{"even if there is nothing to do", batch{begun: true}, false, batchStaging},
		{"and takes more", batch{begun: true, staged: one}, true, batchStaging},
		{"unless it is to be looked at", batch{begun: true, look: true}, true, batchBeginning},
		{"it is about to answer", batch{busy: true}, true, batchBusy},
		{"whatever else is so", batch{busy: true, begun: true, look: true, staged: one}, true, batchBusy},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.b.state(test.hasWork); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Nine times in a row the next attempt is due at once, and then there is a pause
// until something has reached the member.
func TestBatchConflicts(t *testing.T) {
	b := batch{failures: 3, staged: map[object.ID]staged{idOf(web): {note: "a"}}}
	for i := 1; i < maxConflicts; i++ {
		b.look = false
		if !b.conflicted() || !b.look {
			t.Fatalf("conflict %d: no other attempt is due, or it does not look first", i)
		}
	}
	for range 2 {
		if b.conflicted() {
			t.Errorf("conflict %d: another attempt is due at once", b.conflicts)
		}
	}

	all := b.flushed()
	if len(all) != 1 || all[idOf(web)].note != "a" || b.isStaged(idOf(web)) || b.conflicts != 0 || b.failures != 0 {
		t.Errorf("flushed %v, left %+v", all, b)
	}
	if !b.conflicted() {
		t.Error("after a flush no other attempt is due at once")
	}
}

// branch is a member that takes many changes as one.
type branch struct {
	scripted
	at    member.Position
	holds map[object.ID]types.UID
}

func (b *branch) Begin(context.Context, bool) (member.Position, error) {
	return b.at, b.ask("begin")
}

func (b *branch) Holds(_ context.Context, ref member.Ref) (types.UID, error) {
	return b.holds[ref.ID()], b.ask("holds " + ref.Name)
}

func (b *branch) Flush(context.Context, member.Source) (member.Flushed, error) {
	return member.Flushed{Position: b.at}, b.ask("flush")
}

// publishing is a worker of a branch, with a job that was done for each object and
// is staged.
func publishing(t *testing.T, m member.Member, inventory Inventory, objects ...string) *worker {
	t.Helper()
	w := idleWorker(t, m, inventory)
	fleet := desires{}
	w.fleet, w.publisher.begun = fleet, true
	w.breaker.reset(0)
	for _, o := range objects {
		fleet[idOf(o)] = Desire{Want: Want{Verb: Apply, APIVersion: "v1", Digest: object.DigestOf([]byte(o))}}
		put(&w.queue, Apply, o)
		j := take(t, &w.queue, o)
		w.queue.end(j)
		w.acknowledge(j.id, &Entry{APIVersion: "v1", UID: types.UID("of " + o), Digest: fleet[j.id].Digest})
	}
	return w
}

// What is acknowledged by a branch is known once it is flushed, and not before.
func TestPublisherStages(t *testing.T) {
	m := &branch{}
	w := publishing(t, m, &disk{}, web)
	if !w.publisher.isStaged(idOf(web)) || w.holdings.any() {
		t.Errorf("staged %v, holdings %v", w.publisher.staged, w.holdings.all())
	}
	if !w.publisher.stageAct(idOf(web), OpAdopt, "a note", time.Second) {
		t.Error("the act is not staged with its object")
	}
	if w.publisher.stageAct(idOf(settings), OpApply, "", 0) {
		t.Error("an act is staged without its object")
	}

	got, want := w.publisher.staged[idOf(web)], staged{op: OpAdopt, note: "a note", took: time.Second}
	if got.entry == nil || got.entry.UID != "of "+web {
		t.Errorf("the entry is %+v", got.entry)
	}
	if got.entry = nil; got != want {
		t.Errorf("staged is %+v, want %+v", got, want)
	}

	w.member = &scripted{}
	if w.publisher.stage(idOf(settings), nil) {
		t.Error("a member that acknowledges each object stages one")
	}
}

// After a flush everything that was staged is known, on record and told, in order.
func TestPublisherPublished(t *testing.T) {
	inventory := &disk{}
	w := publishing(t, &branch{}, inventory, settings, web)
	w.publisher.stage(idOf(shop), nil)
	w.holdings.set(idOf(shop), &Entry{APIVersion: "v1", UID: "9"})
	w.publisher.stageAct(idOf(web), OpAdopt, "a note", time.Second)
	w.publisher.stageAct(idOf(settings), OpRestore, "it was changed", 0)
	w.publisher.stageAct(idOf(shop), OpDelete, "", 0)
	w.drift.note(idOf(settings), "was changed")
	w.notes[idOf(settings)] = "old"
	w.queue.jobs[idOf(web)].again = true
	w.fleet.(desires)[idOf(web)] = Desire{Want: Want{Verb: Apply, APIVersion: "v1", Digest: object.DigestOf([]byte("another"))}}

	done := member.Flushed{Position: member.Position{Where: "branch a", At: "0123456789"}, Changes: 3, Warnings: []string{"mind this"}}
	var told []string
	for _, e := range w.publisher.published(done, w.breaker.generation, time.Minute) {
		told = append(told, strings.TrimSpace(strings.Join([]string{string(e.Op), e.ID.Name, e.Note}, " ")))
	}
	if want := []string{
		"delete shop",
		"restore settings it was changed",
		"adopt web a note",
		"publish  commit 01234567 on branch a",
		"warn  mind this",
	}; !slices.Equal(told, want) {
		t.Errorf("told %q\nwant %q", told, want)
	}

	if len(w.holdings.all()) != 2 || w.holdings.uid(idOf(web)) != "of "+web || w.drift.has(idOf(settings)) {
		t.Errorf("holdings %v, drift %v", w.holdings.all(), w.drift.how)
	}
	if want := map[object.ID]string{idOf(web): "a note"}; !maps.Equal(w.notes, want) {
		t.Errorf("notes %v, want %v", w.notes, want)
	}
	if w.publisher.staged != nil || !w.publisher.begun || w.publisher.left != done.Position {
		t.Errorf("staged %v, begun %v, at %v", w.publisher.staged, w.publisher.begun, w.publisher.left)
	}
	if got := drain(&w.queue); !slices.Equal(got, []string{web}) {
		t.Errorf("to do are %q, want what is wanted otherwise by now", got)
	}

	w.d.Wait(context.Background())
	if inventory.uid(settings) != "of "+settings || inventory.saved[PositionID].UID != "0123456789" {
		t.Errorf("on record are %v", inventory.saved)
	}
}

// A flush that found everything so already is not told of.
func TestPublisherPublishedNothing(t *testing.T) {
	w := publishing(t, &branch{}, &disk{})
	if events := w.publisher.published(member.Flushed{}, w.breaker.generation, 0); len(events) != 0 {
		t.Errorf("told %v", events)
	}
}

// What a failure leaves to be done, and when.
func TestPublisherFailed(t *testing.T) {
	conflict := failure(member.Conflict)
	type seen struct {
		State    breakerState
		Wait     time.Duration
		Look     bool
		Begun    bool
		Failures int
	}
	for _, test := range []struct {
		name string
		errs []error
		want seen
	}{
		{"somebody was faster, and it is all done again at once", []error{conflict}, seen{State: closed, Look: true}},
		{"nine times", slices.Repeat([]error{conflict}, maxConflicts-1), seen{State: closed, Look: true}},
		{"and then after a pause", slices.Repeat([]error{conflict}, maxConflicts), seen{State: open, Wait: time.Second, Look: true, Failures: 1}},
		{"which begins the count anew", slices.Repeat([]error{conflict}, 2*maxConflicts-1), seen{State: open, Wait: time.Second, Look: true, Failures: 1}},
		{"and is longer the second time", slices.Repeat([]error{conflict}, 2*maxConflicts), seen{State: open, Wait: 2 * time.Second, Look: true, Failures: 2}},
		{"it cannot be reached", []error{failure(member.Unreachable)}, seen{State: open, Wait: time.Second, Look: true, Failures: 1}},
		{"we may not push", []error{failure(member.Forbidden)}, seen{State: open, Wait: 30 * time.Second, Look: true, Failures: 1}},
		{"whatever is not said otherwise", []error{errors.New("no space left")}, seen{State: open, Wait: time.Second, Look: true, Failures: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := publishing(t, &branch{}, &disk{}, web)
			before := time.Now()
			for _, err := range test.errs {
				// Every begin that is answered ends the failures of the breaker, and
				// those of flushes go on.
				w.breaker.reset(w.breaker.generation)
				w.publisher.failed(err, w.breaker.generation)
			}

			b := &w.publisher.batch
			wait := w.breaker.wait(before)
			got := seen{State: w.breaker.state(before), Wait: max(0, wait.Truncate(time.Second)), Look: b.look, Begun: b.begun, Failures: b.failures}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if b.isStaged(idOf(web)) || w.holdings.any() {
				t.Errorf("staged %v, holdings %v", b.staged, w.holdings.all())
			}
			if got := drain(&w.queue); !slices.Equal(got, []string{web}) {
				t.Errorf("to do are %q, want all that was staged", got)
			}
		})
	}
}

// A conflict is the batch's alone where there is one.
func TestPublisherRetryOnConflict(t *testing.T) {
	for _, test := range []struct {
		name string
		m    member.Member
		err  error
		want bool
	}{
		{"somebody else was faster", &branch{}, failure(member.Conflict), true},
		{"another failure", &branch{}, failure(member.Unavailable), false},
		{"a member that acknowledges each object", &scripted{}, failure(member.Conflict), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := publishing(t, &branch{}, &disk{}, web)
			w.member = test.m
			if got := w.publisher.retryOnConflict(test.err); got != test.want || w.publisher.begun == test.want || w.publisher.look != test.want {
				t.Errorf("got %v, begun %v, look %v", got, w.publisher.begun, w.publisher.look)
			}
		})
	}
}

// A branch that is gone is not made again from what has changed.
func TestPublisherPosition(t *testing.T) {
	const where = "branch a"
	for _, test := range []struct {
		name     string
		left, at member.Position
		fail     error
		want     error
	}{
		{"it was never there", member.Position{}, member.Position{Where: where}, nil, nil},
		{"it is as empty as it was", member.Position{Where: where}, member.Position{Where: where}, nil, nil},
		{"it stands where it was left", member.Position{Where: where, At: "1"}, member.Position{Where: where, At: "1"}, nil, nil},
		{"it has moved", member.Position{Where: where, At: "1"}, member.Position{Where: where, At: "2"}, nil, nil},
		{"it is gone", member.Position{Where: where, At: "1"}, member.Position{Where: where}, nil, member.Forbidden},
		{"it is another one, and empty", member.Position{Where: "branch b", At: "1"}, member.Position{Where: where}, nil, nil},
		{"nobody answers", member.Position{}, member.Position{}, failure(member.Unreachable), member.Unreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &branch{at: test.at}
			m.fail = map[string]error{"begin": test.fail}
			w := publishing(t, m, &disk{})
			w.publisher.left = test.left
			if _, err := w.publisher.position(m, true); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

// What is not as it was left, where the branch is another one by now.
func TestPublisherStrays(t *testing.T) {
	at := member.Position{Where: "branch a", At: "2"}
	m := &branch{holds: map[object.ID]types.UID{idOf(settings): "1", idOf(web): "other"}}
	w := publishing(t, m, &disk{})
	for o, uid := range map[string]types.UID{settings: "1", web: "2", hooks: "3", shop: ""} {
		w.holdings.set(idOf(o), &Entry{APIVersion: "v1", UID: uid})
	}
	w.holdings.set(IdentityID, &Entry{APIVersion: "v1", UID: "4"})

	got, err := w.publisher.strays(m, at)
	want := map[object.ID]types.UID{idOf(web): "other", idOf(hooks): ""}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if asked := m.take(); len(asked) != 3 {
		t.Errorf("asked %q, want what is there according to the inventory", asked)
	}

	w.publisher.left = at
	if got, err := w.publisher.strays(m, at); got != nil || err != nil || m.take() != nil {
		t.Errorf("got %v, %v where it stands as it was left", got, err)
	}
}

// The position is on record among the entries, and is none of them.
func TestPublisherPositionOnRecord(t *testing.T) {
	inventory := &disk{}
	w := publishing(t, &branch{}, inventory)
	at := member.Position{Where: "branch a", At: "1"}
	w.publisher.begun, w.publisher.look = false, true
	w.publisher.standAt(at)
	w.d.Wait(context.Background())
	if e := inventory.saved[PositionID]; e == nil || e.APIVersion != at.Where || e.UID != at.At || !w.publisher.begun || w.publisher.look {
		t.Fatalf("on record is %+v, begun %v, look %v", e, w.publisher.begun, w.publisher.look)
	}

	inventory.saved[idOf(web)] = &Entry{APIVersion: "apps/v1", UID: "1"}
	again := publishing(t, &branch{}, inventory)
	if err := again.load(); err != nil {
		t.Fatal(err)
	}
	if known := again.holdings.all(); len(known) != 1 || known[idOf(web)].UID != "1" || again.publisher.left != at {
		t.Errorf("it stands at %v, on record are %v", again.publisher.left, known)
	}

	saves := inventory.saves
	w.publisher.standAt(at)
	w.d.Wait(context.Background())
	if inventory.saves != saves {
		t.Error("it was written again")
	}
	w.publisher.forgetPosition()
	w.d.Wait(context.Background())
	if e, ok := inventory.saved[PositionID]; !ok || e != nil || w.publisher.left != (member.Position{}) {
		t.Errorf("after it left, %+v is on record", e)
	}
}

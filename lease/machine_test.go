// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
)

// bench is one machine, and a server that has what a test puts there.
type bench struct {
	t       *testing.T
	m       *Machine
	now     time.Duration
	version int64
	records map[string]Record
	notices []Notice
	drained time.Duration // how long draining takes
	drains  map[string]time.Duration
	refuses bool // the server is away
}

func newBench(t *testing.T, shards int) *bench {
	b := &bench{t: t, now: time.Hour, records: map[string]Record{}, drains: map[string]time.Duration{}}
	b.m = New(Config{
		Fleet: "acme", Pod: "fairlead-0", Process: "a", Engine: "1.10", Shards: shards,
		Rules: DefaultRules(), Random: func() float64 { return 0.5 },
	})
	b.m.Resync(b.now)
	return b
}

// put has somebody else write a Lease.
func (b *bench) put(rec Record) {
	b.version++
	rec.Version = b.version
	b.records[rec.Name] = rec
	b.m.Seen(b.now, rec)
}

// peer renews the Lease of another replica.
func (b *bench) peer(pod, process, engine string) {
	b.put(Record{Name: ReplicaName("acme", pod), Kind: Replica, Holder: pod + "_" + process, Engine: engine, Duration: 20 * time.Second})
}

// pass lets time pass, second by second, and answers every request at once.
func (b *bench) pass(d time.Duration, each ...func()) {
	for end := b.now + d; b.now < end; b.now += time.Second {
		for _, do := range each {
			do()
		}
		for lease, at := range b.drains {
			if b.now >= at {
				b.m.Drained(b.now, lease)
				delete(b.drains, lease)
			}
		}
		b.step()
	}
}

func (b *bench) step() {
	for {
		out := b.m.Step(b.now)
		requests := append([]Request(nil), out.Requests...)
		b.notices = append(b.notices, out.Notices...)
		for _, n := range out.Notices {
			if n.Kind == Draining {
				b.drains[n.Lease] = b.now + b.drained
			}
		}
		if len(requests) == 0 {
			return
		}
		for _, req := range requests {
			b.answer(req)
		}
	}
}

func (b *bench) answer(req Request) {
	have, ok := b.records[req.Record.Name]
	a := Answer{Request: req}
	switch {
	case b.refuses:
		a.Outcome = Failed
	case req.Verb == List:
		var all []Record
		for rec := range maps.Values(b.records) {
			all = append(all, rec)
		}
		b.m.Listed(b.now, req.ID, b.version, all)
		return
	case req.Verb == Get && ok:
		a.Record = have
	case req.Verb == Create && !ok, req.Verb == Update && have.Version == req.Record.Version:
		b.version++
		a.Record = req.Record
		a.Record.Version = b.version
		b.records[a.Record.Name] = a.Record
	case req.Verb == Delete:
		delete(b.records, req.Record.Name)
	case ok:
		a.Outcome = Conflict
	default:
		a.Outcome = NotFound
	}
	b.m.Answered(b.now, a)
}

func (b *bench) fold(commits ...string) { b.m.Folded(b.now, b.now, trunk(commits)) }

func (b *bench) holder(shard int) string {
	return b.records[ShardName("acme", shard, len(b.m.units)-1)].Holder
}

func (b *bench) count(kind NoticeKind) (n int) {
	for _, notice := range b.notices {
		if notice.Kind == kind && notice.Shard >= 0 {
			n++
		}
	}
	return n
}

type trunk []string

func (t trunk) Position(commit string) (int, bool) {
	for i, c := range t {
		if c == commit {
			return i, true
		}
	}
	return 0, false
}

func (t trunk) Head() string { return t[len(t)-1] }

func (trunk) Replaces(string) bool { return true }

func TestTakesNothingBeforeItHasFolded(t *testing.T) {
	b := newBench(t, 2)
	b.pass(200 * time.Second)
	if len(b.records) > 0 {
		t.Fatalf("Leases before the first fold: %v", b.records)
	}

	b.fold("c1")
	b.pass(time.Second)
	if b.holder(0) != "fairlead-0_a" || b.holder(1) != "fairlead-0_a" || b.count(Opened) != 2 {
		t.Errorf("after it: %v, notices %v", b.records, b.notices)
	}
}

// held is a Lease of a replica that is gone.
func gone(engine, sent string) Record {
	return Record{Name: ShardName("acme", 0, 1), Kind: Shard, Holder: "fairlead-9_z", Engine: engine, Sent: sent, Duration: 40 * time.Second}
}

func TestLaggardTakesNothing(t *testing.T) {
	b := newBench(t, 1)
	b.put(gone("1.10", "c5"))
	b.fold("c1")
	b.pass(time.Second)
	began := b.now - 500*time.Millisecond // before c5 was seen
	b.now += time.Second
	b.m.Folded(b.now, began-time.Second, trunk{"c1", "c2"})
	b.pass(100 * time.Second)
	if b.holder(0) != "fairlead-9_z" || b.count(Behind) != 1 {
		t.Fatalf("a replica that has not folded c5: %v, notices %v", b.records, b.notices)
	}

	b.fold("c1", "c2", "c5", "c6")
	b.pass(time.Second)
	if b.holder(0) != "fairlead-0_a" {
		t.Fatalf("a replica that has: %v", b.records)
	}
	g := b.m.Gate(0)
	for commit, refused := range map[string]bool{"c2": true, "c5": false, "c6": true} {
		if err := g.Permit(commit); (err != nil) != refused {
			t.Errorf("%s after c5 was sent: %v", commit, err)
		}
	}
	if b.m.Advance(b.now, 0, "c2") || !b.m.Advance(b.now, 0, "c6") {
		t.Error("the Lease advances to c6, not to c2")
	}
	b.step()
	if g.Permit("c6") != nil || g.Permit("c5") == nil || b.records[ShardName("acme", 0, 1)].Sent != "c6" {
		t.Errorf("after that: %v", b.records)
	}
}

// A fetch that began after a commit was seen, and does not bring it, shows that the
// branch was rewritten.
func TestRewrittenBranch(t *testing.T) {
	b := newBench(t, 1)
	b.put(gone("1.10", "c5"))
	b.pass(time.Second)
	b.fold("c1", "c7")
	b.pass(100 * time.Second)
	if rec := b.records[ShardName("acme", 0, 1)]; rec.Holder != "fairlead-0_a" || rec.Sent != "c7" {
		t.Errorf("%+v", rec)
	}
	if b.m.Gate(0).Permit("c1") == nil || b.m.Advance(b.now, 0, "c1") {
		t.Error("c1 is older than c5 was")
	}
}

func TestLowerEngineWaits(t *testing.T) {
	b := newBench(t, 1)
	b.put(gone("1.11", ""))
	b.fold("c1")
	b.pass(100*time.Second, func() { b.peer("fairlead-1", "b", "1.11") })
	if b.holder(0) != "fairlead-9_z" {
		t.Fatalf("engine 1.10 takes from 1.11 while one lives: %v", b.records)
	}

	b.pass(25*time.Second, func() { b.peer("fairlead-2", "b", "1.9") })
	if b.holder(0) != "fairlead-0_a" {
		t.Errorf("nobody has 1.11 any more: %v", b.records)
	}
}

func TestMovesAreFew(t *testing.T) {
	b := newBench(t, 32)
	b.fold("c1")
	b.pass(20 * time.Second)
	peer := func() { b.peer("fairlead-1", "b", "1.10") }
	for _, want := range []struct {
		after  time.Duration
		drains int
	}{{15, 0}, {2, 4}, {8, 4}, {2, 8}, {8, 8}, {2, 12}, {60, 16}} {
		b.pass(want.after*time.Second, peer)
		if got := b.count(Draining); got != want.drains {
			t.Fatalf("after %d more seconds %d shards are given up, not %d", want.after, got, want.drains)
		}
	}
}

// A replica that keeps crashing, or has died while its Lease looks alive, is given
// nothing.
func TestFlappingReplicaMovesNothing(t *testing.T) {
	for _, every := range []int{2, 12, 18, 19, 25, 40} {
		b := newBench(t, 8)
		b.fold("c1")
		b.pass(20 * time.Second)
		second := 0
		b.pass(300*time.Second, func() {
			if second%every == 0 {
				b.peer("fairlead-1", fmt.Sprint(second), "1.10") // and crashes
			}
			second++
		})
		if n := b.count(Draining); n != 0 {
			t.Errorf("a crash every %d seconds moves %d shards", every, n)
		}
	}
}

func TestHubAway(t *testing.T) {
	b := newBench(t, 1)
	b.fold("c1")
	b.pass(20 * time.Second)
	b.refuses = true
	b.pass(24 * time.Second)
	b.pass(2 * time.Second)

	var closed *ClosedError
	if err := b.m.Gate(0).Open(b.now); !errors.As(err, &closed) || closed.Reason != Lapsed {
		t.Errorf("26 seconds without a renewal: %v", err)
	}
	b.pass(10 * time.Minute)
	if b.count(Lost) > 0 {
		t.Error("the shard is lost, and nobody has it")
	}
	b.refuses = false
	b.pass(5 * time.Second)
	if err := b.m.Gate(0).Open(b.now); err != nil || b.m.Gate(0).Epoch() != 1 {
		t.Errorf("after the first renewal: %v, epoch %d", err, b.m.Gate(0).Epoch())
	}
}

func TestStopGivesEverythingBack(t *testing.T) {
	b := newBench(t, 8)
	b.fold("c1")
	b.pass(20 * time.Second)
	b.drained = time.Hour // it hangs
	b.m.Stop(b.now)
	b.pass(9 * time.Second)
	if _, ok := b.records[ReplicaName("acme", "fairlead-0")]; ok {
		t.Error("the Lease of the replica is there still")
	}
	if err := b.m.Gate(3).Open(b.now); err == nil {
		t.Error("a gate is open while it drains")
	}
	if b.holder(3) == "" {
		t.Error("given back with requests in flight")
	}
	b.pass(3 * time.Second)
	for i := range 8 {
		if b.holder(i) != "" {
			t.Errorf("shard %d is not given back", i)
		}
	}
	if !b.m.Step(b.now).Done {
		t.Error("not done")
	}
}

// Who deletes a Lease that is held has its clusters wait, and nobody writes twice.
func TestDeletedLease(t *testing.T) {
	b := newBench(t, 1)
	b.put(gone("1.10", "c1"))
	b.fold("c1", "c2")
	b.pass(10 * time.Second)
	rec := b.records[ShardName("acme", 0, 1)]
	delete(b.records, rec.Name)
	b.version++
	rec.Version = b.version
	b.m.Deleted(b.now, rec)
	b.pass(39 * time.Second)
	if b.holder(0) != "" {
		t.Fatal("taken at once")
	}
	b.pass(3 * time.Second)
	if rec := b.records[rec.Name]; rec.Holder != "fairlead-0_a" || rec.Sent != "c1" {
		t.Errorf("%+v", rec)
	}
}

func TestCompareEngines(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"1.9", "1.10", -1}, {"1.10", "1.10", 0}, {"2", "1.9+3", 1}, {"1.2", "1.2+1", -1}, {"", "1", -1}, {"v007", "v7", 0}, {"a", "b", -1}} {
		if got := compareEngines(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: %d, not %d", test.a, test.b, got, test.want)
		}
	}
}

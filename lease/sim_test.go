// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The simulation runs machines against a model of the API server, in true time that
// none of them sees. Each has a clock of its own rate. What is checked is checked in
// true time, after each step.

// world is one schedule while it runs.
type world struct {
	plan   plan
	random *rand.Rand
	now    time.Duration
	queue  queue

	records []stored
	version int64
	slots   []slot
	ghosts  []time.Duration // by Lease: when the last request of a process that is gone may end
	written []int           // by Lease: the newest commit of which something was written
	unowned []time.Duration // by Lease: since when, or -1
	served  []time.Duration // by Lease: when a gate was open last

	parents []int // of each commit; 0 is the first
	head    int
	resized time.Duration

	trace     []string
	tracing   bool
	broken    string // the first breach
	steps     int
	takeovers int
}

type stored struct {
	Record
	changed time.Duration
}

// slot is a pod, and the process that is in it.
type slot struct {
	pod      string
	machine  *Machine
	life     int // which process of the pod
	up       bool
	stopping bool
	rate     float64
	started  time.Duration
	offset   time.Duration
	shards   int
	engine   int
	head     int // what is folded; -1: nothing
	working  int // what the loop is writing
	fetching bool
	wake     time.Duration

	good   time.Duration // from when on nothing is wrong with it
	frozen time.Duration // until when each is so
	cut    time.Duration
	lossy  time.Duration
	slow   time.Duration // its fetches
	barred time.Duration // from the Leases of shards

	ends []time.Duration // by Lease: when its last request may end
}

const (
	evWake = iota
	evArrive
	evAnswer
	evFail
	evSee
	evResync
	evWrite
	evDrained
	evFetch
	evFetched
	evPush
	evStart
	evFault
	evKill
	evResize
	evAudit
)

const (
	horizon = 240 * time.Second
	calm    = 170 * time.Second // no fault begins later
)

var engines = []string{"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"}

var sizes = [2]int{2, 1} // the number of shards before and after a resize

// leaderID numbers the leader's Lease, after the shards of both numbers of shards.
var leaderID = sizes[0] + sizes[1]

// unitID numbers the Leases that can be held; -1 is the leader's.
func unitID(shard, of int) int {
	switch {
	case shard < 0:
		return leaderID
	case of == sizes[0]:
		return shard
	}
	return sizes[0] + shard
}

var unitNames = func() (names []string) {
	for _, of := range sizes {
		for shard := range of {
			names = append(names, ShardName("acme", shard, of))
		}
	}
	return append(names, LeaderName("acme"))
}()

// overlap reports whether a cluster may be in both of two shards.
func overlap(a, b int) bool {
	return a == b || a != leaderID && b != leaderID && (a < sizes[0]) != (b < sizes[0])
}

// plan is what a seed leads to.
type plan struct {
	seed     uint64
	replicas int
	rates    []float64
	faults   []fault
	rules    Rules
}

type fault struct {
	at, lasts time.Duration
	kind      string
	slot      int
}

func (f fault) String() string {
	return fmt.Sprintf("%6.1fs %s %d for %.1fs", f.at.Seconds(), f.kind, f.slot, f.lasts.Seconds())
}

var faultKinds = []string{
	"crash", "crash", "stop", "stop", "cut", "cut", "lossy", "lossy", "slow git", "barred", "restart", "upgrade", "resize",
}

func newPlan(seed uint64, rules Rules) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{seed: seed, replicas: 2 + r.IntN(2), rules: rules}
	for range p.replicas {
		rate := 0.9 + 0.2*r.Float64()
		if r.IntN(3) == 0 {
			rate = []float64{0.9, 1.1}[r.IntN(2)]
		}
		p.rates = append(p.rates, rate)
	}
	for range 1 + r.IntN(6) {
		p.faults = append(p.faults, fault{
			at:    2*time.Second + time.Duration(r.Float64()*float64(calm)),
			lasts: time.Second + time.Duration(r.Float64()*r.Float64()*float64(90*time.Second)),
			kind:  faultKinds[r.IntN(len(faultKinds))],
			slot:  r.IntN(p.replicas),
		})
	}
	return p
}

// run runs a schedule, and returns the world as it ended.
func (p plan) run(tracing bool) *world {
	w := &world{
		plan: p, random: rand.New(rand.NewPCG(p.seed, 2)), tracing: tracing,
		parents: make([]int, 1, 64), slots: make([]slot, p.replicas), resized: -time.Hour,
	}
	ids := leaderID + 1
	w.ghosts, w.unowned, w.served = make([]time.Duration, ids), make([]time.Duration, ids), make([]time.Duration, ids)
	w.written = make([]int, ids)
	w.parents[0] = -1
	for i := range w.unowned {
		w.unowned[i] = -1
	}
	for i := range w.slots {
		w.slots[i] = slot{pod: "fairlead-" + strconv.Itoa(i), rate: p.rates[i], shards: sizes[0], ends: make([]time.Duration, ids)}
		w.at(w.upTo(5*time.Second), event{kind: evStart, slot: i})
	}
	for i, f := range p.faults {
		w.at(f.at, event{kind: evFault, slot: f.slot, n: i})
	}
	w.at(w.upTo(10*time.Second), event{kind: evPush})
	w.at(time.Second, event{kind: evAudit})

	for w.broken == "" && len(w.queue.heap) > 0 {
		e := w.queue.pop()
		if e.at > horizon {
			break
		}
		w.now = e.at
		w.handle(e)
	}
	return w
}

func (w *world) breach(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf("%.3fs: ", w.now.Seconds()) + fmt.Sprintf(format, args...)
		w.log("BREACH %s", w.broken)
	}
}

func (w *world) log(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%9.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) at(at time.Duration, e event) {
	e.at = at
	w.queue.push(e)
}

func (w *world) upTo(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most)))
}

// local is what a slot's clock says now.
func (w *world) local(s *slot) time.Duration {
	return s.offset + time.Duration(float64(w.now-s.started)*s.rate)
}

// moment is when a slot's clock says so.
func (s *slot) moment(local time.Duration) time.Duration {
	return s.started + time.Duration(float64(local-s.offset)/s.rate) + 2
}

func (w *world) handle(e event) {
	switch e.kind {
	case evArrive:
		w.arrive(e)
		return
	case evFault:
		w.fault(w.plan.faults[e.n])
		return
	case evPush:
		w.push()
		return
	case evAudit:
		w.audit()
		return
	case evStart:
		w.start(&w.slots[e.slot], e.slot)
		return
	}

	s := &w.slots[e.slot]
	if !s.up || s.life != e.life {
		return
	}
	if e.kind == evKill {
		w.kill(s)
		return
	}
	if w.now < s.frozen {
		w.at(s.frozen, e)
		return
	}
	w.deliver(s, e)
}

// deliver has a process see an event.
func (w *world) deliver(s *slot, e event) {
	now := w.local(s)
	switch e.kind {
	case evWake:
		if w.now < s.wake {
			return
		}
	case evAnswer:
		if w.now < s.cut {
			w.at(max(e.deadline, w.now), event{kind: evFail, slot: e.slot, life: e.life, request: e.request})
			return
		}
		if e.request.Verb == List {
			s.machine.Listed(now, e.request.ID, e.version, e.records)
		} else {
			s.machine.Answered(now, Answer{Request: *e.request, Outcome: e.outcome, Record: e.record()})
		}
	case evFail:
		s.machine.Answered(now, Answer{Request: *e.request, Outcome: Failed})
	case evSee:
		if w.now < s.cut {
			return
		}
		if e.outcome == NotFound {
			s.machine.Deleted(now, e.record())
		} else {
			s.machine.Seen(now, e.record())
		}
	case evResync:
		s.machine.Resync(now)
	case evWrite:
		w.write(s)
		w.at(w.now+500*time.Millisecond+w.upTo(4*time.Second), e)
	case evDrained:
		s.machine.Drained(now, e.name)
		w.drained(s, e.n)
	case evFetch:
		w.fetch(s)
		return
	case evFetched:
		w.fetched(s, e)
	case evResize:
		if s.shards != e.n {
			w.log("%s: %d shards", s.pod, e.n)
			s.shards = e.n
			s.machine.Resize(now, e.n)
			w.abandon(s)
		}
	}
	w.step(s)
}

// step steps a machine, does what it says, and looks at its gates.
func (w *world) step(s *slot) {
	w.steps++
	now := w.local(s)
	out := s.machine.Step(now)
	i := w.index(s)
	for j := range out.Requests {
		w.send(s, i, out.Requests[j])
	}
	for _, n := range out.Notices {
		w.note(s, i, n)
	}
	if out.Wake < never {
		s.wake = s.moment(out.Wake)
		w.at(s.wake, event{kind: evWake, slot: i, life: s.life})
	}
	w.look(s)
	if out.Done {
		w.log("%s: ended", s.pod)
		w.leave(s)
	}
}

func (w *world) index(s *slot) int {
	for i := range w.slots {
		if &w.slots[i] == s {
			return i
		}
	}
	panic("no such slot")
}

func (w *world) note(s *slot, i int, n Notice) {
	w.log("%s: %s %s %s", s.pod, n.Kind, n.Lease, n.Commit)
	switch n.Kind {
	case Behind:
		w.at(w.now, event{kind: evFetch, slot: i, life: s.life})
	case Lost:
		if n.Shard < 0 || n.Shards > 0 {
			w.stopWriting(s, unitID(n.Shard, n.Shards))
		}
	case Draining:
		id := unitID(n.Shard, n.Shards)
		w.stopWriting(s, id)
		if w.random.IntN(4) > 0 { // otherwise what is in flight takes all its time
			if at := w.now + w.upTo(8*time.Second); at < s.ends[id] {
				w.at(at, event{kind: evDrained, slot: i, life: s.life, name: n.Lease, n: id})
			}
		}
	}
}

// stopWriting notes that a gate was shut: what is on the wire has its deadline.
func (w *world) stopWriting(s *slot, id int) {
	s.ends[id] = min(s.ends[id], w.now+time.Duration(float64(realRules.WriteDeadline)/s.rate))
}

func (w *world) drained(s *slot, id int) {
	s.ends[id] = min(s.ends[id], w.now)
}

// abandon notes that all gates of the former number of shards are shut, which the
// machine does in its next step, at this same moment.
func (w *world) abandon(s *slot) {
	for id := range leaderID {
		w.stopWriting(s, id)
	}
}

// realRules have the deadline that members' requests really have.
var realRules = DefaultRules()

// look checks that no gate is open while another process may still be writing: its
// gate is open, or may be until it lapses, or it has requests on the wire.
func (w *world) look(s *slot) {
	now := w.local(s)
	for shard := -1; shard < s.shards; shard++ {
		g := s.machine.Gate(shard)
		if g.Open(now) != nil {
			continue
		}
		id := unitID(shard, s.shards)
		s.ends[id] = s.moment(g.state.Load().closes) + time.Duration(float64(realRules.WriteDeadline)/s.rate)

		for other := range w.ghosts {
			if !overlap(id, other) {
				continue
			}
			if w.ghosts[other] > w.now {
				w.breach("two writers: %s opens the gate of %s, and a process that is gone may be writing for %s until %.3fs", s.pod, unitNames[id], unitNames[other], w.ghosts[other].Seconds())
			}
			for j := range w.slots {
				if o := &w.slots[j]; o != s && o.ends[other] > w.now {
					w.breach("two writers: %s opens the gate of %s, and %s may be writing for %s until %.3fs", s.pod, unitNames[id], o.pod, unitNames[other], o.ends[other].Seconds())
				}
			}
		}
	}
}

// write is the loop at work: it writes a commit to a shard, if it may.
func (w *world) write(s *slot) {
	if s.head < 0 {
		return
	}
	if w.random.IntN(3) > 0 {
		s.working = s.head
	}

	now := w.local(s)
	for shard := range s.shards {
		g := s.machine.Gate(shard)
		if g.Open(now) != nil {
			continue
		}
		if g.Permit(commitName(s.working)) != nil {
			s.machine.Advance(now, shard, commitName(s.working))
			continue
		}
		id := unitID(shard, s.shards)
		for other := range w.written {
			if overlap(id, other) && w.written[other] > s.working {
				w.breach("older commit: %s writes %d for %s, and %d was written", s.pod, s.working, unitNames[id], w.written[other])
			}
		}
		w.written[id] = max(w.written[id], s.working)
	}
}

// audit checks that every shard has a holder.
func (w *world) audit() {
	w.at(w.now+time.Second, event{kind: evAudit})
	size := -1
	for i := range w.slots {
		if s := &w.slots[i]; s.up {
			if size >= 0 && s.shards != size {
				return
			}
			size = s.shards
		}
	}
	if size < 0 {
		return
	}
	for shard := -1; shard < size; shard++ {
		id := unitID(shard, size)
		w.checkServed(id, shard)
		rec := w.find(unitNames[id])
		if rec != nil && w.serves(rec.Holder) {
			w.unowned[id] = -1
			continue
		}
		since := w.now
		if rec != nil {
			since = rec.changed
		}
		if w.unowned[id] < 0 {
			w.unowned[id] = w.now
		}
		since = max(min(since, w.now), w.unowned[id])
		if s := w.ableSince(since, 62*time.Second); s != nil {
			w.breach("unowned: %s since %.3fs, and %s is well since %.3fs", unitNames[id], since.Seconds(), s.pod, s.good.Seconds())
		}
	}
}

// checkServed checks that some gate of a shard was open not long ago: after the 62
// seconds a holder may still have given the shard to one that died.
func (w *world) checkServed(id, shard int) {
	for i := range w.slots {
		if s := &w.slots[i]; s.up && s.machine.Gate(shard).Open(w.local(s)) == nil {
			w.served[id] = w.now
		}
	}
	barred := 0
	for i := range w.slots {
		if w.slots[i].barred > w.served[id] {
			barred++
		}
		if s := &w.slots[i]; barred > 1 || max(s.frozen, s.cut, s.lossy, s.started) > w.served[id] {
			return // it may hold the shard for a while, and be unable to use it
		}
	}
	if s := w.ableSince(w.served[id], 80*time.Second); s != nil {
		w.breach("unserved: %s since %.3fs, and %s is well since %.3fs", unitNames[id], w.served[id].Seconds(), s.pod, s.good.Seconds())
	}
}

// ableSince is a replica that could have taken a shard, for so long by its own clock
// since a moment; nil if there is none.
func (w *world) ableSince(since, most time.Duration) *slot {
	newest := 0
	for i := range w.slots {
		newest = max(newest, w.slots[i].engine)
	}
	if w.now-w.resized < 130*time.Second {
		return nil
	}
	for i := range w.slots {
		s := &w.slots[i]
		able := s.up && !s.stopping && s.head >= 0 && s.engine == newest
		if from := max(since, s.good); able && w.now-from > time.Duration(float64(most)/s.rate)+time.Second {
			return s
		}
	}
	return nil
}

// serves reports whether a holder lives and reaches its Lease.
func (w *world) serves(holder string) bool {
	for i := range w.slots {
		if s := &w.slots[i]; s.up && s.machine.Identity() == holder {
			return w.now >= max(s.frozen, s.cut, s.barred)
		}
	}
	return false
}

// start starts a process in a pod.
func (w *world) start(s *slot, i int) {
	s.life++
	s.up, s.stopping, s.started, s.offset = true, false, w.now, w.upTo(time.Hour)
	s.head, s.fetching, s.wake = -1, false, 0
	s.machine = New(Config{
		Fleet: "acme", Pod: s.pod, Process: strconv.Itoa(s.life), Engine: engines[s.engine],
		Shards: s.shards, Rules: w.plan.rules, Random: w.random.Float64,
	})
	w.log("%s: starts as %s, engine %s", s.pod, s.machine.Identity(), engines[s.engine])
	s.machine.Resync(w.local(s))
	if faulty := max(s.cut, s.lossy); faulty > w.now {
		w.at(faulty+w.upTo(time.Second), event{kind: evResync, slot: i, life: s.life}) // its watch breaks, too
	}
	w.at(w.now, event{kind: evFetch, slot: i, life: s.life})
	w.at(w.now+w.upTo(4*time.Second), event{kind: evWrite, slot: i, life: s.life})
	w.well(s, w.now+10*time.Second)
	w.step(s)
}

// well says that nothing is wrong with a slot after a moment and what follows of it.
func (w *world) well(s *slot, from time.Duration) { s.good = max(s.good, from+9*time.Second) }

// kill ends a process at once.
func (w *world) kill(s *slot) {
	w.log("%s: killed", s.pod)
	w.abandon(s)
	w.stopWriting(s, leaderID)
	w.leave(s)
}

// leave keeps in mind what a process that is gone may have on the wire.
func (w *world) leave(s *slot) {
	for id, end := range s.ends {
		w.ghosts[id] = max(w.ghosts[id], end)
		s.ends[id] = 0
	}
	s.up = false
	w.at(w.now+100*time.Millisecond+w.upTo(3*time.Second), event{kind: evStart, slot: w.index(s)})
}

func (w *world) fault(f fault) {
	s := &w.slots[f.slot]
	w.log("fault: %v", f)
	end := w.now + f.lasts
	if f.kind == "resize" {
		n := sizes[0] + sizes[1] - s.shards
		w.resized = w.now + 60*time.Second
		for i := range w.slots {
			o := &w.slots[i]
			delay := w.upTo(2 * time.Second)
			if w.random.IntN(4) == 0 {
				delay = w.upTo(60 * time.Second)
			}
			if !o.up {
				o.shards = n
			}
			w.at(w.now+delay, event{kind: evResize, slot: i, life: o.life, n: n})
			w.resized = max(w.resized, w.now+delay, o.frozen+time.Second)
		}
		return
	}
	if !s.up {
		return
	}

	switch f.kind {
	case "crash":
		w.kill(s)
		return
	case "restart", "upgrade":
		if f.kind == "upgrade" && s.engine < len(engines)-1 {
			s.engine++
		}
		s.stopping = true
		s.machine.Stop(w.local(s))
		w.at(w.now+25*time.Second, event{kind: evKill, slot: f.slot, life: s.life})
		if w.now >= s.frozen {
			w.step(s)
		}
		return
	case "stop":
		s.frozen = max(s.frozen, end)
	case "cut":
		s.cut = max(s.cut, end)
		w.at(end+w.upTo(time.Second), event{kind: evResync, slot: f.slot, life: s.life})
	case "lossy":
		s.lossy = max(s.lossy, end)
		w.at(end+w.upTo(time.Second), event{kind: evResync, slot: f.slot, life: s.life}) // the watch broke
	case "slow git":
		s.slow = max(s.slow, end)
	case "barred":
		s.barred = max(s.barred, end)
	}
	w.well(s, end)
}

// push adds a commit to the branch, or now and then rewrites it.
func (w *world) push() {
	parent := w.head
	if w.random.IntN(8) == 0 && w.parents[parent] >= 0 {
		parent = w.parents[parent]
	}
	w.parents = append(w.parents, parent)
	w.head = len(w.parents) - 1
	w.log("git: commit %d on %d", w.head, parent)
	w.at(w.now+time.Second+w.upTo(25*time.Second), event{kind: evPush})
}

// fetch begins a fetch: what it brings is the branch as of now.
func (w *world) fetch(s *slot) {
	i := w.index(s)
	if s.fetching {
		return
	}
	s.fetching = true
	takes := 10*time.Millisecond + w.upTo(300*time.Millisecond)
	if w.now < s.slow {
		takes = min(w.upTo(60*time.Second), s.slow+time.Second-w.now)
	}
	w.at(w.now+takes, event{kind: evFetched, slot: i, life: s.life, n: w.head, deadline: w.local(s)})
}

func (w *world) fetched(s *slot, e event) {
	s.fetching = false
	s.head = e.n
	s.machine.Folded(w.local(s), e.deadline, branch{w, e.n})
	w.at(w.now+2*time.Second+w.upTo(8*time.Second), event{kind: evFetch, slot: e.slot, life: e.life})
}

// branch is the history up to a commit.
type branch struct {
	w    *world
	head int
}

func (b branch) Head() string { return commitName(b.head) }

func (branch) Replaces(string) bool { return true }

func (b branch) Position(commit string) (int, bool) {
	wanted := -1
	if len(commit) > 1 {
		for _, c := range commit[1:] {
			wanted = max(wanted, 0)*10 + int(c-'0')
		}
	}
	for at := b.head; at >= wanted && wanted >= 0; at = b.w.parents[at] {
		if at == wanted {
			depth := 0
			for ; at >= 0; at = b.w.parents[at] {
				depth++
			}
			return depth, true
		}
	}
	return 0, false
}

var commitNames = func() []string {
	names := make([]string, 300)
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	return names
}()

func commitName(commit int) string { return commitNames[commit] }

// story is how a schedule went, to read.
func (w *world) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d replicas, rates %.3f\n", w.plan.seed, w.plan.replicas, w.plan.rates)
	for _, f := range w.plan.faults {
		fmt.Fprintf(&b, "  %v\n", f)
	}
	for _, line := range w.trace {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b, w.broken)
	return b.String()
}

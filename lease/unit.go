// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strconv"
	"time"
)

// phase is how far this replica is with a Lease.
type phase int

const (
	free       phase = iota // not ours
	confirming              // ours, and the gate stays closed until a list has shown that nobody else writes
	held                    // ours
	draining                // ours until nothing is in flight any more
)

type intent int

const (
	refresh intent = iota
	take
	renew
	release
	other
)

// unit is a Lease that can be held: of a shard, or the leader's.
type unit struct {
	name  string
	kind  Kind
	shard int
	of    int
	other bool // of another number of shards: given back, and never taken
	gate  *Gate

	record   Record
	seen     time.Duration // when this version was first seen
	sentSeen time.Duration // when this commit was
	existed  bool          // there was such a Lease
	vacant   bool          // nobody can ever have held it

	phase       phase
	confirmFrom time.Duration // a list that begins from here on confirms it
	opens       time.Duration // the gate opens no earlier
	began       time.Duration // when the last successful renewal began
	renewAt     time.Duration
	want        string // the commit that is to be in the Lease
	announced   bool
	lost        bool

	drained bool
	drainBy time.Duration
	next    string

	inFlight  uint64
	intent    intent
	sent      time.Duration // when the request was
	stale     bool          // the view is to be read again before anything else
	retryAt   time.Duration
	notBefore time.Duration // it is not taken before

	keepUntil time.Duration // the preferred pod did not take it: it is not given back to it before

	preferred string // the pod that should have it
	ahead     int    // how many pods are wanted more than this one
	behind    string // the commit that a fetch was asked for
}

func (u *unit) busy() bool { return u.phase != free || u.inFlight != 0 }

// rankName is what pods are scored for.
func (u *unit) rankName() string {
	if u.kind == Leader {
		return string(Leader)
	}
	return strconv.Itoa(u.shard)
}

// step does for one Lease what is to be done now.
func (m *Machine) step(u *unit) {
	if u.lost {
		u.lost = false
		m.notice(Lost, u, "")
	}
	if (u.phase == held || u.phase == confirming) && (m.stopping || u.other || m.shouldGive(u)) {
		m.drain(u)
	}
	if u.phase == held && !u.announced && m.now < u.began+m.rules.GateCloses && m.due(u.opens) {
		u.announced = true
		m.notice(Opened, u, "")
	}
	if u.inFlight != 0 || !m.due(u.retryAt) {
		return
	}

	switch {
	case u.stale:
		m.ask(u, refresh, Get, Record{Name: u.name, Kind: u.kind})
	case u.phase == draining:
		if u.drained || m.due(u.drainBy) {
			m.release(u)
		}
	case u.phase != free:
		m.keep(u)
	case u.other:
		m.clear(u)
	case m.mayTake(u):
		m.take(u)
	}
}

// keep renews, early if a commit is to be put into the Lease.
func (m *Machine) keep(u *unit) {
	rec := u.record
	if u.want != "" && u.phase == held {
		if u.want != rec.Sent && m.newer(u, u.want) {
			rec.Sent = u.want
		}
		u.want = ""
	}
	if rec.Sent != u.record.Sent || m.due(u.renewAt) {
		m.ask(u, renew, Update, rec)
	}
}

// newer reports whether a commit comes after what the Lease says was sent. Of a branch
// that was rewritten only the head is known to.
func (m *Machine) newer(u *unit, commit string) bool {
	to, ok := m.history.Position(commit)
	if !ok {
		return false
	}
	from, ok := m.history.Position(u.record.Sent)
	if ok {
		return to > from
	}
	return u.record.Sent == "" || m.rewritten(u) && commit == m.history.Head()
}

// knows reports whether what was sent is folded here, or is not on the branch any more.
func (m *Machine) knows(u *unit) bool {
	if u.record.Sent == "" || m.rules.broken.takesUnfolded {
		return true
	}
	_, ok := m.history.Position(u.record.Sent)
	return ok || m.rewritten(u)
}

// rewritten reports, of a commit that is not folded here, whether it is not on the
// branch any more: a fetch that began after the commit was seen did not bring it, and the
// branch says that it may be left behind.
func (m *Machine) rewritten(u *unit) bool {
	return m.fetched > u.sentSeen && m.history.Replaces(u.record.Sent)
}

func (m *Machine) take(u *unit) {
	rec := u.record
	rec.Name, rec.Kind = u.name, u.kind
	if u.vacant && u.kind == Shard && u.preferred != m.config.Pod {
		m.ask(u, other, Create, rec) // given to nobody, for whoever should have it
		return
	}

	u.opens = 0
	if u.record.Version == 0 && !u.vacant || u.record.Holder != "" {
		u.opens = u.seen + max(m.rules.Duration, u.record.Duration) + m.rules.Settle
	}
	u.keepUntil = 0
	if u.preferred != m.config.Pod && !m.rules.broken.returnsAtOnce {
		u.keepUntil = m.now + m.rules.Keep
	}
	rec.Holder, rec.Next, rec.Engine = m.identity, "", m.config.Engine
	rec.Duration = m.rules.Duration
	rec.Transitions++
	if u.kind == Shard {
		rec.Sent = m.newest(u)
	}
	verb := Update
	if rec.Version == 0 {
		verb = Create
	}
	m.ask(u, take, verb, rec)
}

// newest is the newest commit that was sent to any cluster of the shard, by who had
// it when there was another number of shards too. If one of them is not on the branch
// any more, it is the head: everything older may be older than that one was.
func (m *Machine) newest(u *unit) string {
	newest, most := "", -1
	for _, sent := range m.sents(u) {
		at, ok := m.history.Position(sent)
		if !ok {
			return m.history.Head()
		}
		if at > most {
			newest, most = sent, at
		}
	}
	return newest
}

// sents are the commits that a new holder of a shard must not go back behind.
func (m *Machine) sents(u *unit) []string {
	var sents []string
	for _, o := range append(m.others[:len(m.others):len(m.others)], u) {
		if o.record.Sent != "" {
			sents = append(sents, o.record.Sent)
		}
	}
	return sents
}

// clear gives back for its holder an expired Lease of another number of shards. Its
// holder could renew it otherwise, when somebody has the clusters already.
func (m *Machine) clear(u *unit) {
	if u.record.Holder == "" || m.rules.broken.leavesExpired || !m.ready() || !m.due(u.seen+max(m.rules.Duration, u.record.Duration)+m.rules.Settle) {
		return
	}
	rec := u.record
	rec.Holder, rec.Next = "", ""
	m.ask(u, other, Update, rec)
}

// drain closes the gate, and gives the Lease back when nothing is in flight.
func (m *Machine) drain(u *unit) {
	u.next = ""
	if !u.other && u.preferred != m.config.Pod {
		u.next = u.preferred
	}
	u.gate.shut()
	u.drained = u.phase == confirming
	u.phase, u.drainBy = draining, m.now+m.rules.Drain
	if !u.drained {
		m.notice(Draining, u, "")
	}
}

func (m *Machine) release(u *unit) {
	rec := u.record
	rec.Holder, rec.Next = "", u.next
	m.ask(u, release, Update, rec)
}

func (m *Machine) ask(u *unit, why intent, verb Verb, rec Record) {
	if m.rules.broken.unconditional && verb == Update {
		rec.Version = 0
	}
	u.intent, u.sent = why, m.now
	u.inFlight = m.send(verb, rec)
}

// answered takes the answer to a request about a unit.
func (m *Machine) answered(u *unit, a Answer) {
	switch a.Outcome {
	case OK:
		u.stale = false
		m.see(a.Record)
		m.succeeded(u)
	case NotFound:
		u.stale = false
		m.missing(u.name, u.record.Version+1)
	case Conflict:
		u.stale = true
	case Failed:
		u.stale = true
		u.retryAt = m.now + m.rules.Retry
	}
}

func (m *Machine) succeeded(u *unit) {
	if u.record.Holder != m.identity || u.intent != take && u.intent != renew {
		return
	}

	u.began = u.sent
	if m.rules.broken.gateFromEnd {
		u.began = m.now
	}
	u.renewAt = m.jittered(u.sent, m.rules.Renew)
	if u.intent == take && u.phase == confirming {
		u.confirmFrom = m.now
		m.listSoon()
		if m.rules.broken.confirmsNothing {
			u.phase = held
		}
	}
	if u.phase == held {
		m.open(u)
	}
}

// open says until when the gate is open.
func (m *Machine) open(u *unit) {
	u.gate.state.Store(&gateState{
		held: true, opens: u.opens, closes: u.began + m.rules.GateCloses,
		sent: u.record.Sent, epoch: u.record.Transitions, any: m.rules.broken.forgetsPosition,
	})
}

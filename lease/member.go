// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"slices"
	"time"
)

// member is another replica, as its Lease tells.
type member struct {
	name, holder, pod, engine string
	version                   int64
	seen                      time.Duration
	live                      bool
}

func (m *Machine) seeReplica(rec Record) {
	if rec.Name == m.self.name {
		if rec.Version > m.self.record.Version {
			m.self.record = rec
		}
		return
	}

	i, ok := slices.BinarySearchFunc(m.members, rec.Name, func(o member, name string) int { return cmp.Compare(o.name, name) })
	if !ok {
		m.members = slices.Insert(m.members, i, member{name: rec.Name})
	}
	o := &m.members[i]
	if rec.Version <= o.version {
		return
	}
	if rec.Holder != o.holder || rec.Engine != o.engine {
		m.ranked = false // a process that has just started: the replicas are not the same
	}
	o.holder, o.pod, o.engine, o.version, o.seen = rec.Holder, podOf(rec.Holder), rec.Engine, rec.Version, m.now
}

// rank says who should have each shard, whenever the live replicas are others.
func (m *Machine) rank() {
	changed := !m.ranked
	live := 0
	for i := range m.members {
		o := &m.members[i]
		alive := !m.due(o.seen+m.rules.ReplicaDuration) && o.pod != ""
		changed = changed || alive != o.live
		o.live = alive
		if alive {
			live++
		}
	}
	if m.ready() {
		live++
	}
	changed = changed || live != m.ranking
	if !changed {
		return
	}

	m.ranked, m.ranking, m.stable = true, live, m.now
	pods := make([]string, 0, live)
	for _, o := range m.members {
		if o.live {
			pods = append(pods, o.pod)
		}
	}
	if m.ready() {
		pods = append(pods, m.config.Pod)
	}
	m.prefer(pods)
}

func (m *Machine) prefer(pods []string) {
	assigned := Assign(len(m.units)-1, pods)
	for i, u := range m.units {
		before := u.preferred
		u.preferred, u.ahead = "", 0
		ours := score(u.rankName(), m.config.Pod)
		best := uint64(0)
		for _, pod := range pods {
			s := score(u.rankName(), pod)
			if s > ours {
				u.ahead++
			}
			if u.kind == Leader && s >= best {
				best, u.preferred = s, pod
			}
		}
		if u.kind == Shard && assigned != nil {
			u.preferred = pods[assigned[i]]
		}
		if u.preferred != before {
			u.keepUntil = 0
		}
	}
}

// mayTake reports whether a Lease that is not ours should be ours now.
func (m *Machine) mayTake(u *unit) bool {
	if !m.ready() || !m.due(u.notBefore) || !m.due(m.takeAt(u)) {
		return false
	}
	if m.outranked(u) {
		return false
	}
	if u.kind == Leader {
		return true
	}
	return !m.othersHeld() && m.caughtUp(u)
}

// takeAt is when a Lease may be taken, if it does not change before.
func (m *Machine) takeAt(u *unit) time.Duration {
	at := u.seen
	switch {
	case u.vacant:
		return at
	case u.record.Version == 0 || u.record.Holder != "":
		at += max(m.rules.Duration, u.record.Duration)
	case u.record.Next == m.config.Pod:
		return at
	case u.record.Next != "" && !m.rules.broken.ignoresReservation:
		at += m.rules.Reserve
	}
	if u.preferred == m.config.Pod {
		return at
	}
	if m.rules.broken.noFallback {
		return never
	}
	return max(at, u.seen+m.rules.Fallback+time.Duration(u.ahead)*m.rules.Stagger)
}

// outranked reports whether somebody lives who has at least the engine of the last
// holder, while this replica has an older one.
func (m *Machine) outranked(u *unit) bool {
	if u.record.Engine == "" || compareEngines(m.config.Engine, u.record.Engine) >= 0 {
		return false
	}
	return slices.ContainsFunc(m.members, func(o member) bool {
		return o.live && compareEngines(o.engine, u.record.Engine) >= 0
	})
}

// caughtUp reports whether everything that was sent to clusters of this shard is
// folded here, and asks for a fetch if not.
func (m *Machine) caughtUp(u *unit) bool {
	for _, o := range m.others {
		if !m.knows(o) {
			m.ahead(u, o.record.Sent)
			return false
		}
	}
	if !m.knows(u) {
		m.ahead(u, u.record.Sent)
		return false
	}
	return true
}

func (m *Machine) ahead(u *unit, commit string) {
	if u.behind != commit {
		u.behind = commit
		m.notice(Behind, u, commit)
	}
}

// shouldGive reports whether a shard is to move now to the replica that should have it.
func (m *Machine) shouldGive(u *unit) bool {
	if u.kind != Shard || u.phase != held || u.preferred == m.config.Pod || u.preferred == "" || !m.ready() {
		return false
	}
	to := slices.IndexFunc(m.members, func(o member) bool { return o.live && o.pod == u.preferred })
	if to < 0 || compareEngines(m.members[to].engine, m.config.Engine) < 0 {
		return false
	}
	if m.now-m.members[to].seen > m.rules.ReplicaRenew*3/2 {
		return false // it counts as live for a while yet, and may be gone
	}
	if !m.due(max(m.stable+m.rules.Stable, u.keepUntil)) {
		return false
	}

	m.given = slices.DeleteFunc(m.given, func(at time.Duration) bool { return at+m.rules.MoveWindow <= m.now })
	if len(m.given) >= m.rules.Moves {
		m.due(m.given[0] + m.rules.MoveWindow)
		return false
	}
	m.given = append(m.given, m.now)
	return true
}

// presence is this replica's own Lease, which only ranks.
type presence struct {
	name     string
	record   Record
	inFlight uint64
	verb     Verb
	renewAt  time.Duration
	stale    bool
	gone     bool
}

func (p *presence) step(m *Machine) {
	if p.inFlight != 0 || p.gone || m.stopping && p.leave() || !m.stopping && !m.ready() || !m.due(p.renewAt) {
		return
	}

	rec := p.record
	rec.Name, rec.Kind = p.name, Replica
	switch {
	case p.stale:
		p.verb = Get
	case m.stopping:
		p.verb = Delete
	case rec.Version == 0:
		p.verb = Create
	default:
		p.verb = Update
	}
	if rec.Holder != m.identity {
		rec.Holder = m.identity
		rec.Transitions++
	}
	rec.Engine, rec.Duration = m.config.Engine, m.rules.ReplicaDuration
	p.renewAt = m.jittered(m.now, m.rules.ReplicaRenew)
	p.inFlight = m.send(p.verb, rec)
}

// leave reports whether nothing is there to delete.
func (p *presence) leave() bool {
	p.gone = p.record.Version == 0 && !p.stale
	return p.gone
}

func (p *presence) answered(m *Machine, a Answer) {
	if a.Request.ID != p.inFlight {
		return
	}
	p.inFlight = 0
	if m.stopping {
		p.renewAt = m.now
	}

	switch {
	case a.Outcome == OK && p.verb == Delete:
		p.gone = true
	case a.Outcome == OK:
		p.stale = false
		m.seeReplica(a.Record)
	case a.Outcome == NotFound:
		p.stale = false
		p.record = Record{}
		p.gone = m.stopping
	case a.Outcome == Conflict:
		p.stale = true
		p.renewAt = m.now
	default:
		p.stale = true
		p.renewAt = m.now + m.rules.Retry
	}
}

// compareEngines compares versions: numbers as numbers, everything else as text.
func compareEngines(a, b string) int {
	for a != "" && b != "" {
		x, restA := run(a)
		y, restB := run(b)
		if c := compareRuns(x, y); c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

func compareRuns(x, y string) int {
	if isDigit(x[0]) && isDigit(y[0]) {
		for len(x) > 1 && x[0] == '0' {
			x = x[1:]
		}
		for len(y) > 1 && y[0] == '0' {
			y = y[1:]
		}
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}
	return cmp.Compare(x, y)
}

// run cuts off what begins a version: digits, or what are none.
func run(s string) (first, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

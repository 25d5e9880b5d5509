// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"slices"
	"time"
)

// see takes what a Lease says into the view, unless something later is there.
func (m *Machine) see(rec Record) {
	if rec.Kind == Replica {
		m.seeReplica(rec)
		return
	}

	u := m.byName[rec.Name]
	if u == nil && rec.Kind == Shard {
		u = m.newUnit(rec.Name, -1, 0)
		u.kind, u.other = Shard, true
		m.others = append(m.others, u)
	}
	if u == nil || rec.Version <= u.record.Version {
		return
	}

	if rec.Sent != u.record.Sent {
		u.sentSeen = m.now
	}
	u.record, u.seen, u.vacant, u.existed = rec, m.now, false, true
	m.follow(u)
}

// follow has the phase of a unit agree with what its Lease says.
func (m *Machine) follow(u *unit) {
	ours := u.record.Holder == m.identity
	switch {
	case ours && u.phase == free:
		// A request whose answer was lost has taken effect.
		u.phase, u.confirmFrom, u.renewAt = confirming, m.now, m.now
		m.listSoon()
	case !ours && u.phase != free:
		u.gate.shut()
		u.phase, u.want, u.drained, u.announced = free, "", false, false
		u.lost = true
	}
}

// missing takes into the view that there is no such Lease, as of a version.
func (m *Machine) missing(name string, version int64) {
	if i := slices.IndexFunc(m.members, func(o member) bool { return o.name == name }); i >= 0 && m.members[i].version < version {
		m.members = slices.Delete(m.members, i, i+1)
		m.ranked = false
	}
	u := m.byName[name]
	if u == nil || u.record.Version == 0 || version <= u.record.Version {
		return
	}

	// Whoever held it may not know yet: it counts as held, from now. What was sent
	// is remembered.
	u.record = Record{Sent: u.record.Sent, Engine: u.record.Engine}
	u.seen = m.now
	m.follow(u)
}

// vacant marks the shards of a number that nobody has used yet: there was no Lease of
// it, so nobody can hold one.
func (m *Machine) vacant() {
	shards := m.units[:len(m.units)-1]
	none := !slices.ContainsFunc(shards, func(u *unit) bool { return u.existed })
	for _, u := range shards {
		u.vacant = none && m.synced
	}
}

// confirm opens the gates of what was taken before the list began that has just come:
// if somebody had held a shard of another number by then, it would be in there. Two
// who take shards of two numbers at once both list after that, so at least one of
// them sees the other.
func (m *Machine) confirm() {
	for _, u := range m.units {
		if u.phase != confirming || u.confirmFrom > m.listStarted {
			continue
		}
		if u.kind == Shard && m.othersHeld() {
			u.phase, u.drained, u.next = draining, true, ""
			u.retryAt = m.now
			u.notBefore = m.jittered(m.now, m.rules.Retry)
			continue
		}
		u.phase = held
		m.open(u)
	}
	m.listSoon()
}

// listSoon asks for a list if something waits for one that has not begun.
func (m *Machine) listSoon() {
	for _, u := range m.units {
		if u.phase == confirming && (m.listing == 0 || u.confirmFrom > m.listStarted) {
			m.listAt = m.now
		}
	}
}

// othersHeld reports whether a shard of another number is held by anybody.
func (m *Machine) othersHeld() bool {
	if m.rules.broken.ignoresOthers {
		return false
	}
	return slices.ContainsFunc(m.others, func(u *unit) bool {
		expired := m.rules.broken.leavesExpired && u.phase == free && m.due(u.seen+m.rules.Duration+m.rules.Settle)
		return u.record.Holder != "" && !expired
	})
}

// View is what a replica knows of a shard.
type View struct {
	Shard  int
	Holder string // empty: it was given back, or nobody has ever had it
	// Unchanged is for how long nobody has renewed it, or taken it.
	Unchanged time.Duration
}

// Views are those of all shards in order, nil before the Leases were listed.
func (m *Machine) Views(now time.Duration) []View {
	m.now = now
	if !m.synced {
		return nil
	}
	views := make([]View, len(m.units)-1)
	for i, u := range m.units[:len(m.units)-1] {
		views[i] = View{Shard: i, Holder: u.record.Holder, Unchanged: now - u.seen}
	}
	return views
}

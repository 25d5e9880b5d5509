// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"slices"
	"time"
)

// Config is what a machine is made of.
type Config struct {
	Fleet   string
	Pod     string // the name that outlives a restart
	Process string // what no other process has, of this pod or another
	Engine  string // versions of rules and renderer
	Shards  int
	Rules   Rules
	Random  func() float64 // in [0, 1)
}

// Machine is the part of one replica. It has no clock, no goroutine and no I/O: each
// method is given the time, as what has passed on one clock of this replica since
// any moment, and Step says what to do. Only its gates may be used from several
// goroutines.
type Machine struct {
	rules    Rules
	config   Config
	identity string

	units  []*unit // the shards in order, then the leader
	others []*unit // shards of another number of shards
	byName map[string]*unit

	self    presence
	members []member
	stable  time.Duration // since when the members are what they are
	ranked  bool
	ranking int // how many live ones there were then, this replica included

	history History
	fetched time.Duration // when the fetch of it began

	listing, nextID uint64
	listStarted     time.Duration
	listAt          time.Duration // when to list again
	again           bool          // at once after the one that has begun
	synced          bool

	stopping bool
	given    []time.Duration // when shards were given up lately
	now      time.Duration
	out      Output
}

const never = time.Duration(math.MaxInt64)

// New is the machine of a replica that has just started.
func New(config Config) *Machine {
	m := &Machine{rules: config.Rules, config: config, identity: config.Pod + "_" + config.Process, byName: map[string]*unit{}}
	m.self.name = ReplicaName(config.Fleet, config.Pod)
	m.units = append(m.shards(config.Shards), m.newUnit(LeaderName(config.Fleet), -1, 0))
	return m
}

// Identity is what this replica is called in the Leases that it holds.
func (m *Machine) Identity() string { return m.identity }

// Gate is the gate of a shard; -1 is the leader.
func (m *Machine) Gate(shard int) *Gate {
	if shard < 0 {
		shard = len(m.units) - 1
	}
	return m.units[shard].gate
}

func (m *Machine) shards(n int) []*unit {
	units := make([]*unit, n)
	for i := range units {
		name := ShardName(m.config.Fleet, i, n)
		u := m.byName[name]
		if u == nil {
			u = m.newUnit(name, i, n)
		}
		u.shard, u.of, u.other = i, n, false
		units[i] = u
	}
	return units
}

func (m *Machine) newUnit(name string, shard, of int) *unit {
	kind := Shard
	if shard < 0 {
		kind = Leader
	}
	u := &unit{name: name, kind: kind, shard: shard, of: of, seen: m.now, gate: &Gate{name: name}}
	m.byName[name] = u
	return u
}

// Resize says how many shards there are. What is held of another number is given
// back; nothing of the new number is taken before all of the old is.
func (m *Machine) Resize(now time.Duration, shards int) {
	m.now = now
	leader, before := m.units[len(m.units)-1], m.units[:len(m.units)-1]
	if len(before) == shards {
		return
	}

	all := append(slices.Clone(before), m.others...)
	for _, u := range all {
		u.other = true
	}
	units := m.shards(shards)
	m.others = m.others[:0:0]
	for _, u := range all {
		if u.other {
			m.others = append(m.others, u)
		}
	}
	m.units = append(units, leader)
	m.config.Shards = shards
	m.ranked = false
	m.vacant()
}

// Folded says that the branch was fetched, in a fetch that began at a moment, and
// that all of it is folded. A replica does nothing before the first one.
func (m *Machine) Folded(now, fetchBegan time.Duration, history History) {
	m.now = now
	m.history, m.fetched = history, fetchBegan
}

// Live is how many replicas live that have folded the branch, as of the last step: this
// one included.
func (m *Machine) Live() int { return m.ranking }

// Advance asks for a commit to be written to the clusters of a shard, and reports
// whether that may come to be: Gate.Permit lets it pass when the Lease says so.
func (m *Machine) Advance(now time.Duration, shard int, commit string) bool {
	m.now = now
	u := m.units[shard]
	if u.phase != held || u.kind != Shard || m.history == nil {
		return false
	}
	if u.record.Sent != commit && !m.newer(u, commit) {
		return false
	}
	u.want = commit
	return true
}

// Reached reports whether whoever writes to the clusters of a shard, now or later, has
// folded a commit: what the Lease says was sent is not older.
func (m *Machine) Reached(shard int, commit string) bool {
	if m.history == nil {
		return false
	}
	sent, ok := m.history.Position(m.units[shard].record.Sent)
	at, on := m.history.Position(commit)
	return ok && on && sent >= at
}

// Drained answers the notice Draining of a Lease: nothing of it is in flight, and all
// is saved.
func (m *Machine) Drained(now time.Duration, lease string) {
	m.now = now
	if u := m.byName[lease]; u != nil && u.phase == draining {
		u.drained = true
	}
}

// Stop gives everything back. Output.Done says when it is.
func (m *Machine) Stop(now time.Duration) {
	m.now = now
	m.stopping = true
}

// Resync asks for a list: the watch was interrupted.
func (m *Machine) Resync(now time.Duration) {
	m.now = now
	m.listAt, m.again = now, m.listing != 0
}

// Seen says what the watch has seen.
func (m *Machine) Seen(now time.Duration, rec Record) {
	m.now = now
	m.see(rec)
}

// Deleted says that the watch has seen a Lease go.
func (m *Machine) Deleted(now time.Duration, rec Record) {
	m.now = now
	m.missing(rec.Name, rec.Version)
}

// Listed answers a List: all Leases of the fleet as of a version.
func (m *Machine) Listed(now time.Duration, id uint64, version int64, records []Record) {
	m.now = now
	if id != m.listing {
		return
	}
	m.listing = 0
	m.listAt = now + m.rules.Relist
	if m.again {
		m.listAt, m.again = now, false
	}

	listed := make(map[string]bool, len(records))
	for _, rec := range records {
		listed[rec.Name] = true
		m.see(rec)
	}
	for _, u := range slices.Concat(m.units, m.others) {
		if !listed[u.name] {
			m.missing(u.name, version)
		}
	}
	for _, o := range slices.Clone(m.members) {
		if !listed[o.name] {
			m.missing(o.name, version)
		}
	}

	m.sync()
	m.confirm()
}

// sync begins with the first list: what is not in it is missing from now on.
func (m *Machine) sync() {
	if m.synced {
		return
	}
	m.synced = true
	for _, u := range m.units {
		if !u.existed {
			u.seen = m.now
		}
	}
	m.vacant()
	leader := m.units[len(m.units)-1]
	leader.vacant = !leader.existed && (len(m.units) == 1 || m.units[0].vacant)
}

// Answered says how any other request ended. A List that failed comes here too.
func (m *Machine) Answered(now time.Duration, a Answer) {
	m.now = now
	if a.Request.Verb == List {
		if a.Request.ID == m.listing {
			m.listing, m.listAt = 0, now+m.rules.Retry
		}
		return
	}
	if a.Request.Record.Name == m.self.name {
		m.self.answered(m, a)
		return
	}
	if u := m.byName[a.Request.Record.Name]; u != nil && u.inFlight == a.Request.ID {
		u.inFlight = 0
		m.answered(u, a)
	}
}

// Step decides what to do now. The output is valid until the next step.
func (m *Machine) Step(now time.Duration) *Output {
	m.now = now
	m.out = Output{Requests: m.out.Requests[:0], Notices: m.out.Notices[:0], Wake: never}

	m.rank()
	m.self.step(m)
	for _, u := range m.units {
		m.step(u)
	}
	for _, u := range m.others {
		m.step(u)
	}
	m.list()
	m.out.Done = m.stopping && m.self.gone && !slices.ContainsFunc(m.units, (*unit).busy) && !slices.ContainsFunc(m.others, (*unit).busy)
	return &m.out
}

func (m *Machine) list() {
	if m.listing == 0 && !m.stopping && m.due(m.listAt) {
		m.listStarted = m.now
		m.listing = m.send(List, Record{})
	}
}

func (m *Machine) send(verb Verb, rec Record) uint64 {
	m.nextID++
	m.out.Requests = append(m.out.Requests, Request{ID: m.nextID, Verb: verb, Record: rec})
	return m.nextID
}

func (m *Machine) notice(kind NoticeKind, u *unit, commit string) {
	m.out.Notices = append(m.out.Notices, Notice{Kind: kind, Lease: u.name, Shard: u.shard, Shards: u.of, Commit: commit})
}

// due reports whether a moment has come, and has the machine woken when it comes.
func (m *Machine) due(at time.Duration) bool {
	if at <= m.now {
		return true
	}
	m.out.Wake = min(m.out.Wake, at)
	return false
}

// jittered is a moment around an interval after one.
func (m *Machine) jittered(from, interval time.Duration) time.Duration {
	factor := 1 + m.rules.Jitter*(2*m.config.Random()-1)
	return from + time.Duration(float64(interval)*factor)
}

// ready reports whether this replica may take part: it has folded the head of the
// branch, and has seen all Leases.
func (m *Machine) ready() bool { return m.history != nil && m.synced && !m.stopping }

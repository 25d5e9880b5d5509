// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestClaimsLaw: replicas claim, list, stop, die and come back; they hold shards one after the
// other and fold commits late; requests arrive late, and answers are lost. Never are two names
// of one cluster served, nobody who is served loses it to a newer document, and in the end one
// of them is served. FAIRLEAD_CLAIMS_SCHEDULES=100000 runs more.
func TestClaimsLaw(t *testing.T) {
	n := 400
	if more, err := strconv.Atoi(os.Getenv("FAIRLEAD_CLAIMS_SCHEDULES")); err == nil {
		n = more
	}
	from, _ := strconv.ParseUint(os.Getenv("FAIRLEAD_CLAIMS_SEED"), 10, 64)
	for seed := from; seed < from+uint64(n); seed++ {
		var log []string
		failed := ""
		synctest.Test(t, func(t *testing.T) {
			s := newSchedule(seed)
			s.run()
			log, failed = s.log, s.failed
		})
		if failed != "" {
			t.Fatalf("seed %d: %s\n%s", seed, failed, fmt.Sprint(log))
		}
	}
}

const (
	lawShards = 3
	lawNames  = 4
)

// document is a Cluster document, and where its address leads.
type document struct {
	doc
	uid types.UID
}

type commit map[string]document

func (c commit) Cluster(name string, _ int) (int, types.UID, bool) {
	d, ok := c[name]
	return d.shard, d.id, ok
}

// schedule is one of the random ones.
type schedule struct {
	*rand.Rand
	maps    *fakeMaps
	mu      sync.Mutex // one thing at a time
	history []commit
	sent    [lawShards]int // the newest commit with which something was sent
	holder  [lawShards]*replica
	live    []*replica
	started int
	owner   map[types.UID]string // who was served, and is in git as it was then
	log     []string
	failed  string
}

// replica is a process. Its maps are of the clusters that it reconciles.
type replica struct {
	*Registry
	s    *schedule
	name string
	at   int // the commit that it has folded
	stop context.CancelFunc

	mu     sync.Mutex
	shards map[int]bool

	asking map[string]int // how often a cluster was connected to
	served map[string]types.UID
	asked  map[string]bool
}

func newSchedule(seed uint64) *schedule {
	s := &schedule{Rand: rand.New(rand.NewPCG(seed, 0)), maps: newFake(), owner: map[types.UID]string{}}
	s.maps.held = true
	s.history = []commit{s.change(commit{})}
	return s
}

// change is a commit after another.
func (s *schedule) change(was commit) commit {
	is := maps.Clone(was)
	for range 1 + s.IntN(2) {
		name := fmt.Sprintf("eu-%d", s.IntN(lawNames))
		if s.IntN(3) == 0 {
			delete(is, name)
			continue
		}
		d := document{doc{shard: s.IntN(lawShards)}, types.UID(fmt.Sprintf("u%d", s.IntN(2)))}
		if s.IntN(3) == 0 {
			d.id = d.uid
		}
		if before, ok := is[name]; ok && d.id == "" && s.IntN(4) > 0 {
			d.uid = before.uid // an address seldom leads elsewhere
		}
		is[name] = d
	}
	return is
}

func (s *schedule) run() {
	for range 2 + s.IntN(2) {
		s.alone(s.start)
	}
	for range 150 + s.IntN(250) {
		synctest.Wait()
		s.check()
		if s.failed != "" {
			break
		}
		if n := s.IntN(100); n < 10 {
			time.Sleep(5 * time.Millisecond)
		} else if n < 12 {
			time.Sleep(11 * time.Second) // what waits gives up, and may arrive all the same
		} else {
			s.alone(s.step)
		}
	}
	synctest.Wait()
	if s.failed == "" {
		s.settle()
	}
	for _, r := range s.live {
		r.stop()
	}
	s.maps.release()
	synctest.Wait()
}

func (s *schedule) say(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...)+"\n")
}

func (s *schedule) start() {
	s.started++
	r := &replica{s: s, name: fmt.Sprintf("r%d", s.started), shards: map[int]bool{}, asking: map[string]int{}, served: map[string]types.UID{}, asked: map[string]bool{}}
	r.Registry = New(Options{Maps: s.maps, Fleet: "acme", Holder: r.name, Shards: lawShards, Holds: r.holds})
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go r.Run(ctx)
	s.live = append(s.live, r)
	r.fold(s.IntN(len(s.history)))
	s.say("%s starts at %d", r.name, r.at)
}

func (r *replica) holds(shard, _ int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shards[shard]
}

// alone does something while nothing else does.
func (s *schedule) alone(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// step does one thing at random.
func (s *schedule) step() {
	r := s.live[s.IntN(len(s.live))]
	switch n := s.IntN(86); {
	case n < 45:
		s.deliver()
	case n < 65:
		r.connect(fmt.Sprintf("eu-%d", s.IntN(lawNames)))
	case n < 72:
		r.take(s.IntN(lawShards))
	case n < 75:
		s.lose(s.IntN(lawShards))
	case n < 80:
		if r.at+1 < len(s.history) {
			r.fold(r.at + 1)
		}
	case n < 84:
		s.commit()
	default:
		s.die(r)
	}
}

// commit adds a commit. Whoever was served and is not the same in it has no claim to be.
func (s *schedule) commit() {
	was := s.history[len(s.history)-1]
	is := s.change(was)
	s.history = append(s.history, is)
	s.say("commit %d: %v", len(s.history)-1, is)
	maps.DeleteFunc(s.owner, func(_ types.UID, name string) bool {
		return is[name].uid != was[name].uid || is[name].id != was[name].id || is[name].shard != was[name].shard
	})
}

// deliver has a request arrive or answered.
func (s *schedule) deliver() {
	if len(s.maps.calls) == 0 {
		return
	}
	c := s.maps.calls[s.IntN(len(s.maps.calls))]
	switch n := s.IntN(20); {
	case n == 0 && !c.arrived:
		s.maps.end(c, true) // it never arrives
	case s.maps.arrive(c):
		s.maps.end(c, n == 1)
	}
}

// fold has a replica know a commit: what is not there as it was is drained before.
func (r *replica) fold(at int) {
	was, is := r.s.history[r.at], r.s.history[at]
	for name := range was {
		if is[name] != was[name] {
			r.disconnect(name)
		}
	}
	r.at = at
	r.Keep(&is)
	r.s.say("%s folds %d", r.name, at)
}

func (r *replica) disconnect(name string) {
	r.asking[name]++
	delete(r.served, name)
	delete(r.asked, name)
}

// take has a replica hold a shard that nobody holds, if it has folded what was sent.
func (r *replica) take(shard int) {
	if r.s.holder[shard] != nil || r.at < r.s.sent[shard] {
		return
	}
	r.s.holder[shard] = r
	r.mu.Lock()
	r.shards[shard] = true
	r.mu.Unlock()
	r.Taken(shard)
	r.Keep(&r.s.history[r.at])
	r.s.say("%s takes %d", r.name, shard)
}

// lose has the holder of a shard hold it no more.
func (s *schedule) lose(shard int) {
	r := s.holder[shard]
	if r == nil {
		return
	}
	s.holder[shard] = nil
	r.mu.Lock()
	delete(r.shards, shard)
	r.mu.Unlock()
	r.Given(shard)
	for name, d := range s.history[r.at] {
		if d.shard == shard {
			r.disconnect(name)
		}
	}
	s.say("%s loses %d", r.name, shard)
}

// die ends a replica. What it has on the wire may arrive. Another one starts.
func (s *schedule) die(r *replica) {
	for shard, holder := range s.holder {
		if holder == r {
			s.lose(shard)
		}
	}
	r.stop()
	s.live = slices.DeleteFunc(s.live, func(o *replica) bool { return o == r })
	s.say("%s dies", r.name)
	s.start()
}

// connect asks for a cluster as dispatch does.
func (r *replica) connect(name string) {
	d, ok := r.s.history[r.at][name]
	if !ok || !r.holds(d.shard, lawShards) || r.asked[name] || r.served[name] != "" || d.id != "" && d.id != d.uid {
		return
	}
	r.asked[name] = true
	this := r.asking[name]
	go func() {
		recorded, other, err := r.Claim(context.Background(), name, d.uid)
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		if r.asking[name] != this {
			return
		}
		r.asked[name] = false
		r.s.say("%s: %s as %s: recorded %q, other %q, %v", r.name, name, d.uid, recorded, other, err)
		if err == nil && other == "" && (recorded == d.uid || d.id == d.uid) {
			r.serve(name, d)
		}
	}()
}

func (r *replica) serve(name string, d document) {
	r.served[name] = d.uid
	s := r.s
	s.sent[d.shard] = max(s.sent[d.shard], r.at)
	if before, ok := s.owner[d.uid]; ok && before != name {
		s.failed = fmt.Sprintf("%s was served as %s, and %s displaces it", before, d.uid, name)
	}
	if !slices.ContainsFunc(s.history[r.at:], func(c commit) bool { return c[name] != d }) {
		s.owner[d.uid] = name
	}
}

// check looks for two names of one cluster that are served.
func (s *schedule) check() map[types.UID]string {
	by := map[types.UID]string{}
	for _, r := range s.live {
		for name, uid := range r.served {
			if other, ok := by[uid]; ok && other != name {
				s.failed = fmt.Sprintf("%s and %s are both served as %s", other, name, uid)
			}
			by[uid] = name
		}
	}
	return by
}

// settle ends all faults, and checks that each cluster is served under one name.
func (s *schedule) settle() {
	s.maps.release()
	synctest.Wait()
	head := len(s.history) - 1
	s.alone(func() {
		for _, r := range s.live {
			for r.at < head {
				r.fold(r.at + 1)
			}
		}
		for shard := range lawShards {
			if s.holder[shard] == nil {
				s.live[s.IntN(len(s.live))].take(shard)
			}
		}
		s.say("settling at %v", s.history[head])
	})
	for range 10 {
		time.Sleep(6 * time.Second)
		synctest.Wait()
		s.alone(func() {
			for _, r := range s.live {
				for _, name := range slices.Sorted(maps.Keys(s.history[head])) {
					r.connect(name)
				}
			}
		})
	}
	time.Sleep(time.Second)
	synctest.Wait()

	served := s.check()
	for name, d := range s.history[head] {
		if served[d.uid] == "" && s.failed == "" && !s.rebuilt(d.uid) {
			s.failed = fmt.Sprintf("%s is served under no name, and %s is it", d.uid, name)
		}
	}
}

// rebuilt reports whether a cluster waits for spec.id, as in one process: its name was another
// cluster, or the name that was it leads elsewhere.
func (s *schedule) rebuilt(uid types.UID) bool {
	head := s.history[len(s.history)-1]
	was := map[string]types.UID{}
	for _, m := range s.maps.stored {
		for name, text := range m.Data {
			c, _ := parseClaim(text)
			was[name] = c.uid
		}
	}
	frozen := true
	for name, d := range head {
		switch {
		case d.uid == uid:
			frozen = frozen && was[name] != "" && was[name] != uid && d.id != uid
		case was[name] == uid && d.id == "":
			return true
		}
	}
	return frozen
}

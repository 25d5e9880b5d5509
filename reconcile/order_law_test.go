// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// Replicas share a fleet under the gate Failover. Commits, members that go and come back,
// taints, a branch that is rewritten, replicas that restart with and without what they had, another leader, a log that
// cannot be reached, whose answers are lost, or that is deleted: wherever two replicas are
// at the same commit and the same entry of the log, they have decided the same, and one
// that starts from nothing comes to it too.
func TestReplicasFoldAlike(t *testing.T) {
	seeds, first := number(envFaultSeeds, 12), number(envFaultSeed, 1)
	if testing.Short() {
		seeds = 2
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			o := newOrdering(t, uint64(seed))
			for range 60 {
				if o.step(); o.guarded {
					return
				}
			}
			o.converge()
		})
	}
}

// ordering is a run of several loops.
type ordering struct {
	*world
	rand    *rand.Rand
	log     *sharedLog
	loops   []*reconcile.Loop
	dirs    []string
	now     time.Time
	away    map[string]bool
	taints  map[string]bool
	gate    bool
	n       int
	states  map[string]string // what was decided, by commit and entry
	did     []string
	guarded bool     // a rewritten branch awaits confirmation
	dropped []string // trailers that allow it, of the heads that were on the branch
}

func newOrdering(t *testing.T, seed uint64) *ordering {
	o := &ordering{
		world: newWorld(t, embeddedMembers(t)), rand: rand.New(rand.NewPCG(seed, 2)), log: &sharedLog{seen: map[int]reconcile.MembersSeen{}},
		now: time.Now(), away: map[string]bool{}, taints: map[string]bool{}, gate: true, states: map[string]string{},
	}
	o.repo.Commit("before", map[string]string{"readme.md": "a fleet\n"})
	o.commit()
	for range 3 {
		o.loops, o.dirs = append(o.loops, nil), append(o.dirs, t.TempDir())
	}
	for i := range o.loops {
		o.start(i)
	}
	t.Cleanup(func() {
		for _, l := range o.loops {
			_ = l.Close() // the fake says nothing of it
		}
	})
	return o
}

// start opens the loop of a replica.
func (o *ordering) start(i int) {
	o.t.Helper()
	opt := o.options()
	opt.StateDir, opt.Steady = o.dirs[i], 20*time.Second
	opt.Backoff = dispatch.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond}
	opt.Clock.Now = func() time.Time { return o.now }
	opt.Shares = &replicaOf{log: o.log, i: i, n: len(o.loops)}
	opt.Members = func(c *fleet.Cluster) (member.Member, error) {
		return push.New(o.members[c.Name].counted(), push.Options{})
	}
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		o.t.Fatal(err)
	}
	o.loops[i] = l
}

// commit pushes the fleet as it is to be.
func (o *ordering) commit(trailers ...string) {
	o.n++
	files := failoverFleet()
	if !o.gate {
		files["fairlead.yaml"] = "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {}\n"
	}
	for _, name := range names {
		if o.taints[name] {
			files["clusters/"+name+".yaml"] = failoverCluster(name, ", taints: [{key: broken, effect: NoExecute}]")
		}
	}
	files["settings.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {n: \"%d\"}\n", o.n)
	kind := []string{"Gracefully", "Directly", "Gracefully"}[o.n%3]
	files["policy.yaml"] += fmt.Sprintf("  failover: {cluster: {purgeMode: %s}}\n", kind)
	for i := range o.n % 4 {
		name := "other-" + strconv.Itoa(i)
		files[name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n---\n" + strings.ReplaceAll(failoverPolicy, "settings", name)
	}
	for i := o.n % 4; i < 4; i++ {
		files["other-"+strconv.Itoa(i)+".yaml"] = sourcetest.Delete
	}
	o.repo.Commit(strings.Join(append([]string{"commit " + strconv.Itoa(o.n), ""}, trailers...), "\n"), files)
}

// step does one thing.
func (o *ordering) step() {
	o.t.Helper()
	name, i := names[o.rand.IntN(len(names))], o.rand.IntN(len(o.loops))
	what := ""
	switch n := o.rand.IntN(40); {
	case n < 5:
		if name != names[0] {
			o.taints[name] = !o.taints[name]
		}
		o.commit()
		what = fmt.Sprintf("commit %d, taints %v", o.n, o.taints)
	case n < 8:
		if o.away[name] {
			o.members[name].up()
		} else if len(o.away) == 0 {
			o.members[name].down()
			o.away[name] = true
			what = name + " is away"
			break
		}
		delete(o.away, name)
		what = name + " is back"
	case n < 9:
		o.gate = !o.gate
		o.commit()
		what = fmt.Sprintf("commit %d, gate %v", o.n, o.gate)
	case n < 10:
		commits := strings.Fields(o.repo.Git("log", "--first-parent", "--format=%H"))
		before := o.rand.IntN(len(commits))
		o.repo.Git("reset", "--hard", "-q", commits[before])
		o.dropped = append(o.dropped, "Fairlead-Allow-Rewrite: "+commits[0])
		o.commit(o.dropped...)
		what = fmt.Sprintf("commit %d, %d commits before it are not on the branch any more", o.n, before)
	case n < 12:
		lose := o.rand.IntN(2) == 0
		_ = o.loops[i].Close()
		if lose {
			o.dirs[i] = o.t.TempDir()
		}
		o.start(i)
		what = fmt.Sprintf("replica %d restarts, lost its state: %v", i, lose)
	case n < 14:
		o.log.leader(i)
		what = fmt.Sprintf("replica %d leads", i)
	case n < 15:
		o.log.fail(o.rand.IntN(3))
		what = "the log fails"
	case n < 19:
		o.now = o.now.Add(time.Duration([]int{10, 30, 700}[o.rand.IntN(3)]) * time.Second)
		what = "time passes"
	default:
		o.round(i)
		what = fmt.Sprintf("replica %d is at %s", i, o.at(i))
	}
	o.did = append(o.did, what)
}

// round runs a round of a replica, and compares what it has decided.
func (o *ordering) round(i int) {
	o.t.Helper()
	if err := reconcile.RoundOf(context.Background(), o.loops[i]); err != nil && !strings.Contains(err.Error(), errChaos.Error()) {
		o.t.Fatalf("replica %d: %v\n%s", i, err, o.story())
	}
	o.compare(fmt.Sprintf("replica %d", i), o.loops[i])
}

func (o *ordering) compare(who string, l *reconcile.Loop) {
	o.t.Helper()
	state := reconcile.StateOf(l)
	if r := state.Refusal; r != nil && r.Guard != nil && len(o.dropped) > 0 {
		// Whether a rewritten branch is confirmed depends on what was folded before (fold
		// rule 5), which one that begins does not know.
		o.guarded = true
		return
	}
	log, at := state.Logged()
	where := fmt.Sprintf("%s after %d of log %s", state.Commit, at, log)
	is := decided(&state)
	if was, known := o.states[where]; known && was != is {
		o.t.Fatalf("%s at %s has decided\n%s\nand another\n%s\n%s", who, where, is, was, o.story())
	}
	o.states[where] = is
}

// converge ends the faults. All replicas come to one state, and one that begins does.
func (o *ordering) converge() {
	o.t.Helper()
	for _, name := range names {
		o.members[name].up()
	}
	o.log.fail(-1)
	o.log.leader(0)
	for range 4 {
		o.now = o.now.Add(time.Minute)
		for i := range o.loops {
			o.round(i)
		}
	}
	for i := range o.loops {
		o.round(i)
	}
	o.dirs = append(o.dirs, o.t.TempDir())
	o.loops = append(o.loops, nil)
	last := len(o.loops) - 1
	o.start(last)
	for range 3 {
		o.now = o.now.Add(time.Minute)
		for i := range o.loops {
			o.round(i)
		}
	}

	if o.guarded {
		return
	}
	first := reconcile.StateOf(o.loops[0])
	for i := range o.loops {
		state := reconcile.StateOf(o.loops[i])
		if state.Commit != first.Commit || decided(&state) != decided(&first) || state.Watched() && o.at(i) != o.at(0) {
			o.t.Errorf("replica %d is at %s\n%s\nand replica 0 at %s\n%s\n%s", i, o.at(i), decided(&state), o.at(0), decided(&first), o.story())
		}
	}
}

func (o *ordering) at(i int) string {
	state := reconcile.StateOf(o.loops[i])
	_, at := state.Logged()
	return fmt.Sprintf("%.7s@%d", state.Commit, at)
}

func (o *ordering) story() string {
	return strings.Join(o.did, "\n") + "\n" + o.said()
}

// decided is what a state has decided, as text.
func decided(s *propagate.State) string {
	var lines []string
	for b := range s.Bindings.Values() {
		lines = append(lines, fmt.Sprintf("%s on %v, leaves %v", b.ID, b.Targets, b.Evictions))
		for _, w := range b.Works {
			line := fmt.Sprintf("  %s: wants %s", w.Cluster, w.Want.Digest)
			if w.Released != nil {
				line += fmt.Sprintf(", has %s", w.Released.Digest)
			}
			lines = append(lines, line+fmt.Sprint(w.Held, w.Blocked, w.After))
		}
	}
	if s.Seen != nil && s.Watched() {
		lines = append(lines, fmt.Sprint(s.Seen.Clusters, s.Seen.Works))
	}
	return strings.Join(lines, "\n")
}

// sharedLog is the log of several replicas, and what they see.
type sharedLog struct {
	mu      sync.Mutex
	log     *reconcile.Log
	version int
	leads   int
	seen    map[int]reconcile.MembersSeen
	broken  int // what fails next: 1 a request, 2 an answer; negative: nothing
	writes  int
}

func (g *sharedLog) leader(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leads = i
}

// fail has the next request fail, or its answer get lost, or the log be lost.
func (g *sharedLog) fail(how int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if how == 0 {
		g.log = nil
		return
	}
	g.broken = how
}

// replicaOf is the part of one replica: clusters by their place among the names.
type replicaOf struct {
	log  *sharedLog
	i, n int
}

func (r *replicaOf) Term(c *fleet.Cluster) int {
	if slices.Index(names, c.Name)%r.n == r.i {
		return 1
	}
	return 0
}

func (r *replicaOf) Claim(_ context.Context, _ string, uid types.UID) (types.UID, string, error) {
	return uid, "", nil
}

func (r *replicaOf) Moves() int { return 0 }

func (r *replicaOf) Keep(ordered.Map[*fleet.Cluster], propagate.Moved, string, string) {}

func (r *replicaOf) Fetching() func(*reconcile.Line) { return func(*reconcile.Line) {} }

func (r *replicaOf) Leads() bool {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.leads == r.i
}

func (r *replicaOf) Read(context.Context) (*reconcile.Log, error) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.log.broken == 1 {
		r.log.broken = -1
		return nil, errChaos
	}
	return r.log.log, nil
}

func (r *replicaOf) Write(_ context.Context, next *reconcile.Log) (*reconcile.Log, error) {
	g := r.log
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.log; now == nil && next.Version != "" || now != nil && now.Version != next.Version {
		return nil, reconcile.ErrLogChanged
	}
	written := *next
	g.version++
	written.Version = strconv.Itoa(g.version)
	if next.Version == "" {
		written.ID = "log-" + written.Version
	}
	g.log = &written
	g.writes++
	if g.broken == 2 {
		g.broken = -1
		return nil, errChaos
	}
	return &written, nil
}

func (r *replicaOf) Saw(_ context.Context, _ map[string]*fleet.Cluster, seen reconcile.MembersSeen) error {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.seen[r.i] = seen
	return nil
}

func (r *replicaOf) Seen(context.Context) ([]reconcile.MembersSeen, error) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return slices.Collect(maps.Values(r.log.seen)), nil
}

// SPDX-License-Identifier: Apache-2.0

// Package sharing has several replicas divide the clusters of a fleet between them. A
// [Replica] is the part of one: it runs its Leases, tells its loop which clusters are its
// own, and is the only way to make a member that it writes to.
//
//	replica := sharing.New(sharing.Options{Leases: …, Fleet: "team/acme", Pod: "fairlead-0", …})
//	loop, err := reconcile.Open(ctx, reconcile.Options{Shares: replica, Members: … replica.Push …})
//	replica.Attach(loop)
//	go replica.Run(ctx)
//	err = loop.Run(ctx)
//	err = errors.Join(loop.Close(), replica.Stop(ctx))
package sharing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/lease/hub"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing/claims"
)

// Options are what a replica is made of.
type Options struct {
	Leases hub.Leases
	// ConfigMaps are of the same namespace.
	ConfigMaps ConfigMaps
	// Fleet is unique among those whose Leases are in the same namespace.
	Fleet string
	// Pod is the name of the replica, which outlives a restart.
	Pod    string
	Shards int
	// Engine is what decides and renders; "" is this version's.
	Engine string
	// Rules are the timings; the zero value is lease.DefaultRules.
	Rules lease.Rules
	// Changed is called when the loop is to begin a round: clusters were taken, or somebody
	// has sent a commit that is not fetched here. It must not wait.
	Changed func()
	// Failed is told of requests about Leases and claims that failed. It may be nil.
	Failed func(error)
}

// Replica is the part of one replica. It is a reconcile.Shares.
type Replica struct {
	runner *hub.Runner
	claims *claims.Registry
	opt    Options
	rules  lease.Rules

	mu     sync.Mutex
	shards int
	owned  map[int]int // the term of each shard that is held: Term
	leads  bool
	moves  int             // how often what is held has changed
	loop   *reconcile.Loop // nil before it is attached
	// kept are the clusters that the claims were told of, and keptFor how many shards had been
	// taken by then: opened.
	kept            ordered.Map[*fleet.Cluster]
	keptFor, opened int
	moved           propagate.Moved
	rewritten       string
	announced       map[announced]bool

	drains   sync.WaitGroup
	observed *observed
	at       atomic.Int64    // the moment of the last observations that are folded
	until    context.Context // of what runs until Run returns
	end      context.CancelFunc
}

// New is a replica that holds nothing yet.
func New(opt Options) *Replica {
	if opt.Engine == "" {
		opt.Engine = history.Engine
	}
	if opt.Rules.Duration == 0 {
		opt.Rules = lease.DefaultRules()
	}
	r := &Replica{opt: opt, rules: opt.Rules, shards: opt.Shards, owned: map[int]int{}, announced: map[announced]bool{}}
	r.until, r.end = context.WithCancel(context.Background())
	r.observed = newObserved(r, opt.ConfigMaps)
	r.runner = hub.New(opt.Leases, hub.Options{
		Fleet: opt.Fleet, Pod: opt.Pod, Engine: opt.Engine, Shards: opt.Shards, Rules: opt.Rules,
		Notify: r.notify, Failed: opt.Failed,
		Position: func(commit string) string { return position(commit, r.at.Load()) },
	})
	r.claims = claims.New(claims.Options{
		Maps: opt.ConfigMaps, Fleet: opt.Fleet, Holder: r.runner.Identity(), Shards: opt.Shards,
		Holds: r.holds, Request: opt.Rules.Request, Retry: opt.Rules.Retry, Failed: opt.Failed,
	})
	return r
}

// Attach is told the loop whose clusters are shared.
func (r *Replica) Attach(loop *reconcile.Loop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loop = loop
}

// Run takes, renews and gives back Leases until Stop is done, or the context ends: then
// nothing is given back.
func (r *Replica) Run(ctx context.Context) error {
	claiming, cancel := context.WithCancel(ctx)
	var claimed sync.WaitGroup
	claimed.Go(func() { r.claims.Run(claiming) })
	err := r.runner.Run(ctx)
	cancel()
	claimed.Wait()
	r.end()
	r.drains.Wait()
	return err
}

// Stop gives everything back, and waits until it is. The loop is closed before.
func (r *Replica) Stop(ctx context.Context) error {
	r.Attach(nil)
	return r.runner.Stop(ctx)
}

// Resize says how many shards there are.
func (r *Replica) Resize(shards int) {
	r.mu.Lock()
	same := r.shards == shards
	if !same {
		r.shards, r.owned, r.announced = shards, map[int]int{}, map[announced]bool{}
		r.moves++
	}
	r.mu.Unlock()
	if !same {
		r.claims.Resize(shards)
		r.runner.Resize(shards)
	}
}

// Identity is what the replica is called in the Leases that it holds.
func (r *Replica) Identity() string { return r.runner.Identity() }

// Leads reports whether this is the replica that does what only one does.
func (r *Replica) Leads() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leads && r.runner.Gate(-1).Open(r.runner.Now()) == nil
}

// Live is how many replicas live that have folded the branch, this one included.
func (r *Replica) Live() int { return r.runner.Live() }

// Views are what is known of each shard, in order; nil before the Leases were listed.
func (r *Replica) Views() []lease.View { return r.runner.Views() }

// Rules are the timings.
func (r *Replica) Rules() lease.Rules { return r.rules }

// Shards returns how many shards there are, and those that are this replica's own.
func (r *Replica) Shards() (all int, owned []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shards, slices.Sorted(maps.Keys(r.owned))
}

// ShardOf is the shard of a cluster. One whose annotation names none is in that of its
// name, and the error says what is wrong.
func (r *Replica) ShardOf(c *fleet.Cluster) (int, error) {
	r.mu.Lock()
	shards := r.shards
	r.mu.Unlock()
	return ShardOf(c, shards)
}

// ShardOf is the shard of a cluster, of as many as there are. One whose annotation names
// none is in that of its name, and the error says what is wrong.
func ShardOf(c *fleet.Cluster, shards int) (int, error) {
	shard, err := lease.ShardOf(c.Name, c.Annotations[propagate.AnnotationShard], shards)
	if err == nil {
		return shard, nil
	}
	shard, _ = lease.ShardOf(c.Name, "", shards)
	return shard, fmt.Errorf("cluster %q: annotation %s: %w (%s)", c.Name, propagate.AnnotationShard, err, c.Origin)
}

// Term is 0 while a cluster is not this replica's own, and otherwise counts how many shards
// had been taken when its shard was.
func (r *Replica) Term(c *fleet.Cluster) int {
	shard, _ := r.ShardOf(c) // who would have it without the annotation says what is wrong with it
	return r.termOf(shard)
}

func (r *Replica) termOf(shard int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owned[shard]
}

// Moves is another number whenever other shards are this replica's own.
func (r *Replica) Moves() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moves
}

// Fetching is called before the repository is fetched, and what it returns when all of
// that is folded.
func (r *Replica) Fetching() func(*reconcile.Line) {
	began := r.runner.Now()
	return func(line *reconcile.Line) {
		at, _ := line.Observed()
		r.at.Store(at)
		r.runner.Folded(began, folded{line})
	}
}

// Read reads the log of what was observed of the members.
func (r *Replica) Read(ctx context.Context) (*reconcile.Log, error) { return r.observed.read(ctx) }

// Write continues the log of what was observed of the members.
func (r *Replica) Write(ctx context.Context, next *reconcile.Log) (*reconcile.Log, error) {
	return r.observed.write(ctx, next)
}

// Saw tells the replica that leads what is observed of this one's clusters.
func (r *Replica) Saw(ctx context.Context, clusters map[string]*fleet.Cluster, seen reconcile.MembersSeen) error {
	shards, owned := r.Shards()
	of := map[int]reconcile.MembersSeen{}
	for _, shard := range owned {
		of[shard] = reconcile.MembersSeen{Commit: seen.Commit, At: seen.At, Clusters: map[string]reconcile.MemberSeen{}}
	}
	for name, m := range seen.Clusters {
		c := clusters[name]
		if c == nil {
			continue
		}
		shard, err := r.ShardOf(c)
		if s, ours := of[shard]; err == nil && ours {
			s.Clusters[name] = m
		}
	}
	return r.observed.saw(ctx, of, shards)
}

// Seen is what all replicas observe of their own clusters.
func (r *Replica) Seen(ctx context.Context) ([]reconcile.MembersSeen, error) {
	shards, _ := r.Shards()
	holders := map[string]string{}
	for _, v := range r.Views() {
		holders[lease.SeenName(r.opt.Fleet, v.Shard, shards)] = v.Holder
	}
	return r.observed.seen(ctx, holders)
}

// Push is the way to a cluster behind a Kubernetes API: see hub.Runner.Push.
func (r *Replica) Push(cfg *push.Config, c *fleet.Cluster, wrap ...func(member.Member) member.Member) (member.Member, error) {
	shard, err := r.ShardOf(c)
	if err != nil {
		return nil, err
	}
	term := r.termOf(shard)
	return r.runner.Push(cfg, shard, func() error { return r.mayWrite(c.Name, shard, term) }, wrap...)
}

// Pull is the way to a cluster that pulls from a branch: see hub.Runner.Pull.
func (r *Replica) Pull(in pull.Branches, branch string, c *fleet.Cluster) (member.Member, error) {
	shard, err := r.ShardOf(c)
	if err != nil {
		return nil, err
	}
	term := r.termOf(shard)
	return r.runner.Pull(in, branch, shard, func() error { return r.mayWrite(c.Name, shard, term) }), nil
}

// notify does what the machine of the Leases says.
func (r *Replica) notify(n lease.Notice) {
	switch n.Kind {
	case lease.Opened:
		r.set(n, true)
		r.opt.Changed()
	case lease.Behind:
		r.opt.Changed()
	case lease.Lost:
		r.set(n, false)
		r.drains.Go(func() { r.drain(n) })
	case lease.Draining:
		r.set(n, false)
		r.drains.Go(func() {
			r.drain(n)
			r.runner.Drained(n.Lease)
		})
	}
}

// set notes whether what a notice is about is ours.
func (r *Replica) set(n lease.Notice, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves++
	switch {
	case n.Shard < 0:
		r.leads = ours
	case n.Shards == r.shards && ours:
		r.opened++
		r.owned[n.Shard] = r.opened
		r.claims.Taken(n.Shard)
	case n.Shards == r.shards:
		delete(r.owned, n.Shard)
		r.claims.Given(n.Shard)
	}
}

// drain waits until nothing is in flight to the clusters that are not ours any more.
func (r *Replica) drain(n lease.Notice) {
	r.mu.Lock()
	loop := r.loop
	r.mu.Unlock()
	if n.Shard < 0 {
		r.opt.Changed() // what the leader does is somebody else's
		return
	}
	if loop == nil {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), r.rules.Drain)
	defer cancel()
	loop.Release(ctx)
	r.opt.Changed()
}

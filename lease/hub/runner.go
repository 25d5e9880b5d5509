// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/lease"
)

var started = time.Now()

// Options are what a runner is made of.
type Options struct {
	Fleet  string // what its Leases are named after: unique in their namespace
	Pod    string
	Engine string
	Shards int

	// Notify is told what to do, one notice after the other. It may call the runner,
	// and must not take long.
	Notify func(lease.Notice)

	// Position is what the Lease says when a commit is sent; nil is the commit.
	Position func(commit string) string

	// Rules are the timings; the zero value is lease.DefaultRules. Every replica of the
	// fleet has the same.
	Rules lease.Rules

	// Failed is told of requests about Leases that failed. It may be nil.
	Failed func(error)
}

// Runner runs the machine of one replica of one fleet.
type Runner struct {
	leases  Leases
	options Options
	rules   lease.Rules

	mu      sync.Mutex
	machine *lease.Machine
	changed chan struct{} // closed after each step

	wake chan struct{}
	done chan struct{} // closed when Run has returned

	store    store
	watching context.CancelFunc
	requests sync.WaitGroup
}

// New is a runner for the Leases of a namespace.
func New(leases Leases, options Options) *Runner {
	rules := options.Rules
	if rules.Duration == 0 {
		rules = lease.DefaultRules()
	}
	r := &Runner{
		leases: leases, options: options, rules: rules,
		changed: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	var process [4]byte
	_, _ = rand.Read(process[:]) // never fails
	r.machine = lease.New(lease.Config{
		Fleet: options.Fleet, Pod: options.Pod, Process: hex.EncodeToString(process[:]), Engine: options.Engine,
		Shards: options.Shards, Rules: r.rules, Random: mathrand.Float64,
	})
	return r
}

// Now is what the runner's clock says.
func (r *Runner) Now() time.Duration { return now() }

// Identity is what the replica is called in the Leases that it holds.
func (r *Runner) Identity() string { return r.machine.Identity() }

// Live is how many replicas live that have folded the branch.
func (r *Runner) Live() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Live()
}

// Views are what is known of each shard, in order; nil before the Leases were listed.
func (r *Runner) Views() []lease.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Views(now())
}

// Gate is the gate of a shard; -1 is the leader's. Resize makes others.
func (r *Runner) Gate(shard int) *lease.Gate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Gate(shard)
}

// Folded says that the branch is folded, as a fetch brought it that began at a moment
// of the runner's clock.
func (r *Runner) Folded(fetchBegan time.Duration, history lease.History) {
	r.tell(func(m *lease.Machine, at time.Duration) { m.Folded(at, fetchBegan, history) })
}

// Resize says how many shards there are.
func (r *Runner) Resize(shards int) {
	r.tell(func(m *lease.Machine, at time.Duration) { m.Resize(at, shards) })
}

// Drained answers the notice Draining of a Lease.
func (r *Runner) Drained(name string) {
	r.tell(func(m *lease.Machine, at time.Duration) { m.Drained(at, name) })
}

// Permit waits until the Lease of a shard says that a commit is sent and its gate is open,
// so that it may be. The error is a *lease.ClosedError, if that will not be, or the
// context's.
func (r *Runner) Permit(ctx context.Context, shard int, commit string) error {
	for first := true; ; first = false {
		changed, coming, err := r.advance(shard, commit)
		if !coming {
			return err
		}
		if first {
			r.poke()
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.done:
			return err
		}
	}
}

// advance asks a gate for a commit. If it does not permit it, it reports whether it
// may after a change.
func (r *Runner) advance(shard int, commit string) (changed <-chan struct{}, coming bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gate, at := r.machine.Gate(shard), now()
	if err = gate.Permit(commit); err == nil {
		err = gate.Open(at)
	}
	closed := (*lease.ClosedError)(nil)
	switch {
	case !errors.As(err, &closed):
		return nil, false, err
	case closed.Reason == lease.Position:
		return r.changed, r.machine.Advance(at, shard, commit), err
	}
	return r.changed, closed.Reason == lease.Lapsed, err
}

// Advance has the Lease of a shard that is held say that a commit is sent, though nothing is:
// whoever has the shard later must have folded it. It does not wait.
func (r *Runner) Advance(shard int, commit string) {
	if _, coming, _ := r.advance(shard, commit); coming {
		r.poke()
	}
}

// Reached reports whether whoever writes to the clusters of a shard has folded a commit: see
// lease.Machine.Reached.
func (r *Runner) Reached(shard int, commit string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Reached(shard, commit)
}

// Stop gives everything back, and waits until it is.
func (r *Runner) Stop(ctx context.Context) error {
	r.tell((*lease.Machine).Stop)
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run takes, renews and gives back, until Stop is done or the context ends: then
// nothing is given back.
func (r *Runner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		r.requests.Wait()
		close(r.done)
	}()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		out := r.step()
		for _, req := range out.Requests {
			r.requests.Go(func() { r.send(ctx, req) })
		}
		for _, n := range out.Notices {
			r.options.Notify(n)
		}
		if out.Done {
			return nil
		}

		timer.Reset(min(out.Wake-now(), time.Minute))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		case <-timer.C:
		}
	}
}

func (r *Runner) step() lease.Output {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := *r.machine.Step(now())
	out.Requests, out.Notices = slices.Clone(out.Requests), slices.Clone(out.Notices)
	close(r.changed)
	r.changed = make(chan struct{})
	return out
}

// tell tells the machine something, and has it stepped.
func (r *Runner) tell(event func(m *lease.Machine, at time.Duration)) {
	r.mu.Lock()
	event(r.machine, now())
	r.mu.Unlock()

	r.poke()
}

// poke has the machine stepped.
func (r *Runner) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

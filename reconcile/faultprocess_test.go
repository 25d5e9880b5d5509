// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing"
)

// process is a replica, or the only one.
type process struct {
	world   *faultyWorld
	pod     string
	state   string
	loop    *reconcile.Loop
	replica *sharing.Replica // nil for a single process
	alive   *life
	cut     atomic.Bool // from the API server of the Leases
	lags    atomic.Bool // folds nothing new
}

// life is of one process: when it is killed, nothing that it does reaches
// anybody any more.
type life struct {
	end     context.CancelFunc
	endLoop func() // and waits until it has
	pod     string
	over    chan struct{}
	ended   sync.WaitGroup // the loop, and what runs its Leases
}

// sharingRules are the timings of the Leases: they expire during a run.
var sharingRules = lease.DefaultRules().Scaled(0.03)

// run begins a process on the state directory.
func (p *process) run() {
	r := p.world
	r.t.Helper()
	l := &life{pod: p.pod, over: make(chan struct{})}
	options := reconcile.Options{
		Repo: r.repo.Dir, Ref: "main", Path: ".", StateDir: p.state, Interval: 10 * time.Millisecond,
		Watch: true, Relist: 2 * time.Second, Reexamine: 2 * time.Second, Backoff: dispatch.Backoff{Base: 5 * time.Millisecond, Max: 100 * time.Millisecond},
		Members: func(c *fleet.Cluster) (member.Member, error) {
			if p.replica != nil {
				return p.replica.Push(r.clusters[c.Name].config(l), c)
			}
			return push.New(r.clusters[c.Name].config(l), push.Options{})
		},
		Report: func(e reconcile.Event) { r.say(p.pod + ": " + e.String()) },
	}
	if r.hub != nil {
		p.replica = sharing.New(sharing.Options{
			Leases:     coordinationv1.NewForConfigOrDie(p.hubConfig(l)).Leases("default"),
			ConfigMaps: corev1.NewForConfigOrDie(p.hubConfig(l)).ConfigMaps("default"), Fleet: "team/acme", Pod: p.pod, Shards: 8, Rules: sharingRules,
			Changed: func() {}, Failed: func(err error) { r.say(p.pod + ": " + err.Error()) },
		})
		options.Shares = p.replica
		options.Turn = func(context.Context) (func(), error) {
			if p.lags.Load() {
				return nil, errChaos
			}
			return func() {}, nil
		}
	}
	loop, err := reconcile.Open(context.Background(), options)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	p.loop, p.alive = loop, l
	if p.replica != nil {
		p.replica.Attach(loop)
		l.ended.Go(func() { _ = p.replica.Run(ctx) })
	}
	rounds, endRounds := context.WithCancel(ctx)
	over := make(chan struct{})
	l.endLoop = func() { endRounds(); <-over }
	l.ended.Go(func() {
		defer close(over)
		_ = loop.Run(rounds) // what fails is reported, and tried again
	})
}

// standing is how far the process is: its shards, and its clusters that are not done.
func (p *process) standing() string {
	said := fmt.Sprintf("%s, %d rounds", p.pod, p.loop.Rounds())
	if p.replica != nil {
		_, owned := p.replica.Shards()
		said += fmt.Sprintf(", has %v", owned)
		for _, v := range p.replica.Views() {
			said += fmt.Sprintf("; %+v", v)
		}
	}
	for _, m := range p.loop.Status() {
		said += fmt.Sprintf("\n\t%+v", m)
	}
	return said + "\n"
}

// hubConfig reaches the API server of the Leases for as long as a process lives.
func (p *process) hubConfig(l *life) *rest.Config {
	config := rest.CopyConfig(p.world.hub.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			select {
			case <-l.over:
				return nil, errChaos
			default:
			}
			if p.cut.Load() {
				return nil, errChaos
			}
			return next.RoundTrip(req)
		})
	})
	return config
}

// kill ends the process: from this moment on none of its requests arrive.
func (p *process) kill() {
	if p.alive == nil {
		return
	}
	close(p.alive.over)
	p.alive.end()
	p.alive.ended.Wait()
	_ = p.loop.Close() // its requests fail, as those of a dead process; closed twice is closed
	p.alive = nil
}

// leave ends the process as SIGTERM does: it gives its Leases back, if it can.
func (p *process) leave() {
	if p.alive == nil {
		return
	}
	p.alive.endLoop()
	_ = p.loop.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.replica.Stop(ctx) // it may be cut off
	p.kill()
}

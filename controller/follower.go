// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/controller/webhook"
	"github.com/fairlead/fairlead/metrics"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing"
	"github.com/fairlead/fairlead/review"
	"github.com/fairlead/fairlead/source"
)

// follower follows one Fleet: it opens its loop and runs it until it is stopped.
type follower struct {
	name    types.NamespacedName
	dir     string
	members *members
	told    *metrics.Fleets
	log     logr.Logger
	tell    func() // that there is something new to report
	turn    func(context.Context) (func(), error)
	shares  shares
	opt     Options

	version version // what the settings were resolved from

	replica  atomic.Pointer[sharing.Replica] // nil without a loop, or if nothing is shared
	page     atomic.Pointer[chan struct{}]   // of its page, which draws what has changed
	reviewer atomic.Pointer[review.Reviewer] // nil without a loop, or if nobody wants one

	led    chan struct{} // that this replica may lead now, or not any more
	wake   chan struct{}
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	settings settings
	loop     *reconcile.Loop // nil until it is open
	// notReviewed is what has failed on the forge and was not announced.
	notReviewed string
	seen        observation
	shards      toldShards
	request     request
	due         time.Time // when the next round is to begin
	moved       time.Time // when there was news last
	waiting     time.Time // since when news wait to be announced
}

// observation is what a follower has seen last.
type observation struct {
	result reconcile.Result
	// count is how many there were.
	count int64
	// opened reports whether there is a result; err is why the loop cannot be opened.
	opened bool
	err    error
	news   news
	// handled is the last request to look that was fulfilled.
	handled string
	// branch is the one that is followed.
	branch string
	// tally is of the clusters of all replicas, where they share them; nil otherwise.
	tally  *tally
	shared bool // whether they do
}

// request is a request to look now, and how many rounds had begun when it came.
type request struct {
	token string
	after int64
}

// start follows a Fleet.
func (f *follower) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.ended, f.wake = cancel, make(chan struct{}), make(chan struct{}, 1)
	f.led = make(chan struct{}, 1)
	go func() {
		defer close(f.ended)
		f.run(ctx)
	}()
}

// stop ends the loop, and waits for the requests in flight.
func (f *follower) stop() {
	f.cancel()
	<-f.ended
}

// run opens the loop and runs it, again after each failure.
func (f *follower) run(ctx context.Context) {
	for {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}

		f.mu.Lock()
		f.loop, f.seen.err = nil, err
		f.seen.handled = f.request.token
		pause := jitter.JitteredIntervalDuration(f.settings.retry)
		f.due = time.Now().Add(pause)
		f.mu.Unlock()
		f.tell()

		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-time.After(pause):
		}
	}
}

// follow opens the loop and runs it.
func (f *follower) follow(ctx context.Context) error {
	f.mu.Lock()
	s := f.settings
	f.due = time.Now()
	f.mu.Unlock()
	if err := f.publishTo(s); err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}

	replica, leave := f.join(s)
	defer leave()
	opening, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	options := reconcile.Options{
		Repo: s.repo, Ref: s.branch, Path: s.path, Auth: s.auth, Verify: s.verify, StateDir: f.stateDir(s),
		Interval: s.interval, RoundTimeout: s.timeout, Watch: true,
		Members: f.members.connect, Report: f.report, Observe: f.observe,
		Wake: f.wake, Pause: f.pause, Turn: f.turn,
	}
	if replica != nil {
		options.Shares = replica
	}
	loop, err := reconcile.Open(opening, options)
	if err != nil {
		return err
	}

	f.mu.Lock()
	f.loop, f.seen.err, f.seen.branch = loop, nil, loop.Ref()
	f.mu.Unlock()
	if replica != nil {
		replica.Attach(loop)
	}
	endReview := f.reviewWhileLeading(ctx, loop, s)
	err = loop.Run(ctx)
	endReview()
	f.mu.Lock()
	f.loop = nil
	f.mu.Unlock()
	return errors.Join(err, loop.Close())
}

// stateDir is a directory for each place: of another branch nothing is kept.
func (f *follower) stateDir(s settings) string {
	return filepath.Join(f.dir, s.place.digest())
}

// publishTo opens the repository of the pull clusters.
func (f *follower) publishTo(s settings) error {
	if s.publish == "" {
		return nil
	}

	to, err := source.OpenBranches(s.publish, s.publishAuth)
	if err != nil {
		return err
	}
	to.Renew(func() (source.Auth, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.settings.publishAuth, nil
	})
	f.members.branches, f.members.prefix = reconcile.Publish(to), s.prefix
	return nil
}

// set changes the settings of the same place. New credentials are tried at once.
func (f *follower) set(s settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.settings
	f.settings = s
	if replica := f.replica.Load(); replica != nil {
		replica.Resize(s.shards)
	}
	if f.loop != nil {
		f.loop.SetAuth(s.auth)
		f.loop.SetVerify(s.verify)
	}
	if r := f.reviewer.Load(); r != nil {
		r.Set(s.reviews)
	}
	if !reflect.DeepEqual(was.auth, s.auth) || !reflect.DeepEqual(was.verify, s.verify) || was.artifact != s.artifact ||
		was.interval != s.interval || was.retry != s.retry { // the pause is another one
		f.lookNow()
	}
}

// hook returns where the forge reports to.
func (f *follower) hook() webhook.Hook {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.settings.hook
}

// ask asks for a look, and remembers by which token.
func (f *follower) ask(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.request.token == token {
		return
	}

	f.request = request{token: token}
	if f.loop != nil {
		f.request.after = f.loop.Rounds()
	}
	f.lookNow()
}

// lookNow ends a pause, and looks at pull requests as well.
func (f *follower) lookNow() {
	if r := f.reviewer.Load(); r != nil {
		r.LookNow()
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// secretChanged has the members connected to again whose credentials a Secret has.
func (f *follower) secretChanged(name string) {
	clusters, all := f.members.changed(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop == nil || len(clusters) == 0 && !all {
		return
	}

	f.loop.Reconnect(clusters...)
	f.lookNow()
}

// observe is called by the loop.
func (f *follower) observe(r reconcile.Result) {
	f.told.Observe(metrics.Name{Namespace: f.name.Namespace, Fleet: f.name.Name}, &r)
	leads := f.leads()
	f.mu.Lock()
	f.seen.result, f.seen.opened = r, true
	f.seen.count++
	if f.seen.news.add(&r, leads) {
		f.moved = time.Now()
		if f.waiting.IsZero() {
			f.waiting = f.moved
		}
	}
	if r.Round > f.request.after {
		f.seen.handled = f.request.token
	}
	if to := f.reviewer.Load(); to != nil {
		of := newView(&r, f.seen.branch)
		if f.seen.tally != nil {
			of.tally = *f.seen.tally
		}
		to.Observe(&r, of.rollout())
	}
	f.mu.Unlock()
	f.tell()
	if changed := f.page.Load(); changed != nil {
		select {
		case *changed <- struct{}{}:
		default:
		}
	}
}

// report logs what the loop says. What happens to single objects is for --log-level debug.
func (f *follower) report(e reconcile.Event) {
	line := e.String()
	switch e.Severity {
	case reconcile.Warning:
		f.log.Error(nil, line)
	case reconcile.Info:
		f.log.Info(line)
	default:
		f.log.V(1).Info(line)
	}
}

// pause returns how long to wait for the next look.
func (f *follower) pause(err error) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	pause := f.settings.interval
	if err != nil {
		pause = f.settings.retry
	}
	pause = jitter.JitteredIntervalDuration(pause)
	f.due = time.Now().Add(pause)
	return pause
}

// opened returns the loop, nil while there is none, and its settings.
func (f *follower) opened() (*reconcile.Loop, settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop, f.settings
}

// last returns what was seen last.
func (f *follower) last() observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	seen.shared = f.shares.leases != nil
	return seen
}

// takeNews returns what has happened, if all has been quiet for a while or it has waited
// long enough; otherwise it returns when that will be.
func (f *follower) takeNews(steady time.Duration) (n news, branch string, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.seen.news.of) == 0 {
		return news{}, "", 0
	}
	now := time.Now()
	if quiet := now.Sub(f.moved); quiet < steady && now.Sub(f.waiting) < patience {
		return news{}, "", steady - quiet
	}

	n, f.seen.news, f.waiting = f.seen.news, news{}, time.Time{}
	return n, f.seen.branch, 0
}

// patience is how long news wait for more of it.
const patience = 10 * time.Second

// isStuck reports whether a round lasts longer than it may.
func (f *follower) isStuck(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.due.IsZero() && now.Sub(f.due) > 3*f.settings.timeout+time.Minute
}

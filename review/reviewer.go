// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// Settings are what may change while a Reviewer works.
type Settings struct {
	// Target is the repository on the forge, without a pull request.
	Target forge.Target
	Token  string // without one nothing is done
	// Forks plans pull requests of forks as well.
	Forks    bool
	Interval time.Duration // between two looks at the open pull requests
}

// Options are what a Reviewer is made of. Every field but Scope and Settle is required.
type Options struct {
	Settings
	Fleet  string // its name, in the name of a commit's status
	Scope  string // in the marker of the comment and the name of its status, see forge.Options
	Branch string
	Path   string // of the fleet inside the repository
	Dir    string // for what is fetched; what is there is removed
	Loop   Loop
	// Turn is asked before anything is planned; done is called afterwards.
	Turn func(context.Context) (done func(), err error)
	// Report is told what has failed, once until something else fails, and what was
	// written. It is called from the goroutine of Run.
	Report func(Note)
	// Settle is how long clusters may take to answer before a plan is made from what they
	// have. Default 10 s.
	Settle time.Duration
	// Deadline is how long one plan may take. Default 2 min.
	Deadline time.Duration
}

// Loop is what is asked of a reconcile.Loop.
type Loop interface {
	Repo() *source.Repo
	Acknowledged(cluster string) map[object.ID]object.Digest
}

// Note is what a Reviewer has to say. It is untrusted text.
type Note struct {
	Text string
	Err  error // nil if nothing has failed
}

// Reviewer plans the open pull requests against a branch, and shows how far its commits are.
type Reviewer struct {
	opt  Options
	kick chan struct{}

	mu       sync.Mutex
	settings Settings
	seen     *sight // nil before the first Result
	earlier  []propagate.State
	asked    bool // somebody wants a look now

	// The rest belongs to the goroutine of Run.
	known     map[int64]key // what was shown of each open pull request
	next      time.Time     // when the interval is over
	base      string        // of the last look
	replan    time.Time     // until then only what was pushed to is planned
	owed      bool          // something else is to be planned then
	pulls     *source.Repo
	unended   <-chan struct{} // a plan that has outlived its deadline
	shown     shown
	told      map[string]string // the last note of each kind
	most      int
	mostBytes int64
}

// sight is a Result, and since when its state is the last one.
type sight struct {
	state   propagate.State
	members []reconcile.MemberStatus
	since   time.Time
	rollout Rollout
}

// New returns a Reviewer. Run has it work.
func New(opt Options) *Reviewer {
	if opt.Settle == 0 {
		opt.Settle = 10 * time.Second
	}
	if opt.Deadline == 0 {
		opt.Deadline = 2 * time.Minute
	}
	return &Reviewer{opt: opt, settings: opt.Settings, kick: make(chan struct{}, 1), known: map[int64]key{}, told: map[string]string{}, most: mostPulls, mostBytes: mostFetched}
}

// Observe takes in a Result, and how far its head is. It does not wait for anything.
func (r *Reviewer) Observe(result *reconcile.Result, rollout Rollout) {
	r.mu.Lock()
	next := &sight{state: result.State, members: result.Members, since: time.Now(), rollout: rollout}
	if was := r.seen; was != nil && was.state.Commit == next.state.Commit {
		next.since = was.since
	} else if was != nil {
		r.earlier = append(r.earlier, was.state)
		r.earlier = r.earlier[max(0, len(r.earlier)-mostEarlier):]
	}
	r.seen = next
	r.mu.Unlock()
	r.wake()
}

// Set changes the settings, from the next look on.
func (r *Reviewer) Set(s Settings) {
	r.mu.Lock()
	if r.settings != s {
		r.settings, r.asked = s, true
	}
	r.mu.Unlock()
	r.wake()
}

// LookNow looks at the open pull requests before the interval is over.
func (r *Reviewer) LookNow() {
	r.mu.Lock()
	r.asked = true
	r.mu.Unlock()
	r.wake()
}

func (r *Reviewer) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// Run works until ctx is done.
func (r *Reviewer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := r.work(ctx)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.kick:
		}
		timer.Stop()
	}
}

// work does what is due, and returns when there may be more.
func (r *Reviewer) work(ctx context.Context) time.Duration {
	r.mu.Lock()
	seen, settings, asked := r.seen, r.settings, r.asked
	earlier := r.earlier[:len(r.earlier):len(r.earlier)]
	r.mu.Unlock()
	if seen == nil || settings.Token == "" {
		return settings.Interval
	}

	again := r.roll(ctx, settings, seen.rollout)
	moved := r.base != "" && r.base != seen.state.Commit
	due := time.Until(r.next)
	if r.owed {
		due = min(due, time.Until(r.replan))
	}
	switch {
	case seen.state.Snapshot == nil:
		return again // there is nothing to plan on yet
	case !asked && !moved && due > 0:
		return min(again, due)
	}
	if left := r.opt.Settle - time.Since(seen.since); left > 0 && isPending(seen.members) {
		return min(again, left)
	}

	r.mu.Lock()
	r.asked = false
	r.mu.Unlock()
	// A thousand Fleets that begin together do not go on so.
	pause := settings.Interval*9/10 + rand.N(settings.Interval/5+1)
	r.next, r.base = time.Now().Add(pause), seen.state.Commit
	r.failed("look", r.look(ctx, &look{Settings: settings, sight: seen, runs: running(r.opt.Loop, seen, earlier)}))
	if r.owed {
		pause = min(pause, max(time.Until(r.replan), 0))
	}
	return min(again, pause)
}

// isPending reports whether clusters are about to answer.
func isPending(members []reconcile.MemberStatus) bool {
	for _, m := range members {
		if m.Contacted && m.Err == nil && m.Pending > 0 {
			return true
		}
	}
	return false
}

// failed tells of a failure once, until there is another one of its kind or none.
func (r *Reviewer) failed(kind string, err error) {
	if err == nil {
		delete(r.told, kind)
		return
	}
	r.once(kind, Note{Text: err.Error(), Err: err})
}

func (r *Reviewer) once(kind string, n Note) {
	if r.told[kind] != n.Text {
		r.opt.Report(n)
	}
	r.told[kind] = n.Text
}

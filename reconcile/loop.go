// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile/checkpoint"
	"github.com/fairlead/fairlead/source"
)

// Options of a Loop. Repo, Members and Report are required.
type Options struct {
	// Repo is a directory or a URL, Ref a branch ("" is the default one), and Path the
	// fleet's directory in the repository.
	Repo, Ref, Path string
	Auth            source.Auth
	// Verify is which commits must be signed. By default none.
	Verify Verify
	// StateDir has the checkpoint, and the mirror of a remote repository.
	StateDir string
	Interval time.Duration // between two fetches of the repository; default 30 s
	// Reexamine is how often permanent failures are retried: a foreign object may be
	// gone, or a permission granted. Acknowledged objects cost no request. Default
	// 10 min.
	Reexamine time.Duration
	Timeout   time.Duration // of Once; default 2 min
	// Watch watches the members and reverts drift. Relist is how often everything is
	// listed as well, default 10 min.
	Watch  bool
	Relist time.Duration
	// Look lists every member once and reverts drift, without a watch.
	Look bool
	// Backoff is the backoff between attempts at a member. The zero value works.
	Backoff dispatch.Backoff
	// Steady is how long a member must have been ready, or not ready, before the gate
	// Failover acts on it. Default 30 s.
	Steady time.Duration
	DryRun bool // send nothing to any member
	// Members connects to a cluster. It is called once for every Cluster document, and
	// again when that changes, or when the cluster rejects the credentials.
	Members func(*fleet.Cluster) (member.Member, error)
	// Shares is which of the clusters this process reconciles; nil is all of them.
	Shares Shares
	// Report is called with every event, from many goroutines.
	Report func(Event)
	// Observe is called by Run, in its goroutine, with the Result of every round, and again
	// when members have answered since. nil costs nothing.
	Observe func(Result)
	// Wake ends the pause of Run between two rounds. nil: only the time does.
	Wake <-chan struct{}
	// Pause is how long Run pauses after a round that ended with err; nil is Interval.
	Pause func(err error) time.Duration
	// RoundTimeout is how long one fetch and fold may take; a longer fold goes on in the
	// next round. 0 is no limit.
	RoundTimeout time.Duration
	// Turn is asked before commits are folded, so that few loops of a process fold at a
	// time; done is called afterwards. nil is no limit.
	Turn func(context.Context) (done func(), err error)
	// Progress shows how far a long fold is; nil shows nothing.
	Progress *history.Progress
	Clock    Clock
	// At is called between the steps of the loop with their names. Tests kill the
	// process there.
	At func(step string)
}

// ErrNotConverged is returned by Once if a member does not have what git wants. The
// details were reported as events.
var ErrNotConverged = errors.New("not every member is where git wants it")

// FetchError is why the repository could not be read.
type FetchError struct{ Err error }

func (e *FetchError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// drainTime is how long Close waits for the requests in flight.
const drainTime = 10 * time.Second

// Loop reconciles the members of a fleet with git.
//
// It has more than 20 fields because a round goes through all of them in one goroutine:
// what it was opened with, how far it is in git and on the members, and what it has told.
type Loop struct {
	opt        Options
	origin     checkpoint.Origin
	repo       *source.Repo
	history    *history.History
	checkpoint *checkpoint.Store
	dispatcher *dispatch.Dispatcher

	fetched    time.Time // when the repository was last read, by Clock.Now; zero if never
	state      propagate.State
	gone       *checkpoint.GoneError       // the state is what remains of one; nil otherwise
	skipping   string                      // the head at which a commit was skipped that had been folded
	synced     propagate.State             // the state of the last Sync
	examined   time.Duration               // when everything was last examined, by Clock.Elapsed
	resolved   map[string]time.Duration    // when Members was last called for a cluster, by Clock.Elapsed
	resolvedOf ordered.Map[*fleet.Cluster] // the clusters that were connected to last,
	resolvedAt int                         // and how many there had been of Shares.Moves
	moment     func() int64                // the time of an observation, in seconds since 1970
	observing  <-chan observation          // the observation under way; nil without one

	roster
	shared
	sequence

	waited map[string]bool // what waited for other clusters in the last round, by outcomeKey
	counts *counter        // of works; nil until a Result is asked for
	moved  chan struct{}   // members have answered; for Observe
	holds  *policyHolds    // nil until a Result is asked for
	told   propagate.State // of the last Result
	// renewed is set when members were connected to again on request, and what was
	// refused for good is to be tried again.
	renewed bool
	folds   time.Duration // spent on folding since the last Result
	rounds  atomic.Int64  // that have begun
	verify  atomic.Pointer[Verify]

	telling  sync.Mutex
	reported map[string]string    // the last report, by what it is about
	silent   map[string]time.Time // since when a cluster does not answer
	acts     []Act                // since the last Result
	tally    tally                // since the last commit was told
	at       string               // the accepted commit, for acts
	events   *eventlog.Writer     // nil without one
}

// Open opens the repository and the checkpoint, and starts the dispatcher. Call Close
// when done.
func Open(ctx context.Context, opt Options) (*Loop, error) {
	if opt.Interval == 0 {
		opt.Interval = 30 * time.Second
	}
	if opt.Reexamine == 0 {
		opt.Reexamine = 10 * time.Minute
	}
	if opt.Timeout == 0 {
		opt.Timeout = 2 * time.Minute
	}
	if opt.Steady == 0 {
		opt.Steady = 30 * time.Second
	}
	opt.Clock = opt.Clock.withDefaults()
	if opt.At == nil {
		opt.At = func(string) {}
	}
	if opt.Pause == nil {
		opt.Pause = func(error) time.Duration { return opt.Interval }
	}
	l := &Loop{opt: opt, moved: make(chan struct{}, 1), examined: opt.Clock.Elapsed(), resolved: map[string]time.Duration{}, roster: newRoster(), shared: shared{givenUp: map[string]bool{}}, reported: map[string]string{}, silent: map[string]time.Time{}}
	l.SetVerify(opt.Verify)
	var err error
	l.repo, err = history.OpenRepo(ctx, opt.Repo, opt.StateDir, opt.Auth)
	switch {
	case l.repo == nil:
		return nil, err
	case err != nil:
		// The remote does not answer, but the members still get what was fetched last.
		l.once("round", &FetchError{l.stale(err)})
	default:
		l.fetched = opt.Clock.Now()
	}

	if l.opt.Ref == "" {
		if l.opt.Ref, err = l.repo.DefaultBranch(); err != nil {
			return nil, err
		}
	}
	l.origin = checkpoint.Origin{Repo: source.Redact(opt.Repo), Ref: l.opt.Ref, Path: opt.Path}
	l.history = l.newHistory()
	var damage error
	if l.checkpoint, damage, err = checkpoint.Open(opt.StateDir); err != nil {
		return nil, err
	}

	if damage != nil {
		l.damaged(damage)
	}
	if err := l.load(); err != nil {
		l.checkpoint.Close()
		return nil, err
	}

	l.moment = opt.Clock.moments(&l.state)
	l.dispatcher = dispatch.New(l.checkpoint.Inventory(), dispatch.Options{Log: l.dispatched, Watch: opt.Watch && !opt.DryRun, Look: opt.Look && !opt.DryRun, Relist: opt.Relist, Backoff: opt.Backoff, Elsewhere: l.askElsewhere(), Knows: l.knowsCommits(), Claim: l.claim()})
	l.openRecord()
	return l, nil
}

// load restores the state from the checkpoint. If that fails, the checkpoint is
// discarded and the history folded again: it is a cache.
func (l *Loop) load() error {
	state, ok, err := l.checkpoint.Load(l.origin, l.history)
	var foreign *checkpoint.ForeignError
	var gone *checkpoint.GoneError
	l.gone = nil
	switch {
	case errors.As(err, &foreign):
		return err
	case errors.As(err, &gone):
		l.state, l.gone = state, gone
	case errors.Is(err, checkpoint.ErrDamaged):
		l.damaged(err)
		l.history = l.newHistory()
		return l.checkpoint.PutAside()
	case err != nil:
		l.warn(fmt.Errorf("%w: folding the history again", err))
		l.history = l.newHistory()
		return l.checkpoint.Forget()
	case ok:
		l.state = state
	}

	return nil
}

func (l *Loop) damaged(err error) {
	l.warn(fmt.Errorf("%w; it is put aside as checkpoint.db.damaged: folding the history again, and reading the marks on the members", err))
}

// Renders returns how many units were rendered since the loop was opened.
func (l *Loop) Renders() int { return l.history.Renders }

// Close starts no new requests, waits for those in flight, and closes the checkpoint.
func (l *Loop) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	defer l.events.Close()
	return errors.Join(l.dispatcher.Close(ctx), l.checkpoint.Close())
}

// Run runs rounds until ctx is done. Failures are reported, and retried in the next
// round.
func (l *Loop) Run(ctx context.Context) error {
	var settling settling
	defer settling.end()

	l.begin()
	for {
		before, synced := l.state.Commit, l.synced
		err := l.round(ctx, false)
		if ctx.Err() == nil {
			l.once("round", err)
		}
		l.outcomes()
		l.observed(err)
		if l.state.Accepted != synced.Accepted {
			after := l.state
			settling.begin(ctx, func(ctx context.Context) { l.settle(ctx, synced, after) })
		}
		if l.state.Commit == before {
			releaseMemory()
		}
		if !l.pause(ctx, err) {
			return nil
		}
	}
}

// quiet is how long members may go on to answer before that is observed.
const quiet = 200 * time.Millisecond

// pause waits until the next round is due, and reports whether there is one. Meanwhile
// what members answer is observed.
func (l *Loop) pause(ctx context.Context, failed error) bool {
	due := time.NewTimer(l.opt.Pause(failed))
	defer due.Stop()
	var later <-chan time.Time // when to observe what has moved
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-l.opt.Wake:
			return true
		case <-l.look:
			return true
		case <-l.moved:
			if later == nil {
				later = time.After(quiet)
			}
		case <-later:
			later = nil
			l.observed(failed)
		}
	}
}

// observed passes a Result on.
func (l *Loop) observed(err error) {
	if l.opt.Observe == nil {
		l.takeActs() // nobody asks for them
		return
	}
	r := l.result()
	r.Err = err
	l.opt.Observe(r)
}

// hasMoved notes that members have answered.
func (l *Loop) hasMoved() {
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

// Once runs one round and waits until every member has what it can have. It returns
// ErrNotConverged if something is left.
func (l *Loop) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.opt.Timeout)
	defer cancel()
	err := l.round(ctx, true)
	owing := len(l.unreached) > 0 || l.state.Refusal != nil
	for _, o := range l.dispatcher.Wait(ctx) {
		l.outcome(o)
		// A member that does not answer but has everything is no failure.
		owing = owing || o.Err != nil && (o.Final || !o.Settled)
	}

	if err != nil {
		return err
	}
	if owing {
		return ErrNotConverged
	}

	return nil
}

// Round runs the loop once: it fetches, folds new commits, and dispatches what changed
// to the members. It does not wait for their answers. The Result is valid with an
// error, too: the members are still reconciled with what was folded before.
func (l *Loop) Round(ctx context.Context) (Result, error) {
	err := l.round(ctx, false)
	return l.result(), err
}

// round is a Round. With wait it waits for the observation of the members.
func (l *Loop) round(ctx context.Context, wait bool) error {
	l.rounds.Add(1)
	reading, cancel := ctx, func() {}
	if l.opt.RoundTimeout > 0 {
		reading, cancel = context.WithTimeout(ctx, l.opt.RoundTimeout)
	}
	defer cancel()
	folded, fetched := func(*Line) {}, func() {}
	if l.opt.Shares != nil {
		folded, fetched = l.opt.Shares.Fetching(), l.beginFetch()
		if err := l.dispatch(); err != nil { // what was taken over does not wait for the repository
			return err
		}
	}
	if err := l.repo.Fetch(reading); err != nil {
		// The members are still reconciled with what was fetched last.
		return errors.Join(&FetchError{l.stale(err)}, l.foldLogged(reading), l.act(ctx, wait))
	}

	l.fetched = l.opt.Clock.Now()
	l.opt.At("fetched")
	head, err := l.repo.Resolve(l.opt.Ref)
	if err != nil {
		return &FetchError{err}
	}
	fetched()
	l.notePending(head)

	if l.gone != nil && l.repo.Has(l.gone.Commit) {
		// It was missing in a damaged mirror, which is mended.
		if err := l.load(); err != nil {
			return err
		}
	}
	unverified, err := l.follow(reading, head)
	l.notePending(head)
	if err != nil {
		return errors.Join(unverified, err)
	}
	l.refusal()
	l.frozen()
	l.tellFolded = folded
	l.hasFolded()
	return errors.Join(unverified, l.act(ctx, wait))
}

// follow folds up to head, or as far as commits are verified; then unverified says why not
// up to head.
func (l *Loop) follow(ctx context.Context, head string) (unverified, err error) {
	if l.opt.Shares == nil && head == l.state.Commit {
		return nil, nil
	}
	to := head
	if head != l.state.Commit {
		to, unverified = l.verified(head)
	}
	switch {
	case to == "":
		return unverified, nil
	case l.opt.Shares != nil:
		return unverified, l.foldShared(ctx, to)
	case to == l.state.Commit:
		return unverified, nil
	}
	return unverified, l.foldInTurn(ctx, to)
}

// Ref returns the branch that is followed.
func (l *Loop) Ref() string { return l.opt.Ref }

// Repo returns the repository that is read. Of a remote one it is the mirror.
func (l *Loop) Repo() *source.Repo { return l.repo }

// Acknowledged returns the digests of what a cluster has acknowledged last, by object; nil
// if nothing is known of it. It may be called at any time.
func (l *Loop) Acknowledged(cluster string) map[object.ID]object.Digest {
	return l.dispatcher.Digests(cluster)
}

// Rounds returns how many rounds have begun. It may be called at any time.
func (l *Loop) Rounds() int64 { return l.rounds.Load() }

// stale says of a repository that cannot be read since when that is so. The members
// go on as they were, so nothing else would show it.
func (l *Loop) stale(err error) error {
	if l.fetched.IsZero() {
		return fmt.Errorf("%w; the repository was not read since this process started", err)
	}
	return fmt.Errorf("%w; the repository was not read since %s", err, l.fetched.UTC().Format(time.RFC3339))
}

// act dispatches the state to the members, and takes in what is observed of them.
func (l *Loop) act(ctx context.Context, wait bool) error {
	if err := l.dispatch(); err != nil {
		return err
	}
	if err := l.observe(ctx, wait); err != nil {
		return err
	}
	return l.dispatch()
}

func (l *Loop) newHistory() *history.History {
	h := history.New(l.repo, l.opt.Path)
	h.Progress = l.opt.Progress
	if l.opt.Shares != nil {
		h.Observe = l.logged
	}
	return h
}

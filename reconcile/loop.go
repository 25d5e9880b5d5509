// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/source"
)

// Options of a Loop. Repo, Members and Report are required.
type Options struct {
	// Repo is a directory or a URL; Ref a branch, "" for the default one; Path
	// the fleet's directory in it.
	Repo, Ref, Path string
	Auth            source.Auth
	// StateDir holds the checkpoint, and the mirror of a repository that is
	// not local.
	StateDir string
	Interval time.Duration // between two looks at the repository; default 30 s
	// Reexamine is how often what waiting could not mend is tried again: a
	// foreign object may be gone, or a permission granted. It costs no request
	// for what is acknowledged. Default 10 min.
	Reexamine time.Duration
	Timeout   time.Duration // of Once; default 2 min
	// Watch has the members watched, and what is changed there by hand brought
	// back; Sweep is how often everything is looked at besides, default 10 min.
	Watch bool
	Sweep time.Duration
	// Look has every member looked at once, and what was changed there by hand
	// brought back, without a watch.
	Look bool
	// Backoff is between attempts at a member. The zero value works.
	Backoff dispatch.Backoff
	// Steady is how long a member must have been ready, or not, before that is
	// believed under the gate Failover. Default 30 s.
	Steady time.Duration
	DryRun bool // send nothing to any member
	// Members tells how to reach a cluster. It is asked once for every
	// Cluster document, and again when that changes, or when the cluster does
	// not accept the credentials.
	Members func(*propagate.Cluster) (dispatch.Member, error)
	// Report is told what happens, from many goroutines.
	Report func(Line)
	// Now is the time of day; default time.Now.
	Now func() time.Time
	// Elapsed is how much time has passed since some moment, whatever becomes of
	// the time of day; the default is of the machine's monotonic clock.
	Elapsed func() time.Duration
	// At is called between the steps of the loop, by their name. Tests end
	// the process there.
	At func(step string)
}

// Line is one thing that happened.
type Line struct {
	Level Level
	// Cluster and Object are empty when the line is about neither.
	Cluster string
	Object  propagate.ID
	Text    string
	// What and Note are what Text says, for the record of events, and Commit is
	// set when the line is about one; all may be empty.
	What   What
	Note   string
	Commit string
}

// Level says who wants to read a line.
type Level int

// What an operator must know, what is good to know, and each single act.
const (
	Warn Level = iota
	Info
	Act
)

// ErrOwing is returned by Once when something is not as git wants it. What it
// is was reported line by line.
var ErrOwing = errors.New("not every member is where git wants it")

// drainTime is how long a loop that is told to end waits for its requests.
const drainTime = 10 * time.Second

// Loop brings members to what git says.
type Loop struct {
	opt        Options
	origin     Origin
	repo       *source.Repo
	history    *History
	checkpoint *Checkpoint
	dispatcher *dispatch.Dispatcher

	state      propagate.State
	dispatched propagate.State // what dispatch was told last
	examined   time.Time       // when dispatch was told to look at everything
	members    map[string]*propagate.Cluster
	met        map[string]time.Time // when Members was asked for a cluster last
	unreached  map[string]error     // clusters that Members has no way to reach
	ready      map[string]readiness
	moments    moments
	looking    <-chan sighting // what a look under way will find; nil without one

	telling  sync.Mutex
	reported map[string]string // what was told last, by what it is about
	events   *eventLog         // nil without one
}

// Open opens the repository and the checkpoint. Close ends what it began.
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
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Elapsed == nil {
		began := opt.Now()
		opt.Elapsed = func() time.Duration { return opt.Now().Sub(began) }
	}
	if opt.At == nil {
		opt.At = func(string) {}
	}
	l := &Loop{opt: opt, examined: time.Now(), members: map[string]*propagate.Cluster{}, met: map[string]time.Time{}, unreached: map[string]error{}, ready: map[string]readiness{}, reported: map[string]string{}}
	var err error
	l.repo, err = OpenRepo(ctx, opt.Repo, opt.StateDir, opt.Auth)
	switch {
	case l.repo == nil:
		return nil, err
	case err != nil:
		// A server that is away is no reason to stand still: the members are
		// owed what was fetched last.
		l.once("round", err)
	}
	if l.opt.Ref == "" {
		if l.opt.Ref, err = l.repo.DefaultBranch(); err != nil {
			return nil, err
		}
	}
	l.origin = Origin{opt.Repo, l.opt.Ref, opt.Path}
	l.history = NewHistory(l.repo, opt.Path)
	var damage error
	if l.checkpoint, damage, err = OpenCheckpoint(opt.StateDir); err != nil {
		return nil, err
	}
	if damage != nil {
		l.damaged(damage)
	}
	if err := l.load(); err != nil {
		l.checkpoint.Close()
		return nil, err
	}
	l.moments = newMoments(opt.Now(), opt.Elapsed, &l.state)
	l.dispatcher = dispatch.New(l.checkpoint.Inventory(), dispatch.Options{Log: l.acted, Watch: opt.Watch && !opt.DryRun, Look: opt.Look && !opt.DryRun, Sweep: opt.Sweep, Backoff: opt.Backoff})
	l.keepEvents()
	return l, nil
}

// load takes the state from the checkpoint. One that cannot be used is put
// aside, and the history is folded again: it is a cache.
func (l *Loop) load() error {
	state, ok, err := l.checkpoint.Load(l.origin, l.history)
	var foreign *ForeignCheckpoint
	switch {
	case errors.As(err, &foreign):
		return err
	case errors.Is(err, errDamaged):
		l.damaged(err)
		l.history = NewHistory(l.repo, l.opt.Path)
		return l.checkpoint.putAside()
	case err != nil:
		l.report(Warn, "%v: folding the history again", err)
		l.history = NewHistory(l.repo, l.opt.Path)
		return l.checkpoint.Forget()
	case ok:
		l.state = state
	}
	return nil
}

func (l *Loop) damaged(err error) {
	l.report(Warn, "%v; it is put aside as checkpoint.db.damaged: folding the history again, and reading what the members bear", err)
}

// Renders is how many units were rendered since the loop was opened.
func (l *Loop) Renders() int { return l.history.Renders }

// Close drains: it ends the requests in flight and starts no new ones.
func (l *Loop) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	defer l.events.close()
	return errors.Join(l.dispatcher.Close(ctx), l.checkpoint.Close())
}

// Run goes round until ctx ends. What fails is reported, and tried again in
// the next round.
func (l *Loop) Run(ctx context.Context) error {
	for {
		before := l.state.Commit
		if err := l.Round(ctx); ctx.Err() == nil {
			l.once("round", err)
		}
		l.outcomes()
		if l.state.Commit == before {
			giveBack()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(l.opt.Interval):
		}
	}
}

// Once goes round once and waits until every member has what it can have. It
// returns ErrOwing when something is left.
func (l *Loop) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.opt.Timeout)
	defer cancel()
	err := l.round(ctx, true)
	owing := len(l.unreached) > 0 || l.state.Refusal != nil
	for _, o := range l.dispatcher.Wait(ctx) {
		l.outcome(o)
		// One that does not answer and has all that it should have owes nothing.
		owing = owing || o.Err != nil && (o.Final || !o.Settled)
	}
	if err != nil {
		return err
	}
	if owing {
		return ErrOwing
	}
	return nil
}

// Round is one turn of the loop.
func (l *Loop) Round(ctx context.Context) error { return l.round(ctx, false) }

// round is a Round, which waits for what it sees of the members or does not.
func (l *Loop) round(ctx context.Context, wait bool) error {
	if err := l.repo.Fetch(ctx); err != nil {
		// The members stay where the last fetch put them, and are brought there.
		return errors.Join(err, l.act(ctx, wait))
	}
	l.opt.At("fetched")
	head, err := l.repo.Resolve(l.opt.Ref)
	if err != nil {
		return err
	}
	if head != l.state.Commit {
		if err := l.fold(ctx, head); err != nil {
			return err
		}
	}
	l.refusal()
	l.frozen()
	return l.act(ctx, wait)
}

// act brings the members to the state, and the state to what is seen of them.
func (l *Loop) act(ctx context.Context, wait bool) error {
	if err := l.dispatch(); err != nil {
		return err
	}
	if err := l.observe(ctx, wait); err != nil {
		return err
	}
	return l.dispatch()
}

// replayBatch is how many commits of a long history share a transaction.
const replayBatch = 64

// fold brings the state to head, and keeps it commit by commit. When ctx ends
// it stops after the one that it is at, and the next run goes on from there.
func (l *Loop) fold(ctx context.Context, head string) error {
	commits, err := l.history.Commits(l.state.Commit, head)
	if errors.Is(err, source.ErrNotAncestor) {
		return l.rewritten(head)
	}
	if err != nil {
		return err
	}
	left := len(commits)
	_, err = l.history.Fold(l.state, commits, func(c *source.Commit, next propagate.State) error {
		l.opt.At("folded")
		l.state = next
		left--
		if left > 0 && ctx.Err() != nil {
			ended := fmt.Errorf("%d of %s are not folded yet, the next run goes on after %s: %w", left, plural(len(commits), "commit"), short(c.Hash), ctx.Err())
			return errors.Join(ended, l.save())
		}
		if left > 0 && left%replayBatch != 0 && len(commits) > replayBatch {
			return nil
		}
		return l.save()
	})
	if err != nil {
		return err
	}
	l.events.at(l.state.Accepted)
	l.report(Info, "folded %s to %s %q: %s, %s", plural(len(commits), "commit"), short(head), subject(commits),
		plural(l.state.Bindings.Len(), "binding"), plural(l.state.Works, "work"))
	return nil
}

func subject(commits []*source.Commit) string {
	if len(commits) == 0 {
		return ""
	}
	return commits[len(commits)-1].Subject
}

func (l *Loop) save() error {
	if l.opt.DryRun {
		return nil // a commit that was only looked at may still be taken back
	}
	if err := l.checkpoint.Save(l.origin, l.state); err != nil {
		return err
	}
	l.opt.At("saved")
	return nil
}

// rewritten refuses a branch that does not continue what was folded, until a
// commit on it says that it may (fold rule 5).
func (l *Loop) rewritten(head string) error {
	commits, err := l.history.Commits("", head)
	if err != nil {
		return err
	}
	var all []source.Trailer
	for _, c := range commits {
		all = append(all, c.Trailers...)
	}
	if !slices.Contains(all, source.Trailer{Key: propagate.TrailerAllowRewrite, Value: l.state.Commit}) {
		return fmt.Errorf("branch %s was rewritten: its history up to %s does not hold %s, the last commit that was folded; the fleet stays as it is. If that is meant, add to a commit message on the branch: %s: %s",
			l.opt.Ref, short(head), short(l.state.Commit), propagate.TrailerAllowRewrite, l.state.Commit)
	}
	line, err := l.history.Fold(propagate.State{}, commits, nil)
	if err != nil {
		return err
	}
	l.state = propagate.Rewrite(l.state, line, propagate.Commit{Hash: head, Trailers: convert(all)})
	l.report(Info, "folded the rewritten branch to %s", short(head))
	return l.save()
}

// dispatch tells the dispatcher what changed since it was told last.
func (l *Loop) dispatch() error {
	snapshot := l.state.Snapshot
	if snapshot == nil {
		return nil
	}
	met := l.meet(snapshot)
	var changed map[string][]propagate.ID
	if l.dispatched.Snapshot != nil { // otherwise every member is new, and has every key looked at
		changed = changedKeys(&l.dispatched, &l.state)
	}
	all := time.Since(l.examined) >= l.opt.Reexamine
	if len(changed) == 0 && !met && !all && l.dispatched.Accepted == l.state.Accepted {
		return nil
	}
	state := l.state
	level := newLevel(&state)
	level.source = sync.OnceValue(func() dispatch.Source { return l.source(state.Accepted) })
	if err := l.dispatcher.Sync(level, changed, dispatch.SyncOptions{All: all, OnlyKnown: state.Refusal != nil}); err != nil {
		return err
	}
	l.opt.At("synced")
	if all {
		l.examined = time.Now()
	}
	l.dispatched = state
	return nil
}

// source is a commit as dispatch tells of it. One that cannot be read has its
// hash.
func (l *Loop) source(commit string) dispatch.Source {
	c, err := l.repo.Commit(commit)
	if err != nil {
		return dispatch.Source{Commit: commit}
	}
	return dispatch.Source{Commit: commit, Subject: c.Subject, When: c.When}
}

// meet finds the members of the clusters that are new or changed, and lets go
// of those that left. A cluster that cannot be reached keeps no other waiting.
func (l *Loop) meet(snapshot *propagate.Snapshot) (met bool) {
	refusing := l.refusing()
	for name, c := range snapshot.Clusters.All() {
		if known := l.members[name]; known != nil && l.unreached[name] == nil && !refusing[name] && reflect.DeepEqual(known.Spec, c.Spec) {
			continue
		}
		l.met[name] = time.Now()
		m, err := l.opt.Members(c)
		if err != nil {
			l.unreached[name] = err
			l.once(name, fmt.Errorf("%s: %w", name, err))
			continue
		}
		delete(l.unreached, name)
		l.once(name, nil)
		if l.opt.DryRun {
			m = dispatch.DryRun(m)
		}
		l.dispatcher.Expect(name, types.UID(c.Spec.ID))
		l.dispatcher.SetMember(name, m)
		l.members[name], met = c, true
	}
	for name := range l.members {
		if _, stays := snapshot.Clusters.Get(name); !stays {
			l.dispatcher.SetMember(name, nil)
			delete(l.members, name)
			delete(l.met, name)
			l.report(Info, "%s: left the fleet; nothing is sent to it any more, its objects stay", name)
		}
	}
	for name := range l.unreached {
		if _, stays := snapshot.Clusters.Get(name); !stays {
			delete(l.unreached, name)
		}
	}
	return met
}

// changedKeys are the objects that may need work, by cluster. It costs what
// differs between the states.
func changedKeys(before, after *propagate.State) map[string][]propagate.ID {
	keys := map[string]map[propagate.ID]bool{}
	note := func(cluster string, id propagate.ID) {
		if keys[cluster] == nil {
			keys[cluster] = map[propagate.ID]bool{}
		}
		keys[cluster][id] = true
	}
	for d := range ordered.Diff(before.Bindings, after.Bindings) {
		for _, b := range []*propagate.Binding{d.Before, d.After} {
			if b == nil {
				continue
			}
			for _, w := range b.Works {
				note(w.Cluster, b.ID)
			}
		}
	}
	for d := range ordered.Diff(before.Departed, after.Departed) {
		if d.Has {
			for _, g := range d.After.Clusters {
				note(g.Cluster, d.After.ID)
			}
		}
	}
	sorted := map[string][]propagate.ID{}
	for cluster, ids := range keys {
		for id := range ids {
			sorted[cluster] = append(sorted[cluster], id)
		}
		slices.SortFunc(sorted[cluster], compare)
	}
	return sorted
}

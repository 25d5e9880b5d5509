// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Order is how processes that share a fleet agree on what was observed of its members, and
// between which commits: all of them fold the same commits and observations in the same
// order. Nothing of it is asked before observations can change the fleet, which is under
// the gate Failover and while an eviction is under way.
type Order interface {
	// Leads reports whether this process continues the log.
	Leads() bool
	// Read returns the log as it is at this moment, the same one if it has not changed; nil
	// if there is none.
	Read(ctx context.Context) (*Log, error)
	// Write replaces a log by what continues it, or without a version begins one, with an ID
	// of its own: whoever writes a lost one again may not know all of it. It returns the log
	// as it is then. If somebody else has written it since it was read, nothing is written, and the
	// error is ErrLogChanged.
	Write(ctx context.Context, next *Log) (*Log, error)
	// Saw says what this process observes of its own clusters.
	Saw(ctx context.Context, clusters map[string]*fleet.Cluster, seen MembersSeen) error
	// Seen returns what the processes observe to which the clusters belong now.
	Seen(ctx context.Context) ([]MembersSeen, error)
}

// ErrLogChanged says that a log was written since it was read.
var ErrLogChanged = errors.New("the log of observations was written by another replica")

// Log is the one sequence of what was observed of the members of a fleet. It is never
// altered.
type Log struct {
	// ID tells it from a log that was begun after this one was lost.
	ID string
	// Head is the newest commit that may be folded while observations count.
	Head    string
	Entries []Entry
	// Version is of this reading; "" is of a log that is not there any more.
	Version string
}

// Entry is what was observed after a commit. Each has a later moment than the one before.
type Entry struct {
	After string
	propagate.Observations
}

// Continued returns the entries of a log that another, of the same ID and written later, has
// more; false if it is no continuation. Entries of one moment differ only in the commit that
// they are after, where a branch was rewritten.
func (g *Log) Continued(later []Entry) (more []Entry, ok bool) {
	n := len(g.Entries)
	if n > len(later) {
		return nil, false
	}
	if n > 0 && &g.Entries[0] == &later[0] {
		return later[n:], true
	}
	for i := range g.Entries {
		if g.Entries[i].At != later[i].At || g.Entries[i].After != later[i].After {
			return nil, false
		}
	}
	return later[n:], true
}

// last is the moment of the last entry; 0 without one.
func (g *Log) last() int64 {
	if len(g.Entries) == 0 {
		return 0
	}
	return g.Entries[len(g.Entries)-1].At
}

// has reports whether an entry is of a moment; 0 is before the first.
func (g *Log) has(at int64) bool {
	_, found := slices.BinarySearchFunc(g.Entries, at, byMoment)
	return found || at == 0
}

// since returns the entries after a moment.
func (g *Log) since(at int64) []Entry {
	i, found := slices.BinarySearchFunc(g.Entries, at, byMoment)
	if found {
		i++
	}
	return g.Entries[i:]
}

func byMoment(e Entry, at int64) int { return int(e.At - at) }

// sequence is what a loop keeps of the log.
type sequence struct {
	log        *Log
	entries    map[string][]Entry          // of the log, by the commit that they are after
	noLogSince *time.Duration              // by Clock.Elapsed
	leaving    map[propagate.Place]reached // where this process was when it first saw what leaves
}

// reached is how far a process was: a commit by its position, and the moment of the last
// entry.
type reached struct {
	commit int
	at     int64
}

func (r reached) before(other reached) bool {
	return r.commit < other.commit || r.commit == other.commit && r.at < other.at
}

func (s *sequence) setLog(log *Log) {
	s.noLogSince = nil
	if s.log == log {
		return
	}

	more, ok := log.Entries, false
	if s.log != nil && s.log.ID == log.ID {
		more, ok = s.log.Continued(log.Entries)
	}
	if !ok {
		more, s.entries = log.Entries, map[string][]Entry{}
	}
	for _, e := range more {
		s.entries[e.After] = append(s.entries[e.After], e)
	}
	s.log = log
}

// logged takes in what the log has after the commit of a state.
func (l *Loop) logged(s propagate.State) propagate.State {
	if l.log == nil {
		return s
	}
	for _, e := range l.entries[s.Commit] {
		if _, at := s.Logged(); e.At > at {
			e.Log = l.log.ID
			s = propagate.Observe(s, e.Observations)
		}
	}
	return s
}

// ordered reports whether the order of the log matters: observations count, or have.
func (l *Loop) ordered() bool {
	log, _ := l.state.Logged()
	return log != "" || l.state.Watched()
}

// foldShared folds up to a commit, as far as the log allows. Without observations it is
// the fold of a process of its own.
func (l *Loop) foldShared(ctx context.Context, to string) error {
	read := false
	for {
		limit := to
		if l.ordered() {
			if !read {
				if err := l.readLog(ctx); err != nil {
					return err
				}
				read = true
			}
			if err := l.allow(ctx, to); err != nil {
				return err
			}
			if err := l.takeIn(); err != nil {
				return err
			}
			var err error
			if limit, err = l.allowed(to); err != nil {
				return err
			}
		}

		before := l.state.Commit
		if limit == before {
			return nil
		}
		if err := l.foldInTurn(ctx, limit); err != nil {
			return err
		}
		if l.state.Commit == before {
			return nil
		}
	}
}

// foldLogged takes in the log where the repository cannot be read.
func (l *Loop) foldLogged(ctx context.Context) error {
	if l.opt.Shares == nil || l.state.Commit == "" {
		return nil
	}
	if err := l.foldShared(ctx, l.state.Commit); err != nil {
		return err
	}
	l.hasFolded()
	return nil
}

// readLog reads the log. A state that does not come of it is folded again from the
// beginning: then all replicas come to the same one.
func (l *Loop) readLog(ctx context.Context) error {
	log, err := l.opt.Shares.Read(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("nothing newer is folded, since what was observed of the members cannot be read: %w", err)
	case log != nil:
		l.setLog(log)
	case l.log != nil:
		lost := *l.log
		lost.Version = "" // whoever leads writes it again
		l.setLog(&lost)
	}

	if !l.comesOfLog() {
		l.warn(errors.New("what was observed of the members is not what the replicas agree on: folding the history again"))
		l.state = propagate.State{}
	}
	return nil
}

// comesOfLog reports whether the state is one of those that the log leads to.
func (l *Loop) comesOfLog() bool {
	id, at := l.state.Logged()
	if id == "" && l.state.Seen != nil {
		return false // one process has observed it alone
	}
	if l.log == nil {
		return id == ""
	}
	if id != "" && id != l.log.ID || !l.log.has(at) {
		return false
	}

	coming := l.log.since(at)
	if len(coming) == 0 || l.state.Commit == "" || coming[0].After == l.state.Commit {
		return true
	}
	return !l.precedes(coming[0].After, l.state.Commit)
}

// precedes reports whether a commit is on the line of another, or is it.
func (l *Loop) precedes(commit, head string) bool {
	if commit == head {
		return true
	}
	if commit == "" || !l.repo.Has(commit) {
		return false
	}
	_, err := l.repo.History(commit, head)
	return err == nil
}

// allow lets all fold up to a commit, if this process leads. A log that is lost is written
// again, whether observations count now or not: who begins needs it.
func (l *Loop) allow(ctx context.Context, to string) error {
	if l.log == nil && l.state.Watched() && (l.opt.Shares.Leads() || l.missing() > logPatience) {
		return l.writeLog(ctx, &Log{Head: to})
	}
	lost := l.log != nil && l.log.Version == ""
	if !l.opt.Shares.Leads() || l.log == nil || !l.state.Watched() && !lost {
		return nil
	}

	next := *l.log
	if l.state.Watched() && l.continues(l.log.Head, to) {
		next.Head, next.Entries = to, l.onLine(l.log.Entries, l.log.Head, to)
	}
	if next.Head == l.log.Head && !lost {
		return nil
	}
	return l.writeLog(ctx, &next)
}

// logPatience is how long a log may be missing before a replica begins one that does not
// lead. One that leads may not need it: observations count no more, and have never changed
// anything.
const logPatience = time.Minute

// missing is for how long there has been no log.
func (l *Loop) missing() time.Duration {
	now := l.opt.Clock.Elapsed()
	if l.noLogSince == nil {
		l.noLogSince = &now
	}
	return now - *l.noLogSince
}

// continues reports whether one head comes after another: on its line, or on that of a
// branch that was rewritten and says so.
func (l *Loop) continues(head, to string) bool {
	if !l.repo.Has(head) {
		return newLine(l.repo, to).Replaces(head)
	}
	return l.precedes(head, to) || !l.precedes(to, head) && newLine(l.repo, to).Replaces(head)
}

// onLine are entries with those after the head of a branch that was rewritten whose commits
// are not on it any more.
func (l *Loop) onLine(entries []Entry, before, head string) []Entry {
	if l.precedes(before, head) {
		return entries
	}
	line := newLine(l.repo, head)
	entries = slices.Clone(entries)
	for i := range entries {
		if _, on := line.Position(entries[i].After); !on {
			entries[i].After = head
		}
	}
	return entries
}

// writeLog writes the log. If another replica has, that is for the next round.
func (l *Loop) writeLog(ctx context.Context, next *Log) error {
	written, err := l.opt.Shares.Write(ctx, next)
	switch {
	case errors.Is(err, ErrLogChanged):
		return nil
	case err != nil:
		return fmt.Errorf("what was observed of the members cannot be written: %w", err)
	}
	l.setLog(written)
	return nil
}

// takeIn takes in what the log has after the folded commit.
func (l *Loop) takeIn() error {
	next := l.logged(l.state)
	if next.Seen == l.state.Seen {
		return nil
	}
	l.state = next
	return l.save()
}

// allowed is up to which commit may be folded now, of those up to a commit.
func (l *Loop) allowed(to string) (string, error) {
	switch {
	case !l.state.Watched():
		return to, nil // as far as that lasts: see logEnds
	case l.log == nil, !l.repo.Has(l.log.Head), l.precedes(l.log.Head, l.state.Commit):
		return l.state.Commit, nil
	case l.precedes(l.log.Head, to):
		return l.log.Head, nil
	case l.precedes(to, l.log.Head):
		return to, nil
	case newLine(l.repo, to).Replaces(l.log.Head):
		return l.state.Commit, nil // whoever leads is to follow the rewritten branch first
	}
	return "", l.rewriteRefused(to, l.log.Head)
}

// errLogEnds ends a fold where observations count and the log allows no further commit.
var errLogEnds = errors.New("the log ends here")

// logEnds tells after each of several commits whether the log allows the next one.
func (l *Loop) logEnds(commits []*source.Commit) func(next *propagate.State) error {
	if l.opt.Shares == nil {
		return func(*propagate.State) error { return nil }
	}

	allowed := -1
	if l.log != nil {
		allowed = slices.IndexFunc(commits, func(c *source.Commit) bool { return c.Hash == l.log.Head })
	}
	at := -1
	return func(next *propagate.State) error {
		at++
		if at >= allowed && at < len(commits)-1 && next.Watched() {
			return errLogEnds
		}
		return nil
	}
}

// foldAgain folds commits from the beginning, as far as the log allows.
func (l *Loop) foldAgain(commits []*source.Commit) (propagate.State, error) {
	ends := l.logEnds(commits)
	line, err := l.history.Fold(propagate.State{}, commits, func(_ *source.Commit, next propagate.State) error { return ends(&next) })
	if errors.Is(err, errLogEnds) {
		err = nil
	}
	return line, err
}

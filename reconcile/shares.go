// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// Shares says which clusters of a fleet are this process's own, where several processes
// reconcile it together. Each of them folds everything, and reconciles the members that it
// owns. It may be called from any goroutine.
type Shares interface {
	// Term is 0 while a cluster is another process's. While it is this process's own, it is a
	// number that it never was before: what was known of the cluster in another term, another
	// process may have changed since. When a term ends, Loop.Release is called.
	Term(c *fleet.Cluster) int
	// Moves is another number whenever Term may be.
	Moves() int
	// Claim is dispatch.Options.Claim.
	Claim(ctx context.Context, cluster string, uid types.UID) (recorded types.UID, other string, err error)
	// Keep is told which clusters there are, before anything more is sent to them. Nothing is
	// in flight to one that was this process's own and left the fleet, or has another shard or
	// another spec.id. moved is which shards they were in before, rewritten the last commit that
	// allows that the branch was rewritten, as of the accepted commit.
	Keep(clusters ordered.Map[*fleet.Cluster], moved propagate.Moved, rewritten, accepted string)
	// Fetching is called before the repository is fetched. What it returns is called when
	// all that was fetched is folded, and before anything of it is sent.
	Fetching() (folded func(*Line))
	Order
}

// errInFlight is why nothing is dispatched: another process is told that it may write to a
// cluster when nothing is in flight to it from here.
var errInFlight = errors.New("requests to clusters that were given up have not ended; nothing newer is sent until they have")

// shared is what a loop keeps of the clusters that it shares with other processes.
type shared struct {
	folded     *Line
	tellFolded func(*Line) // Shares, of the last fetch that has succeeded

	look chan struct{} // ends a pause: a member has something of a commit that is not known

	givenUp map[string]bool // clusters that others may have next, once nothing is in flight to them

	sharing     sync.Mutex
	released    map[string]bool           // given up since the last round
	others      map[string]*fleet.Cluster // clusters of other processes
	asked       map[string]member.Member  // the way to read some of them
	silentUntil map[string]time.Duration  // by Clock.Elapsed, clusters of others that do not answer
	fetches     int                       // that have begun
	unknown     map[string]int            // commits that members have and the repository has not, and how many fetches had begun
	looked      int                       // the last fetch that has succeeded
	pending     map[string]bool           // commits that are fetched and not folded yet
}

// term is Shares.Term.
func (l *Loop) term(c *fleet.Cluster) int {
	if l.opt.Shares == nil {
		return 1
	}
	return l.opt.Shares.Term(c)
}

// owns reports whether this process reconciles a cluster.
func (l *Loop) owns(c *fleet.Cluster) bool { return l.term(c) != 0 }

// hasReleased reports whether clusters were given up since they were looked at last.
func (l *Loop) hasReleased() bool {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	return len(l.released) > 0
}

// moves is Shares.Moves.
func (l *Loop) moves() int {
	if l.opt.Shares == nil {
		return 0
	}
	return l.opt.Shares.Moves()
}

// hasFolded tells Shares what is folded now.
func (l *Loop) hasFolded() {
	if l.tellFolded != nil && l.state.Commit != "" {
		l.tellFolded(l.line())
	}
}

// Release stops dispatch to the clusters that are not this process's own any more, and
// waits for what is in flight, until ctx ends. It may be called at any time.
func (l *Loop) Release(ctx context.Context) {
	l.mu.Lock()
	var lost []string
	for name, c := range l.members {
		if l.term(c) != l.terms[name] {
			lost = append(lost, name)
		}
	}
	l.mu.Unlock()
	l.release(ctx, lost)
}

// release gives clusters up, and then has the next round forget them. In the other order that
// round may connect to one that is taken again, and what it has just made is given up here.
func (l *Loop) release(ctx context.Context, clusters []string) {
	var all sync.WaitGroup
	for _, name := range clusters {
		all.Go(func() { l.dispatcher.Release(ctx, name) })
	}
	all.Wait()

	l.sharing.Lock()
	defer l.sharing.Unlock()
	for _, name := range clusters {
		if l.released == nil {
			l.released = map[string]bool{}
		}
		l.released[name] = true
	}
}

// clustersOfOthers returns the clusters that other processes reconcile, and drops those
// that were this one's.
func (l *Loop) clustersOfOthers(snapshot *fleet.Snapshot) map[string]*fleet.Cluster {
	if l.opt.Shares == nil {
		return nil
	}

	others := map[string]*fleet.Cluster{}
	var lost []string
	for name, c := range snapshot.Clusters.All() {
		known, term := l.members[name], l.term(c)
		// It may be in another shard, of ours as well, with another gate, or be another cluster.
		moved := known != nil && (known.Spec.ID != c.Spec.ID || !maps.Equal(known.Annotations, c.Annotations))
		if moved {
			l.givenUp[name] = true
		}
		if moved || known != nil && l.terms[name] != term || term == 0 && l.unreached[name] != nil {
			lost = append(lost, name)
		}
		if term == 0 {
			others[name] = c
		}
	}
	if len(lost) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		l.release(ctx, lost)
		cancel()
	}
	l.noteOthers(others)

	l.sharing.Lock()
	released := l.released
	l.released = nil
	l.sharing.Unlock()
	l.roster.forget(func(name string) bool { return released[name] })
	for _, name := range slices.Sorted(maps.Keys(released)) {
		delete(l.resolved, name)
		if others[name] == nil {
			continue
		}
		l.tell(Event{Severity: Info, Cluster: name, Note: "is another replica's now; nothing more is sent to it from here"})
	}
	return others
}

// leave forgets clusters that left the fleet. Where others may have it under another name,
// nothing is in flight to them afterwards.
func (l *Loop) leave(clusters []string) {
	if l.opt.Shares == nil {
		for _, name := range clusters {
			l.dispatcher.SetMember(name, nil)
		}
		return
	}

	for _, name := range clusters {
		l.givenUp[name] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var all sync.WaitGroup
	for _, name := range clusters {
		all.Go(func() { l.dispatcher.Forget(ctx, name) })
	}
	all.Wait()
}

// claim is how the dispatcher asks whether another process has a cluster; nil if there is
// none.
func (l *Loop) claim() func(context.Context, string, types.UID) (types.UID, string, error) {
	if l.opt.Shares == nil {
		return nil
	}
	return l.opt.Shares.Claim
}

// take makes a cluster this process's own for a term: what was known of it may have been
// changed by others since. It reports false if the term has ended.
func (l *Loop) take(c *fleet.Cluster, m member.Member, term int) (taken bool, err error) {
	if l.opt.Shares == nil {
		l.dispatcher.SetMember(c.Name, m)
		return true, nil
	}

	if l.members[c.Name] == nil {
		if err := l.checkpoint.DropInventory(c.Name); err != nil {
			return false, err
		}
	}
	l.dispatcher.SetMember(c.Name, m)
	if l.term(c) == term {
		return true, nil
	}
	l.release(context.Background(), []string{c.Name})
	return false, nil
}

// elsewhere reports whether a cluster of another process has acknowledged a content: it is
// read there, since nobody here is told.
func (l *Loop) elsewhere(ctx context.Context, a dispatch.Acknowledgement) bool {
	m := l.ask(a.Cluster)
	if m == nil {
		return false
	}

	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	found, err := read(ctx, m, member.RefTo(a.ID, a.APIVersion))
	if err != nil {
		l.sharing.Lock()
		defer l.sharing.Unlock()
		l.silentUntil[a.Cluster] = l.opt.Clock.Elapsed() + askTimeout
		return false
	}
	return found != nil && !found.Deleting && found.Digest() == a.Digest
}

// askTimeout is how long a cluster of another process has to answer, and for how long one
// that did not is left alone.
const askTimeout = 5 * time.Second

// read reads an object of a member as it is now.
func read(ctx context.Context, m member.Member, ref member.Ref) (*member.Found, error) {
	if batch, ok := member.As[member.BatchMember](m); ok {
		if _, err := batch.Begin(ctx, true); err != nil {
			return nil, err
		}
	}
	return m.Get(ctx, ref)
}

// ask is the way to read a cluster of another process; nil if there is none.
func (l *Loop) ask(cluster string) member.Member {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	if l.opt.Clock.Elapsed() < l.silentUntil[cluster] {
		return nil
	}
	if m := l.asked[cluster]; m != nil {
		return m
	}
	c := l.others[cluster]
	if c == nil {
		return nil
	}
	m, err := l.opt.Members(c)
	if err != nil {
		return nil
	}
	if l.asked == nil {
		l.asked, l.silentUntil = map[string]member.Member{}, map[string]time.Duration{}
	}
	l.asked[cluster] = m
	return m
}

// noteOthers keeps the clusters of other processes, for ask.
func (l *Loop) noteOthers(others map[string]*fleet.Cluster) {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	for name, m := range l.asked {
		if others[name] == nil || l.others[name] != others[name] {
			if c, ok := member.As[member.Closer](m); ok {
				c.Close()
			}
			delete(l.asked, name)
		}
	}
	l.others = others
}

// askElsewhere is how the dispatcher asks for clusters of other processes; nil if there
// are none.
func (l *Loop) askElsewhere() func(context.Context, dispatch.Acknowledgement) bool {
	if l.opt.Shares == nil {
		return nil
	}
	return l.elsewhere
}

// knowsCommits is how the dispatcher asks whether a commit is known; nil if every one is.
func (l *Loop) knowsCommits() func(string) bool {
	if l.opt.Shares == nil {
		return nil
	}
	l.look = make(chan struct{}, 1)
	return l.knows
}

// knows reports whether a commit is folded, or is not in the repository any more: a fetch
// that began after it was asked for has not brought it. Otherwise there is a fetch soon.
func (l *Loop) knows(commit string) bool {
	has := l.repo.Has(commit)
	l.sharing.Lock()
	defer l.sharing.Unlock()
	if has {
		return !l.pending[commit]
	}
	began, asked := l.unknown[commit]
	if asked && l.looked > began {
		return true
	}
	if !asked {
		if l.unknown == nil {
			l.unknown = map[string]int{}
		}
		l.unknown[commit] = l.fetches
	}
	select {
	case l.look <- struct{}{}:
	default:
	}
	return false
}

// beginFetch counts a fetch. What it returns is called when it has succeeded.
func (l *Loop) beginFetch() (ended func()) {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	l.fetches++
	this := l.fetches
	return func() {
		l.sharing.Lock()
		defer l.sharing.Unlock()
		l.looked = this
	}
}

// notePending keeps which commits are fetched and not folded yet.
func (l *Loop) notePending(head string) {
	if l.opt.Shares == nil {
		return
	}

	pending := map[string]bool{}
	if l.state.Commit != "" && l.state.Commit != head {
		commits, err := l.history.Commits(l.state.Commit, head)
		for _, c := range commits {
			pending[c.Hash] = err == nil // of a branch that was rewritten nothing is to come
		}
	}
	l.sharing.Lock()
	defer l.sharing.Unlock()
	l.pending = pending
}

// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Fleet says what should be. It is asked at the moment of acting, from many
// goroutines at once, and must not change after it was given to Sync.
type Fleet interface {
	// Desire is what to do with one object on one cluster.
	Desire(cluster string, id object.ID) Desire
	// Wants yields every object that is wanted on the cluster or departed
	// from it, and of what Desire says of it the Want. It is asked at first contact,
	// after a restart and by SyncOptions.All, for all clusters at about the same time.
	Wants(cluster string) iter.Seq2[Key, Want]
	// Namespace is the fleet's document of a namespace for the cluster, marks
	// included, or nil when the fleet has none.
	Namespace(cluster, name string) map[string]any
	// Source is the commit that the fleet is of.
	Source() member.Source
	// Marker knows which objects on a member are the fleet's.
	Marker() object.Marker
}

// Verb is what to do with an object.
type Verb int

// The verbs.
const (
	Leave  Verb = iota // not ours to touch, or unknown
	Apply              // send the manifest
	Hold               // wanted, but suspended: send nothing
	Delete             // remove it
	Orphan             // leave it running, and remove what marks it as ours
)

// String reads "apply".
func (v Verb) String() string {
	return [...]string{"leave", "apply", "hold", "delete", "orphan"}[v]
}

// Key is the ID of an object that many clusters have. It is in memory once, and two are
// compared without a look at the names.
type Key = unique.Handle[object.ID]

// Want is what should become of one object on one cluster, without how.
type Want struct {
	Verb       Verb
	APIVersion string // also for Delete and Orphan; the inventory's when empty
	// Digest is of the manifest without the marks. An object that was
	// acknowledged with the same digest is not sent.
	Digest object.Digest
}

// Desire is what should become of one object on one cluster.
type Desire struct {
	Want
	// Manifest makes what is sent, marks included. The caller of it may alter
	// what it returns.
	Manifest func() (map[string]any, error)
	// Overwrite adopts an object that exists and is not ours.
	Overwrite bool
	// RetainReplicas says that an autoscaler owns the replicas: an update
	// sends the number that it finds, at the cost of one read, and only a
	// create sends the manifest's. Leaving the field out instead would have
	// the server reset it. The digest stays the manifest's, so another number
	// alone is no reason to write.
	RetainReplicas bool
	// After are what clusters are to acknowledge before the object is deleted, or
	// before an update that sets Replicas leaves it with fewer than it has.
	After    []Acknowledgement
	Replicas int64
}

// Inventory is what each member was last known to hold. It is a cache: without
// it dispatch reads the members' marks once and writes nothing that is there
// already. It is called from several goroutines.
type Inventory interface {
	// Load passes on what a cluster was last known to hold, in any order, and before that
	// how much it is. What was passed on before an error does not count.
	Load(cluster string, begin func(entries int), held func(object.ID, *Entry)) error
	// Save stores what changed, by cluster, at once or not at all. A nil
	// Entry is dropped.
	Save(changed map[string]map[object.ID]*Entry) error
}

// Entry is one object of the inventory.
type Entry struct {
	APIVersion string
	UID        types.UID
	// Digest was acknowledged by the member. The zero Digest is an intent: the
	// object may or may not be there.
	Digest object.Digest
	// Fields are those of the object that were ours when it was acknowledged.
	Fields member.Fields
	// Left is the UID of a copy that was left running and is not ours any more. An
	// entry with nothing else is no object of ours; with an APIVersion the object is
	// wanted again.
	Left types.UID
	// Version is the object's when it was acknowledged, or seen last. It is
	// not kept: it tells old news from new while the process runs.
	Version uint64 `json:"-"`
}

// isLeft reports whether the entry is only of a copy that was left running.
func (e *Entry) isLeft() bool { return e != nil && e.Left != "" && e.APIVersion == "" }

// Options of a Dispatcher. The zero value works.
type Options struct {
	// Parallel is how many requests may be in flight to one member. Default 16.
	Parallel int
	// Total is how many requests may be in flight to all members. Those that
	// have work share it equally and have at least one each, so that a dead
	// member cannot hold what others need. Default 512.
	Total   int
	Backoff Backoff
	// Watch has the members watched, and what was changed by hand restored.
	Watch bool
	// Look has every member looked at once when it is met, as a watch begins, and
	// what was changed by hand restored.
	Look bool
	// Relist is how long a watch lasts before everything is looked at again.
	// Default 10 min.
	Relist time.Duration
	// Elsewhere reports whether a cluster without a member here has acknowledged a content:
	// another process reconciles it. nil: there is none.
	Elsewhere func(ctx context.Context, a Acknowledgement) bool
	// Knows reports whether a commit is known that an object on a member says it is as of. An
	// object of one that is not is left as it is: another process was faster. nil: every one
	// is.
	Knows func(commit string) bool
	// Claim is asked, when it is known which cluster a name stands for and before anything is
	// sent there, whether a name in another process has that cluster. It returns what was
	// recorded of the name before, and the other name; with an error nothing is sent. nil:
	// there is no other process.
	Claim func(ctx context.Context, cluster string, uid types.UID) (recorded types.UID, other string, err error)
	// Log is told of every act and failure, from many goroutines at once.
	Log func(Event)
}

// SyncOptions are of one Sync. The zero value works.
type SyncOptions struct {
	// All has every key of every member looked at again.
	All bool
	// OnlyKnown sends nothing to members that bear none of our marks yet
	// (the head is refused or held).
	OnlyKnown bool
}

// Outcome is what became of one object on one cluster, or of a cluster as a
// whole when ID is zero: a member that cannot be reached is one outcome.
type Outcome struct {
	Cluster string
	ID      object.ID
	// Err is an *Error; nil when the outcome is only a note.
	Err error
	// Final says that waiting cannot mend it.
	Final bool
	// Note is what is worth saying although it was acknowledged.
	Note string
	// Waiting counts the objects behind the failure of a cluster. Settled says that
	// none is, and none can be: all that it should have was acknowledged before.
	Waiting int
	Settled bool
}

// Dispatcher brings members to what a fleet wants.
type Dispatcher struct {
	inventory Inventory
	opt       Options
	writer    inventoryWriter
	waits     waits

	// ctx is of the requests; it ends when Close gives up on them.
	ctx    context.Context
	cancel context.CancelFunc
	ended  atomic.Bool
	turns  sync.Once // it was told that watches take turns

	mu         sync.Mutex
	changed    *sync.Cond // busy, or the writer's state
	workers    map[string]*worker
	landing    map[string][]*worker // given up, with requests in flight
	identities identities
	busy       int // workers with work that waiting may mend
}

// New returns a Dispatcher without members.
func New(inventory Inventory, opt Options) *Dispatcher {
	if opt.Parallel <= 0 {
		opt.Parallel = 16
	}
	if opt.Total <= 0 {
		opt.Total = 512
	}
	if opt.Relist <= 0 {
		opt.Relist = 10 * time.Minute
	}
	opt.Backoff = opt.Backoff.withDefaults()
	d := &Dispatcher{inventory: inventory, opt: opt, workers: map[string]*worker{}, landing: map[string][]*worker{}, identities: newIdentities()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.changed = sync.NewCond(&d.mu)
	d.writer.d = d
	return d
}

// SetMember makes m the way to reach a cluster. The same m again, by ==,
// changes nothing. With nil the cluster is forgotten: nothing is sent to it
// any more and its inventory is kept.
func (d *Dispatcher) SetMember(cluster string, m member.Member) {
	d.mu.Lock()
	w := d.workers[cluster]
	if w == nil && m == nil {
		d.mu.Unlock()
		return
	}
	if w == nil {
		w = newWorker(d, cluster)
		d.workers[cluster] = w
	}
	if m == nil {
		delete(d.workers, cluster)
		d.identities.forget(cluster)
		d.changed.Broadcast()
	}
	d.mu.Unlock()
	w.setMember(m)
}

// Release gives a cluster up to another process: nothing more is begun, what is in flight
// has until ctx ends, and nothing more is recorded of it. Its inventory is the caller's to
// drop, because it is not true any more.
func (d *Dispatcher) Release(ctx context.Context, cluster string) {
	w := d.forget(cluster)
	if w == nil {
		return
	}

	m := w.release()
	w.await(ctx)
	d.writer.forget(cluster)
	if c, ok := member.As[member.Closer](m); ok {
		c.Close()
	}
}

// Forget is SetMember without a member, and waits until nothing is in flight, or ctx ends.
func (d *Dispatcher) Forget(ctx context.Context, cluster string) {
	w := d.forget(cluster)
	if w == nil {
		return
	}
	w.setMember(nil)
	w.await(ctx)
}

// Landed reports whether nothing is in flight to a cluster from before it was given up by
// Release or Forget.
func (d *Dispatcher) Landed(cluster string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.landing[cluster]) == 0
}

// hasLanded is told by a worker that was given up that nothing is in flight. It is called
// with the worker locked.
func (d *Dispatcher) hasLanded(w *worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := slices.DeleteFunc(d.landing[w.cluster], func(other *worker) bool { return other == w })
	if len(left) == 0 {
		delete(d.landing, w.cluster)
		return
	}
	d.landing[w.cluster] = left
}

// forget drops the worker of a cluster. It is landing until it has no member and nothing is in
// flight.
func (d *Dispatcher) forget(cluster string) *worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.workers[cluster]
	if w == nil {
		return nil
	}
	delete(d.workers, cluster)
	d.landing[cluster] = append(d.landing[cluster], w)
	d.identities.forget(cluster)
	d.changed.Broadcast()
	return w
}

// Sync makes fleet the level to reach and changed the keys that may need
// work. A member that was set since the last Sync has every key looked at.
// Intents are saved before any member is touched; nothing is waited for.
//
// What failed is tried again with growing pauses; what is Foreign, Invalid or
// Unrendered only when its key is among changed, or with SyncOptions.All.
func (d *Dispatcher) Sync(fleet Fleet, changed map[string][]object.ID, opt SyncOptions) error {
	workers := d.sorted()
	keys := make([][]object.ID, len(workers))
	entries, errs := make([]map[object.ID]*Entry, len(workers)), make([]error, len(workers))
	side(len(workers), func(i int) {
		w := workers[i]
		if errs[i] = w.load(); errs[i] == nil {
			keys[i] = w.keys(fleet, changed[w.cluster], opt.All)
			entries[i] = w.intents(fleet, keys[i], opt)
		}
	})
	intents := map[string]map[object.ID]*Entry{}
	for i, w := range workers {
		if errs[i] != nil {
			return errs[i]
		}
		if len(entries[i]) > 0 {
			intents[w.cluster] = entries[i]
		}
	}
	if err := d.saveIntents(workers, intents); err != nil {
		return err
	}
	d.expectAnswers(workers, fleet)
	side(len(workers), func(i int) { workers[i].sync(fleet, keys[i], entries[i], opt) })
	d.wake(d.waits.takeAll())
	return nil
}

// saveIntents saves what is about to be sent to members. Meanwhile those that are to be
// asked who they are before anything is sent are asked that.
func (d *Dispatcher) saveIntents(workers []*worker, intents map[string]map[object.ID]*Entry) error {
	if len(intents) == 0 {
		return nil
	}

	for _, w := range workers {
		if len(intents[w.cluster]) > 0 {
			w.identity.askAhead()
		}
	}
	err := d.inventory.Save(intents)
	if err == nil {
		return nil
	}
	for _, w := range workers {
		w.identity.forgetAhead()
	}
	return fmt.Errorf("intents: %w", err)
}

// side does n things side by side, as many at once as there are processors.
func side(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	all.Wait()
}

// Wait returns what is not acknowledged, sorted, once only what waiting cannot
// mend is left or ctx ends.
func (d *Dispatcher) Wait(ctx context.Context) []Outcome {
	stop := context.AfterFunc(ctx, d.notify)
	defer stop()
	d.mu.Lock()
	for ctx.Err() == nil && !d.closed() && (d.busy > 0 || !d.writer.idle()) {
		d.changed.Wait()
	}
	d.mu.Unlock()
	var left []Outcome
	for _, o := range d.outcomes(true) {
		if o.Err != nil {
			left = append(left, o)
		}
	}
	return left
}

// Outcomes returns what is not acknowledged and what is worth a note, sorted.
// A key that is queued and did not fail is not among them.
func (d *Dispatcher) Outcomes() []Outcome { return d.outcomes(false) }

// Progress is how far a cluster is.
type Progress struct {
	// Contacted reports whether it is known what it holds.
	Contacted bool
	// Pending is how many objects are queued or in flight, and have not failed.
	Pending int
}

// Progress returns how far each cluster is.
func (d *Dispatcher) Progress() map[string]Progress {
	all := map[string]Progress{}
	for _, w := range d.sorted() {
		all[w.cluster] = w.progress()
	}
	return all
}

func (d *Dispatcher) outcomes(pending bool) []Outcome {
	var out []Outcome
	for _, w := range d.sorted() {
		out = append(out, w.outcomes(pending)...)
	}
	slices.SortFunc(out, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.ID.Key(), b.ID.Key()))
	})
	return out
}

// Close starts nothing new, waits for the requests in flight until ctx ends
// and saves what was acknowledged.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.ended.Store(true)
	d.notify()
	stop := context.AfterFunc(ctx, d.cancel)
	defer stop()
	for _, w := range d.sorted() {
		w.drain()
	}
	d.cancel()
	for d.writer.flush() {
	}
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return d.writer.err
}

func (d *Dispatcher) closed() bool { return d.ended.Load() }

func (d *Dispatcher) sorted() []*worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*worker
	for _, name := range slices.Sorted(maps.Keys(d.workers)) {
		out = append(out, d.workers[name])
	}
	return out
}

// count is told by a worker that it begins or ceases to have work. It is called
// with the worker locked, so nothing here may lock one.
func (d *Dispatcher) count(busy bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if busy {
		d.busy++
		return
	}
	d.busy--
	d.changed.Broadcast()
}

// share is how many requests each member with work may have in flight.
func (d *Dispatcher) share() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(1, d.opt.Total/max(1, d.busy))
}

// whileWorking waits, no longer than there is work.
func (d *Dispatcher) whileWorking(atMost time.Duration) {
	end := time.Now().Add(atMost)
	timer := time.AfterFunc(atMost, d.notify)
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.busy > 0 && !d.closed() && time.Now().Before(end) {
		d.changed.Wait()
	}
}

func (d *Dispatcher) notify() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed.Broadcast()
}

func (d *Dispatcher) log(e Event) {
	if d.opt.Log != nil {
		d.opt.Log(e)
	}
}

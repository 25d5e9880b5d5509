// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConfigMaps are those of one namespace: what of client-go's ConfigMapInterface is used.
type ConfigMaps interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error)
	Create(ctx context.Context, m *corev1.ConfigMap, opts metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, m *corev1.ConfigMap, opts metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// Clusters are those of git, as it is folded here.
type Clusters interface {
	// Cluster returns the shard of a cluster and its spec.id; false if git has none of that
	// name.
	Cluster(name string, shards int) (shard int, id types.UID, ok bool)
}

// Options are what a registry is made of.
type Options struct {
	Maps ConfigMaps
	// Fleet is what the ConfigMaps are named after: unique in their namespace.
	Fleet string
	// Holder is this process, and no other one ever.
	Holder string
	Shards int
	// Holds reports whether this process may write for a shard now, of as many as there are.
	Holds func(shard, shards int) bool
	// Collect is how long claims wait for others, to be written with them, and Pause how long
	// it takes until it is looked again whether one was withdrawn. Defaults 5 and 50 ms.
	Collect, Pause time.Duration
	// Request is how long a request may take, and Retry how long it takes until what failed
	// without being asked for is tried again. Defaults 10 s and 5 s.
	Request, Retry time.Duration
	// Failed is told of what nobody has asked for and failed. It may be nil.
	Failed func(error)
}

// Registry is the part of one replica.
type Registry struct {
	opt  Options
	wake chan struct{}
	done chan struct{} // closed when Run has returned

	mu       sync.Mutex
	shards   int
	clusters Clusters // nil before the first Keep
	asked    []*question
	holdings map[int]*holding // shards that are held, as far as is known

	// Only Run uses these.
	known  map[int]*record
	of     int // the number of shards that they are of
	writes atomic.Int64
}

// holding is a shard since it was taken.
type holding struct {
	// kept says that Clusters were told since: those of before may be older than what was
	// sent.
	kept bool
	// seen says that the ConfigMap was read since, and what should not be there was dropped.
	seen bool
}

// question is a claim that somebody waits for.
type question struct {
	cluster  string
	uid      types.UID
	shard    int
	id       types.UID // spec.id
	of       *holding
	recorded types.UID
	other    string
	err      error
	done     chan struct{}
}

// New is a registry that has asked for nothing yet.
func New(opt Options) *Registry {
	if opt.Collect == 0 {
		opt.Collect = 5 * time.Millisecond
	}
	if opt.Pause == 0 {
		opt.Pause = 50 * time.Millisecond
	}
	if opt.Request == 0 {
		opt.Request = 10 * time.Second
	}
	if opt.Retry == 0 {
		opt.Retry = 5 * time.Second
	}
	return &Registry{
		opt: opt, shards: opt.Shards, wake: make(chan struct{}, 1), done: make(chan struct{}),
		holdings: map[int]*holding{}, known: map[int]*record{}, of: opt.Shards,
	}
}

// Taken is told that a shard may be written to from now on.
func (r *Registry) Taken(shard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holdings[shard] = &holding{}
	r.poke()
}

// Given is told that a shard is somebody else's.
func (r *Registry) Given(shard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holdings, shard)
}

// Resize says how many shards there are. None is held any more.
func (r *Registry) Resize(shards int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shards, r.holdings = shards, map[int]*holding{}
}

// Keep says which clusters there are. Nothing is in flight any more to a cluster of a shard
// that is held here and that was in git, or in the shard, or had another spec.id.
func (r *Registry) Keep(clusters Clusters) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clusters = clusters
	for _, h := range r.holdings {
		h.kept, h.seen = true, false
	}
	r.poke()
}

// Claim records that a name is a cluster, if no other name is. It returns what was recorded
// of the name before, and the other name that has the cluster. With an error nothing is
// decided, and nothing may be sent.
func (r *Registry) Claim(ctx context.Context, cluster string, uid types.UID) (recorded types.UID, other string, err error) {
	q := &question{cluster: cluster, uid: uid, done: make(chan struct{})}
	r.mu.Lock()
	r.asked = append(r.asked, q)
	r.mu.Unlock()
	r.poke()

	select {
	case <-q.done:
		return q.recorded, q.other, q.err
	case <-ctx.Done():
		return "", "", ctx.Err()
	case <-r.done:
		return "", "", errors.New("the replica ends")
	}
}

// Run writes and reads what is asked for, until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	defer close(r.done)
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-again:
		}
		select { // others come at about the same time
		case <-ctx.Done():
			return
		case <-time.After(r.opt.Collect):
		}

		again = nil
		if !r.begin().run(ctx) {
			again = time.After(r.opt.Retry)
		}
	}
}

// begin takes what was asked for.
func (r *Registry) begin() *pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &pass{Registry: r, shards: r.shards, clusters: r.clusters, asked: r.asked, held: map[int]*holding{}, kept: map[int]bool{}}
	r.asked = nil
	if r.of != r.shards {
		r.known, r.of = map[int]*record{}, r.shards
	}
	for shard, h := range r.holdings {
		p.held[shard], p.kept[shard] = h, h.kept
		if h.kept && !h.seen {
			p.look = append(p.look, shard)
		}
	}
	return p
}

// isHeld reports whether a shard is still held as it was when a pass began.
func (r *Registry) isHeld(shard, shards int, as *holding) bool {
	r.mu.Lock()
	same := as != nil && r.holdings[shard] == as
	r.mu.Unlock()
	return same && r.opt.Holds(shard, shards)
}

// saw notes that shards were looked at for the clusters of a pass, or are to be once more.
func (r *Registry) saw(p *pass, shards []int, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, shard := range shards {
		p.held[shard].seen = done && r.clusters == p.clusters
	}
	if len(p.later) > 0 {
		r.asked = append(p.later, r.asked...) // those are newer
		r.poke()
	}
}

func (r *Registry) failed(err error) {
	if r.opt.Failed != nil {
		r.opt.Failed(err)
	}
}

func (r *Registry) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// errNotHeld is why a cluster is not claimed.
func errNotHeld(shard int) error {
	return fmt.Errorf("no claim of shard %02d can be written: it is not held here", shard)
}

// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Snapshot is what is shown at one time.
type Snapshot struct {
	// Version names it: equal versions show the same. It is one line.
	Version string
	// Parts have a digest each of what is shown there, by id.
	Parts map[string]string
}

// Options are what a Hub is made of. Zero values are the defaults.
type Options struct {
	// Every is the least time between two changes that are told. 0 is half a second.
	Every time.Duration
	// Heartbeat is how often an idle stream gets a comment, so that nobody between here
	// and there ends it. 0 is 15 s.
	Heartbeat time.Duration
	// Most is how many ids a change may have; with more of them, clients are told to ask
	// for everything. 0 is 500.
	Most int
	// Queue is how many events may wait for a client that reads slowly. 0 is 8.
	Queue int
	// Limits are shared by the hubs of a process. Nil is NewLimits(0, 0).
	Limits *Limits
	// Address returns whom a request counts for. Nil is the address of its connection,
	// which is that of a proxy where there is one.
	Address func(*http.Request) string
	// Patience is how long one write may take. 0 is 10 s.
	Patience time.Duration
}

// remembered is how many changes are kept for clients that come back.
const remembered = 64

// Hub tells any number of clients what changes. Run has to run.
type Hub struct {
	Options
	news chan struct{} // something is published

	mu      sync.Mutex
	ended   chan struct{} // closed with the hub
	clients map[*client]struct{}
	next    *Snapshot // published, and not told yet
	shown   Snapshot  // the last one that was told
	past    []change  // that led there, oldest first
}

// change is what became different from one version to the next. Its ids are nil if they
// are too many.
type change struct {
	from, to string
	ids      []string
}

// New returns a hub that tells nothing before the first Publish.
func New(o Options) *Hub {
	if o.Every == 0 {
		o.Every = 500 * time.Millisecond
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Most == 0 {
		o.Most = 500
	}
	if o.Queue == 0 {
		o.Queue = 8
	}
	if o.Limits == nil {
		o.Limits = NewLimits(0, 0)
	}
	if o.Address == nil {
		o.Address = connection
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	return &Hub{Options: o, news: make(chan struct{}, 1), ended: make(chan struct{}), clients: map[*client]struct{}{}}
}

// connection is the address of the other end, without its port.
func connection(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Publish says what is shown now. The hub keeps the snapshot, and it must not be changed.
func (h *Hub) Publish(s Snapshot) {
	if s.Parts == nil {
		s.Parts = map[string]string{}
	}
	h.mu.Lock()
	h.next = &s
	h.mu.Unlock()

	select {
	case h.news <- struct{}{}:
	default: // Run knows already
	}
}

// Run tells the clients until ctx ends; then it ends their streams.
func (h *Hub) Run(ctx context.Context) {
	heartbeat := time.NewTicker(h.Heartbeat)
	defer heartbeat.Stop()
	defer h.end()

	for {
		select {
		case <-ctx.Done():
			return
		case <-heartbeat.C:
			h.beat()
		case <-h.news:
			h.tell()
			if !pause(ctx, h.Every) {
				return
			}
		}
	}
}

// pause waits, and reports false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// tell sends what differs from the last snapshot to everybody. It is written down once.
func (h *Hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		return
	}
	before, now := h.shown, *h.next
	h.shown, h.next = now, nil
	if before.Version == now.Version && before.Parts != nil {
		return
	}

	// Without parts there was nothing to show yet.
	moved := change{from: before.Version, to: now.Version, ids: differences(before.Parts, now.Parts)}
	if len(moved.ids) > h.Most || before.Parts == nil {
		moved.ids = nil
	}
	h.past = append(h.past, moved)
	if len(h.past) > remembered {
		h.past = slices.Delete(h.past, 0, len(h.past)-remembered)
	}

	said := eventOf(moved)
	for c := range h.clients {
		c.push(said)
	}
}

// beat has every client get a comment to which nothing else is on the way.
func (h *Hub) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		c.beat()
	}
}

// differences are the ids of what came, went or is another, sorted. They are not nil.
func differences(before, now map[string]string) []string {
	ids := map[string]struct{}{}
	for id, digest := range now {
		if old, known := before[id]; !known || old != digest {
			ids[id] = struct{}{}
		}
	}
	for id := range before {
		if _, still := now[id]; !still {
			ids[id] = struct{}{}
		}
	}
	return slices.AppendSeq(make([]string, 0, len(ids)), maps.Keys(ids))
}

// join lets a client in, with the events that it starts with. It reports false if the
// hub has ended.
func (h *Hub) join(since string) (c *client, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.ended:
		return nil, false
	default:
	}

	c = newClient(h.Queue)
	c.push(event{kind: "ready", version: h.shown.Version}.written())
	if missed, anything := h.missed(since); anything {
		c.push(eventOf(missed))
	}
	h.clients[c] = struct{}{}
	return c, true
}

// missed is what changed since a version, and whether anything has.
func (h *Hub) missed(since string) (change, bool) {
	if since == "" || since == h.shown.Version || h.shown.Parts == nil {
		return change{}, false
	}

	all := change{from: since, to: h.shown.Version}
	ids := map[string]struct{}{}
	for _, moved := range slices.Backward(h.past) {
		if moved.ids == nil {
			return all, true
		}
		for _, id := range moved.ids {
			ids[id] = struct{}{}
		}
		if len(ids) > h.Most {
			return all, true
		}
		if moved.from == since {
			all.ids = slices.AppendSeq(make([]string, 0, len(ids)), maps.Keys(ids))
			return all, true
		}
	}
	return all, true
}

func (h *Hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
}

// version is that which is shown now.
func (h *Hub) version() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown.Version
}

// end ends every stream; nobody gets in any more.
func (h *Hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.ended)
}

// Clients is how many streams are open.
func (h *Hub) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

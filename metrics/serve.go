// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Serve answers scrapes at /metrics until ctx is done.
func Serve(ctx context.Context, addr string, told *Fleets) error {
	r := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{told, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := r.Register(c); err != nil {
			return err
		}
	}

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	return listen(ctx, addr, mux)
}

// Health is what the probes of a `run` say: ready once it has looked, and healthy while
// rounds end.
type Health struct {
	// Patience is how long no round may end.
	Patience time.Duration
	// Now is the time of day.
	Now func() time.Time

	mu     sync.Mutex
	looked time.Time
	begun  time.Time
}

// Looked notes that a round has ended.
func (h *Health) Looked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = h.Now()
}

// Serve answers /healthz and /readyz until ctx is done.
func (h *Health) Serve(ctx context.Context, addr string) error {
	h.begun = h.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.healthy()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.ready()) })
	return listen(ctx, addr, mux)
}

func (h *Health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looked.IsZero() {
		return fmt.Errorf("the repository is not read yet")
	}
	return nil
}

func (h *Health) healthy() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := h.looked
	if since.IsZero() {
		since = h.begun
	}
	if lasts := h.Now().Sub(since); lasts > h.Patience {
		return fmt.Errorf("no round has ended for %s", lasts.Round(time.Second))
	}
	return nil
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// listen serves in the background. That the address is taken is said at once.
func listen(ctx context.Context, addr string, handler http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}

	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return nil
}

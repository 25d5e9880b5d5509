// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// ServeHTTP streams events until the request or the hub ends.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "a stream is read with GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}

	address := h.Address(r)
	if !h.Limits.enter(address) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many streams are open; try again later, or close pages that nobody looks at", http.StatusTooManyRequests)
		return
	}
	defer h.Limits.leave(address)

	// A browser that comes back has the header, a page that was just read the parameter.
	c, ok := h.join(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("since")))
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(c)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx keeps back what is short
	h.stream(r.Context(), c, w)
}

// stream writes what waits for a client, as it comes.
func (h *Hub) stream(ctx context.Context, c *client, w http.ResponseWriter) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.ended:
			return
		case <-c.wake:
		}

		waiting, lagged := c.take()
		if lagged {
			waiting = []message{event{kind: "resync", version: h.version()}.written()}
		}
		if err := h.send(w, waiting); err != nil {
			return // nobody reads any more
		}
	}
}

// send writes messages, each as a whole and at once.
func (h *Hub) send(w http.ResponseWriter, messages []message) error {
	to := http.NewResponseController(w)
	if err := to.SetWriteDeadline(time.Now().Add(h.Patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}

	for _, m := range messages {
		if _, err := w.Write(m); err != nil {
			return err
		}
	}
	if err := to.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"

	// memory is how many events a watcher may lie behind.
	memory = 256
)

type event struct {
	what     string
	resource schema.GroupResource
	o        *stored
}

// tell remembers an event and wakes the watchers. The lock is held.
func (s *store) tell(e event) {
	if len(s.events) >= 2*memory {
		s.events = append([]event(nil), s.events[memory:]...)
	}
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// since returns the events of a kind after a version, the version that they
// reach, and the channel that closes at the next. It reports false when they
// are forgotten, or were of another life.
func (s *store) since(resource schema.GroupResource, version int64, life int) (out []event, reached int64, next chan struct{}, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.events) > 0 && s.events[0].o.version > version+1 || life != s.life {
		return nil, 0, nil, false
	}
	for i := len(s.events) - 1; i >= 0 && s.events[i].o.version > version; i-- {
		if s.events[i].resource == resource {
			out = append(out, s.events[i])
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, s.version, s.changed, !s.ended
}

func (s *store) lives() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.life
}

// watch streams events until the client leaves or its time is over.
func (c *call) watch(w http.ResponseWriter) {
	query := c.r.URL.Query()
	match, err := c.selector()
	if err != nil {
		refuse(w, err)
		return
	}
	var end <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		end = timer.C
	}
	stream := stream{w: w, form: c.form(), k: c.kind}
	life := c.s.lives()
	var reached int64
	matched := map[string]bool{}
	switch from := query.Get("resourceVersion"); {
	case from == "" || from == "0" || query.Get("sendInitialEvents") == "true":
		var objects []*stored
		objects, reached = c.s.list(c.kind, c.namespace)
		w.Header().Set("Content-Type", "application/json")
		for _, o := range objects {
			if match(o) {
				matched[o.key()] = true
				stream.send(added, o)
			}
		}
		if query.Get("sendInitialEvents") == "true" {
			stream.bookmark(reached)
		}
	default:
		if reached, err = strconv.ParseInt(from, 10, 64); err != nil {
			refuse(w, apierrors.NewBadRequest("invalid resourceVersion "+from))
			return
		}
		w.Header().Set("Content-Type", "application/json")
	}
	for {
		events, upTo, next, ok := c.s.since(c.groupResource(), reached, life)
		if !ok {
			stream.fail(apierrors.NewResourceExpired("too old resource version"))
			return
		}
		for _, e := range events {
			if c.namespace == "" || e.o.namespace == c.namespace {
				stream.pass(e, match(e.o), matched)
			}
		}
		reached = upTo
		stream.flush()
		select {
		case <-next:
		case <-end:
			return
		case <-c.r.Context().Done():
			return
		}
	}
}

type stream struct {
	w    http.ResponseWriter
	form form
	k    *kind
}

// pass sends an event as it looks through the selector: an object that ceases
// to match is deleted for this watcher.
func (s stream) pass(e event, matches bool, matched map[string]bool) {
	at := e.o.key()
	switch {
	case matches:
		matched[at] = e.what != deleted
		s.send(e.what, e.o)
	case matched[at]:
		delete(matched, at)
		s.send(deleted, e.o)
	}
}

func (s stream) send(what string, o *stored) {
	s.write(what, s.form.encode(s.k, o))
}

func (s stream) write(what string, raw []byte) {
	line, err := json.Marshal(metav1.WatchEvent{Type: what, Object: rawExtension(raw)})
	if err == nil {
		_, _ = s.w.Write(append(line, '\n')) // a client that left is noticed by its context
	}
}

func (s stream) bookmark(version int64) {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": s.k.GroupVersion().String(), "kind": s.k.Kind,
		"metadata": map[string]any{
			"resourceVersion": strconv.FormatInt(version, 10),
			"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
	if err == nil {
		s.write("BOOKMARK", raw)
	}
}

func (s stream) fail(err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if raw, err := json.Marshal(status); err == nil {
		s.write("ERROR", raw)
	}
}

func (s stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/web/stream"
)

// Tests run in a bubble, whose clock stands still until nothing is left to do.

// reader is the other end of a stream.
type reader struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the stream has ended

	mu     sync.Mutex
	header http.Header
	status int
	got    bytes.Buffer
	stop   chan struct{} // while it is there, writes wait for it to close
}

// open opens a stream, which ends with the bubble.
func open(t *testing.T, hub http.Handler, since string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{cancel: cancel, done: make(chan struct{}), header: http.Header{}, status: http.StatusOK}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)
	if since != "" {
		request.Header.Set("Last-Event-ID", since)
	}
	go func() {
		defer close(r.done)
		hub.ServeHTTP(r, request)
	}()
	t.Cleanup(func() { cancel(); <-r.done })
	synctest.Wait()
	return r
}

func (r *reader) Header() http.Header { return r.header }

func (r *reader) WriteHeader(status int) { r.status = status }

func (r *reader) Flush() {}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	stop := r.stop
	r.mu.Unlock()
	if stop != nil {
		<-stop
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(p)
}

// hold has the reader read nothing, until the returned function is called.
func (r *reader) hold() (release func()) {
	stop := make(chan struct{})
	r.mu.Lock()
	r.stop = stop
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		r.stop = nil
		r.mu.Unlock()
		close(stop)
	}
}

// said returns what came since the last time: "changed v2 a b".
func (r *reader) said(t *testing.T) []string {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	events := []string{}
	for text := range strings.SplitSeq(strings.TrimSuffix(r.got.String(), "\n\n"), "\n\n") {
		if text == "" {
			continue
		}
		events = append(events, parse(t, text))
	}
	r.got.Reset()
	return events
}

// parse reads one event as a browser does.
func parse(t *testing.T, text string) string {
	t.Helper()
	fields := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ": "); ok {
			fields[name] = value
		}
	}
	if fields["event"] == "" {
		return text // a comment
	}

	var m stream.Message
	if err := json.Unmarshal([]byte(fields["data"]), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if m.Version != fields["id"] {
		t.Errorf("id %q of version %q", fields["id"], m.Version)
	}
	return strings.Join(append([]string{fields["event"], m.Version}, m.IDs...), " ")
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// run runs a hub with a first snapshot told.
func run(t *testing.T, o stream.Options) *stream.Hub {
	hub := stream.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); hub.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	publish(hub, "v1", "a", "1", "b", "1", "c", "1")
	time.Sleep(time.Second) // of the bubble
	return hub
}

func publish(hub *stream.Hub, version string, parts ...string) {
	s := stream.Snapshot{Version: version, Parts: map[string]string{}}
	for pair := range slices.Chunk(parts, 2) {
		s.Parts[pair[0]] = pair[1]
	}
	hub.Publish(s)
	synctest.Wait()
}

func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{})
		r := open(t, hub, "")
		want(t, r.said(t), "ready v1")

		publish(hub, "v2", "a", "1", "b", "2", "d", "1") // b is another, c went, d came
		want(t, r.said(t), "changed v2 b c d")

		time.Sleep(time.Second)
		publish(hub, "v2", "a", "1", "b", "2", "d", "1")
		want(t, r.said(t))
	})
}

// A push after a push is told half a second later, once, with all that it changed.
func TestChangesAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{})
		r := open(t, hub, "")
		r.said(t)

		began := time.Now()
		publish(hub, "v2", "a", "2", "b", "1", "c", "1")
		want(t, r.said(t), "changed v2 a")
		for i := range 100 {
			publish(hub, fmt.Sprintf("v%d", i+3), "a", "2", "b", fmt.Sprint(i), "c", "2")
		}
		want(t, r.said(t))

		time.Sleep(500*time.Millisecond - time.Since(began))
		want(t, r.said(t), "changed v102 b c")
	})
}

// What comes and goes within half a second is not told.
func TestChangesThatAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{})
		r := open(t, hub, "")
		publish(hub, "v2", "a", "2", "b", "1", "c", "1")
		r.said(t)

		publish(hub, "v3", "a", "2", "b", "9", "c", "1")
		publish(hub, "v4", "a", "2", "b", "1", "c", "1")
		time.Sleep(time.Second)
		want(t, r.said(t), "changed v4")
	})
}

func TestComingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{Most: 3})
		publish(hub, "v2", "a", "2", "b", "1", "c", "1")
		time.Sleep(time.Second)
		publish(hub, "v3", "a", "2", "b", "3", "c", "1")
		time.Sleep(time.Second)

		for since, told := range map[string][]string{
			"":          {"ready v3"},
			"v3":        {"ready v3"},
			"v2":        {"ready v3", "changed v3 b"},
			"v1":        {"ready v3", "changed v3 a b"},
			"forgotten": {"ready v3", "resync v3"},
		} {
			want(t, open(t, hub, since).said(t), told...)
		}

		publish(hub, "v4", "a", "4", "b", "4", "c", "4", "d", "4")
		time.Sleep(time.Second)
		want(t, open(t, hub, "v3").said(t), "ready v4", "resync v4")
	})
}

// A page says what it was made of where a browser cannot set a header.
func TestSinceParameter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{})
		publish(hub, "v2", "a", "2", "b", "1", "c", "1")
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			hub.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events?since=v1", nil))
		}()
		synctest.Wait()
		cancel()
		<-ended
		if !strings.Contains(w.Body.String(), `event: changed`) || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%v\n%s", w.Header(), w.Body)
		}
	})
}

// More changes than can be listed are one resync, also for who was there.
func TestTooManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{Most: 2})
		r := open(t, hub, "")
		r.said(t)
		publish(hub, "v2", "a", "2", "b", "2", "c", "2")
		want(t, r.said(t), "resync v2")
	})
}

// A client that reads nothing gets exactly one resync when it reads again, and goes on;
// nobody waits for it meanwhile.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{Queue: 4})
		slow, quick := open(t, hub, ""), open(t, hub, "")
		slow.said(t)
		quick.said(t)

		release := slow.hold()
		for i := range 20 {
			publish(hub, fmt.Sprintf("w%d", i), "a", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		if told := quick.said(t); len(told) != 20+1 { // and a heartbeat
			t.Errorf("the quick one was told %d times: %q", len(told), told)
		}

		release()
		want(t, slow.said(t), "changed w0 a b c", "resync w19")
		publish(hub, "x", "a", "x")
		want(t, slow.said(t), "changed x a")
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{})
		r := open(t, hub, "")
		r.said(t)
		time.Sleep(44 * time.Second) // and one has passed
		want(t, r.said(t), ":", ":", ":")
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := stream.NewLimits(3, 2)
		address := ""
		o := stream.Options{Limits: limits, Address: func(*http.Request) string { return address }}
		hub, other := run(t, o), run(t, o)

		address = "a"
		first, second := open(t, hub, ""), open(t, other, "")
		if full := open(t, hub, ""); full.status != http.StatusTooManyRequests || full.header.Get("Retry-After") == "" {
			t.Errorf("third of an address: %d", full.status)
		}
		address = "b"
		third := open(t, hub, "")
		if full := open(t, hub, ""); full.status != http.StatusTooManyRequests {
			t.Errorf("fourth of all: %d", full.status)
		}

		first.cancel()
		<-first.done
		if again := open(t, hub, ""); again.status != http.StatusOK {
			t.Errorf("after one has left: %d", again.status)
		}
		if second.status != http.StatusOK || third.status != http.StatusOK || hub.Clients() != 2 {
			t.Errorf("%d, %d, %d clients", second.status, third.status, hub.Clients())
		}
	})
}

func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := stream.New(stream.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); hub.Run(ctx) }()
		r := open(t, hub, "")

		cancel()
		<-ended
		<-r.done
		if late := open(t, hub, ""); late.status != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", late.status)
		}
		if hub.Clients() != 0 {
			t.Errorf("%d clients are left", hub.Clients())
		}
		hub.Publish(stream.Snapshot{Version: "late"}) // and nobody waits for anybody
	})
}

func TestMethods(t *testing.T) {
	hub := stream.New(stream.Options{})
	for method, status := range map[string]int{http.MethodHead: http.StatusOK, http.MethodPost: http.StatusMethodNotAllowed} {
		w := httptest.NewRecorder()
		hub.ServeHTTP(w, httptest.NewRequest(method, "/events", nil))
		if w.Code != status || w.Body.Len() > 0 && method == http.MethodHead {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// A version or an id that breaks lines adds no event and no field.
func TestHostileNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{})
		r := open(t, hub, "")
		r.said(t)
		publish(hub, "v2", "a", "1", "b", "1", "c", "1", "x\n\nevent: resync\ndata: {}", "1")
		r.mu.Lock()
		got := r.got.String()
		r.mu.Unlock()
		if n := strings.Count(got, "\n\n"); n != 1 || strings.Contains(got, "\nevent: resync") {
			t.Errorf("%d events:\n%s", n, got)
		}
	})
}

// Many publish, come, go and read slowly at once; the race detector watches. Whoever is
// there at the end knows the last version.
func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := run(t, stream.Options{Queue: 2, Limits: stream.NewLimits(1000, 1000)})
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				for j := range 5 {
					time.Sleep(time.Duration(i*7+j*113) * time.Millisecond)
					hub.Publish(stream.Snapshot{Version: fmt.Sprintf("%d.%d", i, j), Parts: map[string]string{fmt.Sprint(i): fmt.Sprint(j)}})
				}
			})
		}
		readers := make([]*reader, 100)
		for i := range readers {
			readers[i] = open(t, hub, "")
			if i%3 == 0 {
				release := readers[i].hold()
				all.Go(func() { time.Sleep(time.Second); release() })
			}
			if i%5 == 0 {
				all.Go(func() { time.Sleep(300 * time.Millisecond); readers[i].cancel() })
			}
		}
		all.Wait()
		hub.Publish(stream.Snapshot{Version: "last"})
		time.Sleep(2 * time.Second)

		for i, r := range readers {
			told := r.said(t)
			if i%5 != 0 && !strings.Contains(told[len(told)-1], " last") {
				t.Errorf("reader %d was last told %q", i, told[len(told)-1])
			}
		}
		if hub.Clients() != 80 {
			t.Errorf("%d clients", hub.Clients())
		}
	})
}

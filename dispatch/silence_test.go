// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"encoding/pem"
	"errors"
	"math/bits"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
)

// wire carries connections to a server. While it is cut it takes what it is
// given and passes nothing on, and a connection of that time stays dead
// afterwards, as behind a gateway that forgot it.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	isCut bool
	lines []*line
}

type line struct{ dead atomic.Bool }

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listen, to: to}
	go w.serve()
	t.Cleanup(func() { listen.Close() })
	return w
}

func (w *wire) cut(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = on
	for _, l := range w.lines {
		l.dead.Store(true)
	}
	w.lines = nil
}

func (w *wire) serve() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			near.Close()
			continue
		}
		l := &line{}
		w.mu.Lock()
		l.dead.Store(w.isCut)
		w.lines = append(w.lines, l)
		w.mu.Unlock()
		go l.carry(near, far)
		go l.carry(far, near)
	}
}

func (l *line) carry(from, to net.Conn) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if !l.dead.Load() {
			_, _ = to.Write(b[:n])
		}
	}
}

// secure serves an embedded member as real ones are: HTTP/2 over TLS.
func secure(t *testing.T, s *embedded.Server) *httptest.Server {
	t.Helper()
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("%s %s came by %s", r.Method, r.URL, r.Proto)
		}
		s.ServeHTTP(w, r)
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	return front
}

func trusting(front *httptest.Server, address string) *rest.Config {
	cfg := &rest.Config{Host: "https://" + address}
	cfg.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return cfg
}

// F16, F19: requests are lost in a hole. When the member answers again, it is
// served long before those would have timed out, and each object once.
func TestHealedMemberIsServedSoon(t *testing.T) {
	s := start(t, "eu-1")
	front := secure(t, s)
	way := newWire(t, front.Listener.Addr().String())
	m, err := push.New(trusting(front, way.Addr().String()), push.Options{Keepalive: push.Keepalive{Dial: time.Second, Ping: 200 * time.Millisecond, Pong: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", m)
	level := func(colour string) {
		sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", colour), configMap("b", colour), configMap("c", colour))})
	}
	level("red")
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	s.ResetRequests()
	way.cut(true)
	began := time.Now()
	level("blue")
	until(t, func() bool {
		left := d.Outcomes()
		return len(left) == 1 && errors.Is(left[0].Err, member.Unreachable)
	})
	way.cut(false)
	if left := wait(t, d, 15*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s, and a request that was lost takes 30s", took)
	}
	// One asks who it is, and the rest follows.
	if n := patches(s); n != 3 || len(s.Requests()) != 4 {
		t.Errorf("%d requests arrived, %d of them patches; want 4 and 3", len(s.Requests()), n)
	}
}

// What a member takes long over is not lost: it is waited for, and not asked
// for again.
func TestSlowMemberIsWaitedFor(t *testing.T) {
	s := start(t, "eu-1")
	front := secure(t, s)
	m, err := push.New(trusting(front, front.Listener.Addr().String()), push.Options{Keepalive: push.Keepalive{Dial: 10 * time.Second, Ping: 20 * time.Millisecond, Pong: 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	var failures atomic.Int64
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick, Log: func(e dispatch.Event) {
		if e.Err != nil {
			failures.Add(1)
		}
	}})
	defer d.Close(context.Background())
	d.SetMember("eu-1", m)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"), configMap("b", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	s.ResetRequests()
	s.SetLatency(2 * time.Second)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"), configMap("b", "blue"))})
	if left := wait(t, d, 20*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if n := len(s.Requests()); n != 2 || failures.Load() != 0 {
		t.Errorf("%d requests and %d failures, want 2 patches and none", n, failures.Load())
	}
}

// A member that was long away is asked often, since nothing reaches it, and
// one that answers with failures is not.
func TestLongSilence(t *testing.T) {
	s := start(t, "eu-1")
	honest := leads(t, s)
	var asked atomic.Int64
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: dispatch.Backoff{
		Base: time.Millisecond, Max: time.Hour, Silent: 50 * time.Millisecond, Jitter: func() float64 { return 0 },
	}})
	defer d.Close(context.Background())
	d.SetMember("eu-1", through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
		asked.Add(1)
		return honest.RoundTrip(r)
	}))))
	s.Partition(true)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	// After thirty failures the pause would be longer than a test.
	until(t, func() bool { return asked.Load() > 30 })
	s.Partition(false)
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}

	s.Fail(func(*http.Request) (int, bool) { return http.StatusBadGateway, true })
	asked.Store(0)
	began := time.Now()
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"))})
	wait(t, d, 500*time.Millisecond)
	// The pauses are 1 ms, 2 ms, 4 ms and so on.
	if n, most := int(asked.Load()), 1+bits.Len(uint(time.Since(began).Milliseconds())); n > most {
		t.Errorf("one that answers was asked %d times, want no more than %d", n, most)
	}
}

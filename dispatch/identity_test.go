// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
)

// redirected is a member whose address leads somewhere else from one moment
// on: another cluster, or something that is none.
type redirected struct {
	mu sync.Mutex
	to http.RoundTripper
}

func to(there http.RoundTripper) *redirected { return &redirected{to: there} }

func (r *redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	there := r.to
	r.mu.Unlock()
	return there.RoundTrip(req)
}

// turn has the address lead to there, and returns where it led before.
func (r *redirected) turn(there http.RoundTripper) (before http.RoundTripper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.to = r.to, there
	return before
}

// leads to a server, whatever the address says.
func leads(t testing.TB, s *embedded.Server) http.RoundTripper {
	t.Helper()
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.URL.Host = strings.TrimPrefix(s.URL(), "http://")
		return http.DefaultTransport.RoundTrip(req)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func through(t testing.TB, r *redirected) member.Member {
	t.Helper()
	m, err := push.New(&rest.Config{Host: "http://eu-1.invalid", Transport: r}, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func writes(s *embedded.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Method != http.MethodGet {
			n++
		}
	}
	return n
}

func identityOf(t testing.TB, s *embedded.Server) types.UID {
	t.Helper()
	var ref member.Ref
	ref.Version, ref.Kind, ref.Name = "v1", "Namespace", "kube-system"
	found, err := pushTo(t, s).Get(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return found.UID
}

// T47, F26: a member that was rebuilt behind its address is frozen, nothing is
// created or deleted there, until its Cluster document says that it is the one.
func TestRebuiltMemberIsFrozenUntilItIsNamed(t *testing.T) {
	before, after := start(t, "before"), start(t, "after")
	inventory := &dispatchtest.Inventory{}
	way := to(leads(t, before))
	a, b, same := configMap("a", "red"), configMap("b", "red"), configMap("same", "red")
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	d.SetMember("eu-1", through(t, way))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(a, b, same)})
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	d.Close(context.Background())

	way.turn(leads(t, after))
	d = dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", through(t, way))
	works := dispatchtest.Works{"eu-1": append(apply(configMap("a", "blue"), same), dispatchtest.Work{Verb: dispatch.Delete, Object: b})}
	sync1(t, d, works)
	left := wait(t, d, 10*time.Second)
	if len(left) != 1 || !errors.Is(left[0].Err, member.Replaced) || !left[0].Final {
		t.Fatalf("left: %v", left)
	}
	if text := left[0].Err.Error(); !strings.Contains(text, "spec.id: "+string(identityOf(t, after))) {
		t.Errorf("it does not say what to do: %s", text)
	}
	if n := writes(after); n > 0 {
		t.Errorf("%d writes to the other cluster", n)
	}

	d.Expect("eu-1", identityOf(t, after))
	d.SetMember("eu-1", through(t, way))
	sync1(t, d, works)
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	if !holds(t, after, "a") || !holds(t, after, "same") || !holds(t, before, "b") {
		t.Error("the new cluster lacks an object, or the old one was touched")
	}
	for _, r := range after.Requests() {
		if r.Method == http.MethodDelete {
			t.Errorf("the new cluster was sent %s %s", r.Method, r.Path)
		}
	}
}

// T47, F26: it is rebuilt while we run, so what is known of it is not there: it
// is asked who it is before anything is made again.
func TestRebuiltWhileWeRun(t *testing.T) {
	before, after := start(t, "before"), start(t, "after")
	way := to(leads(t, before))
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", through(t, way))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	time.Sleep(2100 * time.Millisecond) // who it is was asked a moment ago
	way.turn(leads(t, after))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"))})
	left := wait(t, d, 10*time.Second)
	if len(left) != 1 || !errors.Is(left[0].Err, member.Replaced) || !left[0].Final {
		t.Errorf("left: %v", left)
	}
	if holds(t, after, "a") {
		t.Error("it was made in the other cluster")
	}
}

// T47: a cluster that spec.id does not mean gets nothing, also where nothing is
// known of the one that it means.
func TestExpectedClusterIsAwaited(t *testing.T) {
	s := start(t, "one")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.Expect("eu-1", "the-other")
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	left := wait(t, d, 10*time.Second)
	if len(left) != 1 || !errors.Is(left[0].Err, member.Replaced) || !left[0].Final || !strings.Contains(left[0].Err.Error(), "says the-other") {
		t.Fatalf("left: %v", left)
	}
	if n := writes(s); n > 0 {
		t.Errorf("%d writes to it", n)
	}
}

// Who does not let us ask is whoever it was, and nobody else's double.
func TestWhoMayNotBeAskedIsBelieved(t *testing.T) {
	inventory := &dispatchtest.Inventory{}
	servers := map[string]*embedded.Server{"eu-1": start(t, "eu-1"), "eu-2": start(t, "eu-2")}
	begin := func(works dispatchtest.Works) {
		t.Helper()
		d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
		defer d.Close(context.Background())
		for name := range works {
			d.SetMember(name, pushTo(t, servers[name]))
		}
		sync1(t, d, works)
		if left := wait(t, d, 10*time.Second); len(left) > 0 {
			t.Fatal(left[0].Err)
		}
	}
	begin(dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	known := inventory.Entries("eu-1")
	for _, s := range servers {
		s.Fail(func(r *http.Request) (int, bool) {
			return http.StatusForbidden, strings.HasSuffix(r.URL.Path, "/namespaces/kube-system")
		})
	}
	before := writes(servers["eu-1"])
	begin(dispatchtest.Works{"eu-1": apply(configMap("a", "red"), configMap("b", "red")), "eu-2": apply(configMap("a", "red"))})
	if n := writes(servers["eu-1"]) - before; n != 1 {
		t.Errorf("%d writes, want the one of what is new", n)
	}
	for id, e := range known {
		if now := inventory.Entries("eu-1")[id]; now != e {
			t.Errorf("the inventory has %v, want %v", now, e)
		}
	}
}

// T47: two names for one cluster: what the first holds is not sent twice, and
// not deleted by the second.
func TestTwoNamesForOneClusterAreRefused(t *testing.T) {
	s := start(t, "one")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	before := writes(s)
	d.SetMember("eu-2", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red")), "eu-2": {{Verb: dispatch.Delete, Object: configMap("a", "red")}}})
	left := wait(t, d, 10*time.Second)
	if len(left) != 1 || left[0].Cluster != "eu-2" || !errors.Is(left[0].Err, member.Replaced) || !strings.Contains(left[0].Err.Error(), "the same cluster as eu-1") {
		t.Fatalf("left: %v", left)
	}
	if n := writes(s) - before; n > 0 {
		t.Errorf("%d writes under the second name", n)
	}
}

// T48: a proxy that says of everything that it is not there, in a Kubernetes
// API's own words, is not believed: nothing is made again, nothing forgotten.
func TestMemberThatHasNothingIsNotBelieved(t *testing.T) {
	s := start(t, "one")
	way := to(leads(t, s))
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", through(t, way))
	a, b := configMap("a", "red"), configMap("b", "red")
	sync1(t, d, dispatchtest.Works{"eu-1": apply(a, b)})
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	time.Sleep(2100 * time.Millisecond) // who it is was asked a moment ago

	known := inventory.Entries("eu-1")
	var creates atomic.Int64
	real := way.turn(roundTrip(func(req *http.Request) (*http.Response, error) {
		name := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
		if req.Method == http.MethodPatch && !strings.Contains(req.URL.RawQuery, "force") {
			creates.Add(1)
		}
		return answer(req, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found","details":{"name":"`+name+`"}}`), nil
	}))
	sync1(t, d, dispatchtest.Works{"eu-1": append(apply(configMap("a", "blue")), dispatchtest.Work{Verb: dispatch.Delete, Object: b})})
	left := wait(t, d, 700*time.Millisecond)
	if len(left) != 1 || !errors.Is(left[0].Err, member.Unreachable) {
		t.Fatalf("left: %v", left)
	}
	if n := creates.Load(); n > 0 {
		t.Errorf("%d creates", n)
	}
	if now := inventory.Entries("eu-1"); len(now) != 2 || !maps.Equal(now, known) {
		t.Errorf("the inventory has %v, want %v", now, known)
	}
	way.turn(real)
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	if holds(t, s, "b") {
		t.Error("b was not deleted after all")
	}
}

// answer is one of a server's.
func answer(req *http.Request, code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: req, ContentLength: int64(len(body))}
}

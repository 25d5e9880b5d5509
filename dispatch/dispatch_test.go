// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
	"github.com/fairlead/fairlead/object"
)

func configMap(name, colour string) map[string]any {
	return dispatchtest.Object(fmt.Sprintf(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {colour: %s}}", name, colour))
}

func apply(objects ...map[string]any) []dispatchtest.Work {
	var out []dispatchtest.Work
	for _, o := range objects {
		out = append(out, dispatchtest.Work{Verb: dispatch.Apply, Object: o})
	}
	return out
}

func pushTo(t testing.TB, s *embedded.Server) member.Member {
	t.Helper()
	m, err := push.New(s.Config(), push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var quick = dispatch.Backoff{Base: 20 * time.Millisecond, Max: 200 * time.Millisecond, Jitter: func() float64 { return 0 }}

func sync1(t testing.TB, d *dispatch.Dispatcher, works dispatchtest.Works) *dispatchtest.Level {
	t.Helper()
	fleet := dispatchtest.Fleet(works)
	if err := d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	return fleet
}

func wait(t testing.TB, d *dispatch.Dispatcher, patience time.Duration) []dispatch.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.Wait(ctx)
}

func holds(t testing.TB, s *embedded.Server, name string) bool {
	t.Helper()
	found, err := pushTo(t, s).Get(context.Background(), refConfigMap(name))
	if err != nil {
		t.Fatal(err)
	}
	return found != nil
}

func refConfigMap(name string) member.Ref {
	var ref member.Ref
	ref.Version, ref.Kind, ref.Namespace, ref.Name = "v1", "ConfigMap", "default", name
	return ref
}

// One member is cut off: the others get theirs, it is one line, and when it
// comes back it gets the newest level only (digest §13, case 72).
func TestPartition(t *testing.T) {
	var servers []*embedded.Server
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	level := func(colour string) dispatchtest.Works {
		works := dispatchtest.Works{}
		for i := range 4 {
			works[fmt.Sprintf("m%d", i)] = apply(configMap("a", colour), configMap("b", colour))
		}
		return works
	}
	for i := range 4 {
		s := start(t, fmt.Sprintf("m%d", i))
		servers = append(servers, s)
		d.SetMember(fmt.Sprintf("m%d", i), pushTo(t, s))
	}
	sync1(t, d, level("red"))
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	servers[2].Partition(true)
	servers[2].ResetRequests()
	sync1(t, d, level("blue"))
	left := wait(t, d, 300*time.Millisecond)
	if len(left) != 1 || left[0].Cluster != "m2" || left[0].ID != (object.ID{}) || left[0].Final || left[0].Waiting != 2 {
		t.Fatalf("left: %+v", left)
	}
	if !errors.Is(left[0].Err, member.Unreachable) {
		t.Errorf("it reads %q", left[0].Err)
	}
	if got, want := left[0].Err.Error(), "reach on m2: "; !strings.HasPrefix(got, want) {
		t.Errorf("it reads %q, want %q first", got, want)
	}
	again := wait(t, d, 300*time.Millisecond)
	if len(again) != 1 || again[0].Err.Error() != left[0].Err.Error() {
		t.Errorf("the words change: %q, %q", left[0].Err, again[0].Err)
	}
	sync1(t, d, level("green"))
	servers[2].Partition(false)
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	patches := 0
	for _, r := range servers[2].Requests() {
		if r.Method == http.MethodPatch {
			patches++
		}
	}
	if patches != 2 {
		t.Errorf("%d patches reached it, want 2: the newest level of two objects", patches)
	}
}

// A member that asks for a pause gets one, and no more than one request when
// it is over.
func TestRetryAfter(t *testing.T) {
	s := start(t, "eu-1")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	wait(t, d, 10*time.Second)

	var mu sync.Mutex
	refused := 0
	s.RetryAfter(time.Second)
	s.Fail(func(*http.Request) (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if refused > 0 {
			return 0, false
		}
		refused++
		return http.StatusTooManyRequests, true
	})
	s.ResetRequests()
	began := time.Now()
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"))})
	early := wait(t, d, 200*time.Millisecond)
	if len(early) != 1 || !errors.Is(early[0].Err, member.Throttled) || early[0].Final {
		t.Errorf("meanwhile: %v", early)
	}
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it took %s, and the member asked for a second", took)
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// The process ends in the middle of many works. The next one repeats at most
// what was in flight.
func TestKilledInTheMiddle(t *testing.T) {
	s := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	var objects []map[string]any
	for i := range 200 {
		objects = append(objects, configMap(fmt.Sprintf("c%03d", i), "red"))
	}
	works := dispatchtest.Works{"eu-1": apply(objects...)}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick, Parallel: 4})
	d.SetMember("eu-1", pushTo(t, s))
	s.SetLatency(5 * time.Millisecond)
	sync1(t, d, works)
	for patches(s) < 50 {
		time.Sleep(time.Millisecond)
	}
	// What is on disk at that moment is all that the next process has.
	left := &dispatchtest.Inventory{}
	saved := map[object.ID]*dispatch.Entry{}
	for id, e := range inventory.Entries("eu-1") {
		saved[id] = &e
	}
	if len(saved) != 200 {
		t.Errorf("%d intents and entries, want 200", len(saved))
	}
	if err := left.Save(map[string]map[object.ID]*dispatch.Entry{"eu-1": saved}); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = d.Close(ended)
	inventory = left
	s.SetLatency(0)
	d = dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, works)
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if n := patches(s); n > 200+4 {
		t.Errorf("%d patches for 200 objects and 4 in flight", n)
	}
	for id, e := range inventory.Entries("eu-1") {
		if e.Digest == (object.Digest{}) || e.UID == "" {
			t.Errorf("%v is not acknowledged: %v", id, e)
		}
	}
}

func patches(s *embedded.Server) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Method == http.MethodPatch {
			n++
		}
	}
	return n
}

// Close waits for what is in flight, starts nothing more and saves.
func TestCloseDrains(t *testing.T) {
	s := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Parallel: 2})
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("first", "red"))})
	wait(t, d, 10*time.Second)
	s.ResetRequests()
	s.SetLatency(200 * time.Millisecond)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("first", "blue"), configMap("a", "red"), configMap("b", "red"))})
	time.Sleep(50 * time.Millisecond)
	if err := d.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	sent := len(s.Requests())
	if sent > 2 {
		t.Errorf("%d requests, and two were in flight", sent)
	}
	s.SetLatency(0)
	for id, e := range inventory.Entries("eu-1") {
		found, err := pushTo(t, s).Get(context.Background(), refConfigMap(id.Name))
		if err != nil {
			t.Fatal(err)
		}
		var holds string
		if found != nil {
			holds = found.Annotations[object.AnnotationDigest]
		}
		if holds != e.Digest.String() {
			t.Errorf("%v: the member holds %q, saved is %q", id, holds, e.Digest)
		}
	}
	sent = len(s.Requests())
	time.Sleep(300 * time.Millisecond)
	if n := len(s.Requests()); n != sent {
		t.Errorf("%d requests came after the end", n-sent)
	}
}

// Intents are saved before a member is touched, and one that cannot be saved
// is not acted on. Who the member is may be asked meanwhile.
func TestIntentFirst(t *testing.T) {
	s := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	broken := errors.New("disk full")
	inventory.Refuse(broken)
	fleet := dispatchtest.Fleet(dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if err := d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); !errors.Is(err, broken) {
		t.Errorf("sync: %v, want %v", err, broken)
	}
	wait(t, d, 100*time.Millisecond)
	for _, r := range s.Requests() {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.Path, "/namespaces/kube-system") {
			t.Errorf("sent was %s %s", r.Method, r.Path)
		}
	}
	inventory.Refuse(nil)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
}

// A thousand acknowledgements are few writes of the inventory.
func TestAcknowledgementsAreGathered(t *testing.T) {
	s := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	var objects []map[string]any
	for i := range 500 {
		objects = append(objects, configMap(fmt.Sprintf("c%03d", i), "red"))
	}
	sync1(t, d, dispatchtest.Works{"eu-1": apply(objects...)})
	if left := wait(t, d, 30*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if n := inventory.Saves(); n > 30 {
		t.Errorf("%d writes for 500 acknowledgements", n)
	}
}

// First contact that cannot read everything sends nothing.
func TestFirstContactNeedsEveryList(t *testing.T) {
	s := start(t, "eu-1")
	s.Fail(func(r *http.Request) (int, bool) {
		return http.StatusForbidden, strings.HasSuffix(r.URL.Path, "/secrets")
	})
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	secret := dispatchtest.Object("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}}")
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"), secret)})
	left := wait(t, d, 5*time.Second)
	if len(left) != 1 || !left[0].Final || !errors.Is(left[0].Err, member.Forbidden) {
		t.Fatalf("left: %+v", left)
	}
	if want := "list on eu-1: Secret in default: 403"; !strings.HasPrefix(left[0].Err.Error(), want) {
		t.Errorf("it reads %q, want %q", left[0].Err, want)
	}
	if patches(s) != 0 {
		t.Error("something was sent")
	}
	s.Fail(nil)
	until(t, func() bool { return holds(t, s, "a") })
}

func until(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in time")
		}
	}
}

// What fails is tried again, alone, and nothing waits for it.
func TestServerErrors(t *testing.T) {
	s := start(t, "eu-1")
	var mu sync.Mutex
	failures := map[string]int{}
	s.Fail(func(r *http.Request) (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/bad") || failures["bad"] >= 3 {
			return 0, false
		}
		failures["bad"]++
		return http.StatusServiceUnavailable, true
	})
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("bad", "red"), configMap("good", "red"))})
	until(t, func() bool { return holds(t, s, "good") })
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	mu.Lock()
	defer mu.Unlock()
	if failures["bad"] != 3 {
		t.Errorf("%d failures", failures["bad"])
	}
}

// A cluster that left is sent nothing, and when it comes back it resumes.
func TestForgotten(t *testing.T) {
	s := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	m := pushTo(t, s)
	d.SetMember("eu-1", m)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	wait(t, d, 10*time.Second)
	d.SetMember("eu-1", nil)
	s.ResetRequests()
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"))})
	wait(t, d, 10*time.Second)
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests to a cluster that left", n)
	}
	d.SetMember("eu-1", m)
	fleet := dispatchtest.Fleet(dispatchtest.Works{"eu-1": apply(configMap("a", "blue"))})
	if err := d.Sync(fleet, nil, dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if n := patches(s); n != 1 {
		t.Errorf("%d patches, want 1", n)
	}
}

// Definitions and namespaces go first, webhooks last, deletes in reverse.
func TestOrder(t *testing.T) {
	s := start(t, "eu-1")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	var objects []map[string]any
	for _, text := range []string{
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hooks}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
	} {
		objects = append(objects, dispatchtest.Object(text))
	}
	sync1(t, d, dispatchtest.Works{"eu-1": apply(objects...)})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	order := func(method string) (out []string) {
		for _, r := range s.Requests() {
			if r.Method == method {
				out = append(out, r.Path[strings.LastIndex(strings.TrimRight(r.Path, "/"), "/")+1:])
			}
		}
		return out
	}
	if got, want := order(http.MethodPatch), []string{"shop", "a", "hooks"}; !slices.Equal(got, want) {
		t.Errorf("applied %v, want %v", got, want)
	}
	var gone []dispatchtest.Work
	for _, o := range objects {
		gone = append(gone, dispatchtest.Work{Verb: dispatch.Delete, Object: o})
	}
	sync1(t, d, dispatchtest.Works{"eu-1": gone})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if got, want := order(http.MethodDelete), []string{"hooks", "a", "shop"}; !slices.Equal(got, want) {
		t.Errorf("deleted %v, want %v", got, want)
	}
}

// What was queued while a member did not answer has the turn of what is wanted by
// then: a namespace that was to be updated and then given up goes after all that is
// in it.
func TestOrderOfWhatWasGivenUpMeanwhile(t *testing.T) {
	s := start(t, "eu-1")
	var down atomic.Bool
	cfg := s.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return slow(func(r *http.Request) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(r)
		})
	})
	m, err := push.New(cfg, push.Options{})
	if err != nil {
		t.Fatal(err)
	}

	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", m)
	works := func(v dispatch.Verb, label string) (out []dispatchtest.Work) {
		for _, text := range []string{
			"{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {l: " + label + "}}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {l: " + label + "}}}",
		} {
			out = append(out, dispatchtest.Work{Verb: v, Object: dispatchtest.Object(text)})
		}
		return out
	}
	sync1(t, d, dispatchtest.Works{"eu-1": works(dispatch.Apply, "first")})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}

	down.Store(true)
	sync1(t, d, dispatchtest.Works{"eu-1": works(dispatch.Apply, "second")})
	wait(t, d, 200*time.Millisecond)
	sync1(t, d, dispatchtest.Works{"eu-1": works(dispatch.Delete, "second")})
	down.Store(false)
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}

	var deleted []string
	for _, r := range s.Requests() {
		if r.Method == http.MethodDelete {
			deleted = append(deleted, r.Path)
		}
	}
	want := []string{"/api/v1/namespaces/shop/configmaps/a", "/api/v1/namespaces/shop"}
	if !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, want %q", deleted, want)
	}
}

// An answer that is no API's is no statement about objects.
func TestNotAKubernetesAPI(t *testing.T) {
	s := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	a := configMap("a", "red")
	sync1(t, d, dispatchtest.Works{"eu-1": apply(a)})
	wait(t, d, 10*time.Second)
	for _, code := range []int{http.StatusNotFound, http.StatusBadGateway} {
		s.Fail(func(*http.Request) (int, bool) { return code, true })
		sync1(t, d, dispatchtest.Works{"eu-1": {{Verb: dispatch.Delete, Object: a}}})
		if left := wait(t, d, 200*time.Millisecond); len(left) != 1 {
			t.Errorf("%d: left %v, want the object still to be deleted", code, left)
		}
		if _, ok := inventory.Entries("eu-1")[dispatchtest.ID(a)]; !ok {
			t.Errorf("%d: the object left the inventory", code)
		}
	}
	s.Fail(nil)
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if holds(t, s, "a") {
		t.Error("it was not deleted in the end")
	}
}

// A member does not send us elsewhere.
func TestRedirect(t *testing.T) {
	s := start(t, "eu-1")
	elsewhere := httptest.NewServer(http.RedirectHandler(s.URL(), http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	m, err := push.New(&rest.Config{Host: elsewhere.URL}, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Apply(context.Background(), configMap("a", "red"), member.ApplyOptions{}); !errors.Is(err, member.Unreachable) {
		t.Errorf("apply: %v", err)
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// Two hundred changes of the level while requests are slow: in the end the
// member holds the last one.
func TestLevelNotEdges(t *testing.T) {
	s := start(t, "eu-1")
	s.SetLatency(2 * time.Millisecond)
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	for i := range 200 {
		sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", fmt.Sprintf("c%d", i)))})
	}
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	found, err := pushTo(t, s).Get(context.Background(), refConfigMap("a"))
	if err != nil || found == nil {
		t.Fatal(found, err)
	}
	want := dispatchtest.Digest(configMap("a", "c199")).String()
	if got := found.Annotations[object.AnnotationDigest]; got != want {
		t.Errorf("the member holds another level")
	}
	if n := patches(s); n > 150 {
		t.Errorf("%d patches for 200 levels", n)
	}
}

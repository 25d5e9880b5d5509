// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
)

const cluster = "eu-1"

// patience is how long a story may take on a busy machine.
const patience = 30 * time.Second

// world is one story: a namespace of its own on the target, a dispatcher with
// an inventory, and a client of someone else.
type world struct {
	t         *testing.T
	ns        string
	counter   *counter
	member    member.Member
	inventory *Inventory
	d         *dispatch.Dispatcher
	works     []Work
	docs      []map[string]any
	client    dynamic.Interface
	reader    *push.Reader
	watch     bool           // the dispatcher watches its members
	by        *object.Marker // the fleet; nil is Sea
}

var worlds atomic.Int64

func newWorld(t *testing.T, cfg *rest.Config, wrap func(member.Member) member.Member) *world {
	t.Helper()
	client, err := dynamic.NewForConfig(rest.CopyConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, client: client,
		ns:        fmt.Sprintf("story-%d", worlds.Add(1)),
		counter:   &counter{},
		inventory: &Inventory{},
	}
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.counter.next = next
		return w.counter
	})
	m, err := push.New(counted, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.member = wrap(m)
	if w.reader, err = push.NewReader(rest.CopyConfig(cfg)); err != nil {
		t.Fatal(err)
	}
	w.restart()
	t.Cleanup(func() { w.close() })
	return w
}

// restart is the process ending and another beginning on the same inventory.
func (w *world) restart() {
	w.close()
	w.d = dispatch.New(w.inventory, dispatch.Options{Backoff: dispatch.Backoff{Base: 50 * time.Millisecond, Max: time.Second}, Watch: w.watch})
	w.d.SetMember(cluster, w.member)
}

func (w *world) close() {
	if w.d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.d.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// want makes works the level, waits and returns what is left. A work that is
// named again replaces the one of before.
func (w *world) want(works ...Work) []dispatch.Outcome {
	w.t.Helper()
	for _, work := range works {
		w.works = slices.DeleteFunc(w.works, func(old Work) bool { return ID(old.Object) == ID(work.Object) })
	}
	w.works = append(w.works, works...)
	fleet := Fleet(Works{cluster: w.works}, w.docs...)
	fleet.By = marker(w.by)
	if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		w.t.Fatalf("sync: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return w.d.Wait(ctx)
}

// must is want with nothing left.
func (w *world) must(works ...Work) {
	w.t.Helper()
	for _, o := range w.want(works...) {
		w.t.Errorf("left: %v", o.Err)
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// object reads YAML in which NS stands for the story's namespace.
func (w *world) object(text string) map[string]any {
	return Object(strings.ReplaceAll(text, "NS", w.ns))
}

func (w *world) namespace() {
	w.t.Helper()
	w.create("kubectl-create", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": w.ns},
	})
}

var plurals = map[string]string{
	"ConfigMap": "configmaps", "Job": "jobs", "Deployment": "deployments", "Service": "services", "Namespace": "namespaces",
	"Secret": "secrets", "CustomResourceDefinition": "customresourcedefinitions", "Ship": "ships",
}

func (w *world) resource(o map[string]any) dynamic.ResourceInterface {
	u := &unstructured.Unstructured{Object: o}
	gvk := u.GroupVersionKind()
	gvr := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plurals[gvk.Kind]}
	if u.GetNamespace() == "" {
		return w.client.Resource(gvr)
	}
	return w.client.Resource(gvr).Namespace(u.GetNamespace())
}

func (w *world) create(manager string, o map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: o}
	made, err := w.resource(o).Create(context.Background(), u.DeepCopy(), metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		w.t.Fatalf("create: %v", err)
	}
	return made
}

// edit is someone else's update of a live object.
func (w *world) edit(manager string, o map[string]any, change func(u *unstructured.Unstructured), subresource ...string) {
	w.t.Helper()
	live := w.live(o)
	if live == nil {
		w.t.Fatalf("edit: %v is absent", ID(o))
	}
	change(live)
	_, err := w.resource(o).Update(context.Background(), live, metav1.UpdateOptions{FieldManager: manager}, subresource...)
	if err != nil {
		w.t.Fatalf("edit: %v", err)
	}
}

// live reads an object as anyone would; nil when it is absent.
func (w *world) live(o map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	u, err := w.resource(o).Get(context.Background(), ID(o).Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("get: %v", err)
	}
	return u
}

func (w *world) gone(o map[string]any) {
	w.t.Helper()
	if live := w.live(o); live != nil && live.GetDeletionTimestamp() == nil {
		w.t.Errorf("%v is still there", ID(o))
	}
}

// field reads a path of a live object.
func field(u *unstructured.Unstructured, path ...string) any {
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil {
		return err
	}
	return v
}

func (w *world) same(what string, got, want any) {
	w.t.Helper()
	if !reflect.DeepEqual(got, want) {
		w.t.Errorf("%s:\n got %s\nwant %s", what, text(got), text(want))
	}
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return string(raw)
}

// sent compares what was requested since the last call, as "3 GET, 1 PATCH".
func (w *world) sent(want string) {
	w.t.Helper()
	if got := w.counter.take(); got != want {
		w.t.Errorf("sent %s, want %s", got, want)
	}
}

// counter counts what the member sends, and may stand in its way.
type counter struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []string
	// lose drops the answer to a request that the server has carried out.
	lose func(*http.Request) bool
	// before is called ahead of a request.
	before func(*http.Request)
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	if method := r.Method; r.URL.Query().Get("watch") == "true" {
		c.seen = append(c.seen, "WATCH")
	} else {
		c.seen = append(c.seen, method)
	}
	lose, before := c.lose, c.before
	c.mu.Unlock()
	if before != nil {
		before(r)
	}
	resp, err := c.next.RoundTrip(r)
	if err == nil && lose != nil && lose(r) {
		resp.Body.Close()
		return nil, fmt.Errorf("the answer was lost")
	}
	return resp, err
}

func (c *counter) hook(lose func(*http.Request) bool, before func(*http.Request)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose, c.before = lose, before
}

func (c *counter) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for _, m := range c.seen {
		counts[m]++
	}
	c.seen = nil
	var parts []string
	for _, m := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
		if counts[m] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[m], m))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// writes compares what was written since the last call; reads and watches do
// not count.
func (w *world) writes(want string) {
	w.t.Helper()
	w.counter.mu.Lock()
	w.counter.seen = slices.DeleteFunc(w.counter.seen, func(m string) bool { return m == "GET" || m == "WATCH" })
	w.counter.mu.Unlock()
	w.sent(want)
}

// becomes waits until something holds, for a second and a little more.
func (w *world) becomes(what string, holds func() bool) {
	w.t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > patience {
			w.t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// quiet waits for what might still happen.
func (w *world) quiet() { time.Sleep(300 * time.Millisecond) }

// only returns the single outcome there must be.
func (w *world) only(left []dispatch.Outcome) dispatch.Outcome {
	w.t.Helper()
	if len(left) != 1 {
		w.t.Fatalf("%d outcomes are left, want 1: %v", len(left), left)
	}
	return left[0]
}

func (w *world) entry(id object.ID) (dispatch.Entry, bool) {
	e, ok := w.inventory.Entries(cluster)[id]
	return e, ok
}

// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

func TestRestoredFromBackup(t *testing.T) {
	s := start(t, "eu-1")
	restoredFromBackup(t, s.Config(), s.Backup)
}

func TestRealServerRestoredFromBackup(t *testing.T) {
	s := kubetest.Start(t, 1)[0]
	restoredFromBackup(t, s.Config(), func() func() { return s.Backup(t) })
}

// F25: a member is restored from a backup. What is older there than what was
// acknowledged, or missing, is applied again, though versions went backwards;
// what is equal is not written, nothing is deleted, and it is the same cluster.
// It goes on being looked after.
func restoredFromBackup(t *testing.T, cfg *rest.Config, backup func() (restore func())) {
	r := &restoration{t: t, inventory: &dispatchtest.Inventory{}, client: dynamic.NewForConfigOrDie(cfg).
		Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")}
	var err error
	if r.member, err = push.New(cfg, push.Options{}); err != nil {
		t.Fatal(err)
	}
	r.begin()
	defer func() { r.d.Close(context.Background()) }()
	foreign := &unstructured.Unstructured{Object: configMap("foreign", "red")}
	if _, err := r.client.Create(context.Background(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.level(apply(configMap("changed", "red"), configMap("same", "red"), configMap("removed", "red")))
	// It is watched by now.
	r.acted()
	r.edit("changed")
	r.holds("changed", "red")
	r.did("restore changed: it was changed by kubectl-edit: data.colour")
	restore := backup()
	r.level(apply(configMap("same", "blue")))
	now := append(apply(configMap("changed", "blue"), configMap("same", "red"), configMap("made", "blue")),
		dispatchtest.Work{Verb: dispatch.Delete, Object: configMap("removed", "red")})
	r.level(now)
	r.acted()

	restore()
	r.holds("changed", "blue")
	r.holds("made", "blue")
	r.did("restore changed: it had other content of ours than was acknowledged", "restore made: it was deleted")
	r.holds("same", "red")
	r.holds("foreign", "red")
	// Nothing on record names it: it is there again as if somebody had made it.
	r.holds("removed", "red")

	// By now versions are older than those that were acknowledged before.
	r.edit("same")
	r.holds("same", "red")
	r.did("restore same: it was changed by kubectl-edit: data.colour")

	// Nobody was there when it happened.
	r.d.Close(context.Background())
	restore()
	r.begin()
	sync1(t, r.d, dispatchtest.Works{"eu-1": now})
	r.holds("changed", "blue")
	r.holds("made", "blue")
	r.did("restore changed: it had other content of ours than was acknowledged", "restore made: it was deleted")
	for _, o := range r.d.Outcomes() {
		t.Errorf("left: %v %s", o.Err, o.Note)
	}
}

// What is made while a watch still tells of what there was is not missing.
func TestMadeWhileARelistIsTold(t *testing.T) {
	s := start(t, "eu-1")
	honest := leads(t, s)
	told := make(chan struct{})
	cfg := &rest.Config{Host: s.URL(), Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := honest.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") == "true" {
			resp.Body = &heldBookmark{ReadCloser: resp.Body, lines: bufio.NewReader(resp.Body), release: told}
		}
		return resp, err
	})}
	member, err := push.New(cfg, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &restoration{t: t, inventory: &dispatchtest.Inventory{}, member: member, client: dynamic.NewForConfigOrDie(s.Config()).
		Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")}
	r.begin()
	defer func() { r.d.Close(context.Background()) }()
	r.level(apply(configMap("a", "red")))
	until(t, func() bool {
		return slices.ContainsFunc(s.Requests(), func(r embedded.Request) bool { return strings.Contains(r.Query, "watch=true") })
	})
	time.Sleep(50 * time.Millisecond) // what the watch begins with is on its way
	r.level(apply(configMap("b", "red")))
	r.did("apply a", "apply b")
	close(told)
	r.edit("b")
	r.holds("b", "red")
	r.did("restore b: it was changed by kubectl-edit: data.colour")
}

// An object that only lost our label was not deleted, and it is not told so (U08).
func TestLostLabelIsNoDeletion(t *testing.T) {
	s := start(t, "eu-1")
	r := &restoration{t: t, inventory: &dispatchtest.Inventory{}, member: pushTo(t, s), client: dynamic.NewForConfigOrDie(s.Config()).
		Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")}
	r.begin()
	defer func() { r.d.Close(context.Background()) }()
	r.level(apply(configMap("a", "red"), configMap("b", "red")))
	r.acted()
	r.edit("a")
	r.holds("a", "red") // it is watched by now
	r.did("restore a: it was changed by kubectl-edit: data.colour")

	patch := []byte(`{"metadata":{"labels":null},"data":{"colour":"by hand"}}`)
	if _, err := r.client.Patch(context.Background(), "a", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-label"}); err != nil {
		t.Fatal(err)
	}
	r.holds("a", "red")
	r.did("restore a: it had lost our label to kubectl-label")

	if err := r.client.Delete(context.Background(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.holds("b", "red")
	r.did("restore b: it was deleted")
}

// A member that is looked at once costs the question who it is and a list for each
// kind of ours, whatever else it holds.
func TestLookOnce(t *testing.T) {
	s := start(t, "eu-1")
	inventory, member := &dispatchtest.Inventory{}, pushTo(t, s)
	secret := dispatchtest.Object("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: default}, stringData: {a: b}}")
	works := dispatchtest.Works{"eu-1": apply(configMap("a", "red"), configMap("b", "red"), secret)}
	for i, want := range [][]string{
		nil,
		{
			"GET /api/v1/configmaps?labelSelector=fairlead.dev%2Fmanaged%3Dtrue&limit=500",
			"GET /api/v1/namespaces/kube-system?",
			"GET /api/v1/secrets?labelSelector=fairlead.dev%2Fmanaged%3Dtrue&limit=500",
		},
	} {
		s.ResetRequests()
		d := dispatch.New(inventory, dispatch.Options{Backoff: quick, Look: true})
		d.SetMember("eu-1", member)
		sync1(t, d, works)
		if left := wait(t, d, 10*time.Second); len(left) != 0 {
			t.Fatalf("left: %v", left[0].Err)
		}
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		got := paths(s)
		slices.Sort(got)
		if i > 0 && !slices.Equal(got, want) {
			t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := strings.Count(strings.Join(got, "\n"), "labelSelector"); i == 0 && n != 0 {
			t.Errorf("%d lists of what was not there before", n)
		}
	}
}

// heldBookmark is a stream whose bookmarks wait, and what follows them.
type heldBookmark struct {
	io.ReadCloser
	lines   *bufio.Reader
	rest    []byte
	release chan struct{}
}

func (h *heldBookmark) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		line, err := h.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if strings.Contains(string(line), "BOOKMARK") {
			<-h.release
		}
		h.rest = line
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// F25: a member whose disk is full refuses what is written. It is told, kept and
// tried again, and done when there is space.
func TestRealServerWithoutSpace(t *testing.T) {
	s := kubetest.Start(t, 1)[0]
	m, err := push.New(s.Config(), push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", m)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	s.NoSpace(t, true)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"), configMap("b", "blue"))})
	left := wait(t, d, time.Second)
	if len(left) != 2 || !errors.Is(left[0].Err, member.Unavailable) || left[0].Final || !strings.Contains(left[0].Err.Error(), "database space exceeded") {
		t.Fatalf("left: %+v", left)
	}
	s.NoSpace(t, false)
	if left := wait(t, d, 20*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	found, err := m.Get(context.Background(), refConfigMap("b"))
	if err != nil || found == nil {
		t.Errorf("found %v, %v", found, err)
	}
}

type restoration struct {
	t         *testing.T
	inventory *dispatchtest.Inventory
	member    member.Member
	client    dynamic.ResourceInterface
	d         *dispatch.Dispatcher

	mu   sync.Mutex
	acts []string
}

func (r *restoration) begin() {
	r.d = dispatch.New(r.inventory, dispatch.Options{Backoff: quick, Watch: true, Log: func(e dispatch.Event) {
		if e.ID.Name == "" || e.Err != nil {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.acts = append(r.acts, strings.TrimSuffix(string(e.Op)+" "+e.ID.Name+": "+e.Note, ": "))
	}})
	r.d.SetMember("eu-1", r.member)
}

func (r *restoration) level(works []dispatchtest.Work) {
	r.t.Helper()
	sync1(r.t, r.d, dispatchtest.Works{"eu-1": works})
	if left := wait(r.t, r.d, 20*time.Second); len(left) != 0 {
		r.t.Fatalf("left: %v", left[0].Err)
	}
}

// holds waits until the member holds a colour.
func (r *restoration) holds(name, colour string) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		live, err := r.client.Get(context.Background(), name, metav1.GetOptions{})
		if err == nil {
			if got, _, _ := unstructured.NestedString(live.Object, "data", "colour"); got == colour {
				return
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s is not %s in time: %v, %v", name, colour, live, err)
		}
	}
}

func (r *restoration) edit(name string) {
	r.t.Helper()
	patch := []byte(`{"data":{"colour":"by hand"}}`)
	if _, err := r.client.Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		r.t.Fatal(err)
	}
}

// acted returns what was done since the last time, once it is acknowledged.
func (r *restoration) acted() []string {
	if left := wait(r.t, r.d, 20*time.Second); len(left) != 0 {
		r.t.Fatalf("left: %v", left[0].Err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	acts := r.acts
	r.acts = nil
	slices.Sort(acts)
	return acts
}

func (r *restoration) did(want ...string) {
	r.t.Helper()
	if got := r.acted(); !slices.Equal(got, want) {
		r.t.Errorf("did\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

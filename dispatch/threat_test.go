// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// hostile is a member that answers requests for ConfigMaps as it pleases, and
// is a real one otherwise.
func hostile(t *testing.T, answers roundTrip) member.Member {
	t.Helper()
	honest := leads(t, start(t, "eu-1"))
	return through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/configmaps") {
			return answers(r)
		}
		return honest.RoundTrip(r)
	})))
}

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// T49: a member that lies has its own worker fail, in bounded time and memory.
func TestHostileMember(t *testing.T) {
	page := func(next string) string {
		return `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1","continue":"` + next + `"},"items":[]}`
	}
	pages := 0
	for name, answers := range map[string]roundTrip{
		"a list that does not end": func(r *http.Request) (*http.Response, error) {
			pages++
			return answer(r, http.StatusOK, page(fmt.Sprint(pages))), nil
		},
		"a list that always has to begin again": func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("continue") != "" {
				return answer(r, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"expired"}`), nil
			}
			return answer(r, http.StatusOK, page("next")), nil
		},
		"an answer that does not end": func(r *http.Request) (*http.Response, error) {
			a := answer(r, http.StatusOK, "")
			a.Body, a.ContentLength = io.NopCloser(endless{}), -1
			return a, nil
		},
		"a list without items": func(r *http.Request) (*http.Response, error) {
			return answer(r, http.StatusOK, `{"kind":"PartialObjectMetadataList"}`), nil
		},
		"an object instead of a list": func(r *http.Request) (*http.Response, error) {
			return answer(r, http.StatusOK, `{"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1","uid":"x"}}`), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			honest := start(t, "us-1")
			d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
			defer d.Close(context.Background())
			d.SetMember("eu-1", hostile(t, answers))
			d.SetMember("us-1", pushTo(t, honest))
			sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red")), "us-1": apply(configMap("a", "red"))})
			until(t, func() bool { return holds(t, honest, "a") })
			until(t, func() bool {
				left := d.Outcomes()
				return len(left) == 1 && left[0].Cluster == "eu-1" && errors.Is(left[0].Err, member.Unreachable)
			})
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// F22: a list whose next page is gone begins again.
func TestListBeginsAgain(t *testing.T) {
	item := func(name string) string {
		return `{"kind":"PartialObjectMetadata","metadata":{"namespace":"default","name":"` + name + `","uid":"` + name + `"}}`
	}
	gone := false
	m := hostile(t, func(r *http.Request) (*http.Response, error) {
		next, items := "", item("a")
		switch {
		case r.URL.Query().Get("continue") == "":
			next = "more"
		case !gone:
			gone = true
			return answer(r, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"expired"}`), nil
		default:
			items = item("b")
		}
		return answer(r, http.StatusOK, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1","continue":"`+next+`"},"items":[`+items+`]}`), nil
	})
	var names []string
	for found, err := range m.List(context.Background(), configMaps, "default") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found.ID.Name)
	}
	if want := []string{"a", "a", "b"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
}

// A page of objects that are as large as they can be is too large for an answer,
// and no reason to see none of them.
func TestListOfLargeObjects(t *testing.T) {
	m := hostile(t, func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("limit") != "20" {
			a := answer(r, http.StatusOK, "")
			a.Body, a.ContentLength = io.NopCloser(endless{}), -1
			return a, nil
		}
		return answer(r, http.StatusOK, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"namespace":"default","name":"a","uid":"a"}}]}`), nil
	})
	n := 0
	for found, err := range m.List(context.Background(), configMaps, "default") {
		if err != nil || found.ID.Name != "a" {
			t.Fatal(found, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d objects", n)
	}
}

// T50: what our credentials may not do is told for that object, seldom tried,
// and keeps no other waiting; when it is granted it is done.
func TestForbiddenIsOfOneObject(t *testing.T) {
	s := start(t, "eu-1")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("mine", "red"))})
	wait(t, d, 10*time.Second)
	var refused atomic.Int64
	s.Fail(func(r *http.Request) (int, bool) {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/configmaps/closed") {
			return 0, false
		}
		refused.Add(1)
		return http.StatusForbidden, true
	})
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("mine", "blue"), configMap("closed", "red"), configMap("open", "red"))})
	left := wait(t, d, 10*time.Second)
	if len(left) != 1 || left[0].ID.Name != "closed" || !left[0].Final || !errors.Is(left[0].Err, member.Forbidden) {
		t.Fatalf("left: %+v", left)
	}
	if want := "apply ConfigMap default/closed on eu-1: "; !strings.HasPrefix(left[0].Err.Error(), want) {
		t.Errorf("it reads %q, want %q first", left[0].Err, want)
	}
	if !holds(t, s, "open") {
		t.Error("another object was kept waiting")
	}
	time.Sleep(5 * quick.Max / 2)
	if n := refused.Load(); n < 2 || n > 4 {
		t.Errorf("it was tried %d times in two and a half pauses", n)
	}
	s.Fail(nil)
	until(t, func() bool { return holds(t, s, "closed") })
}

// T51: a webhook that refuses a Secret may quote it; we do not.
func TestRefusalOfASecretIsMasked(t *testing.T) {
	s := start(t, "eu-1")
	const canary = "canary-2391"
	for _, code := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusInternalServerError} {
		honest := leads(t, s)
		m := through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch {
				return honest.RoundTrip(r)
			}
			return answer(r, code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"admission webhook denied: %s","details":{"causes":[{"message":%q}]}}`, code, canary, canary)), nil
		})))
		secret := dispatchtest.Object("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, stringData: {k: " + canary + "}}")
		_, err := m.Apply(context.Background(), secret, member.ApplyOptions{})
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%d reads %v", code, err)
		}
	}
}

// A17: a webhook that refuses an object may quote its environment or its data; we do
// not. The rest of what it says is told.
func TestRefusalQuotesNoValue(t *testing.T) {
	const canary = "canary-2391 \"x\""
	honest := leads(t, start(t, "eu-1"))
	m := through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch {
			return honest.RoundTrip(r)
		}
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		status, err := json.Marshal(map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": http.StatusForbidden,
			"message": "admission webhook denied: k7s is no k7 and no " + canary + ": " + string(sent),
		})
		return answer(r, http.StatusForbidden, string(status)), err
	})))
	for name, text := range map[string]string{
		"env":            `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: "canary-2391 \"x\""}, {name: B, value: k7}]}]}}}}`,
		"init env":       `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {template: {spec: {initContainers: [{name: web, env: [{name: A, value: "canary-2391 \"x\""}, {name: B, value: k7}]}]}}}}`,
		"data":           `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {a: "canary-2391 \"x\"", b: k7}}`,
		"lines":          `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {a: "canary-2391 \"x\"\nk7\n"}}`,
		"a cron job env": `{apiVersion: batch/v1, kind: CronJob, metadata: {name: web, namespace: default}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: "canary-2391 \"x\""}, {name: B, value: k7}]}]}}}}}}`,
	} {
		_, err := m.Apply(context.Background(), dispatchtest.Object(text), member.ApplyOptions{})
		if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "2391") || strings.Contains(err.Error(), "\"k7\"") {
			t.Errorf("%s reads %v", name, err)
		}
		if !strings.Contains(fmt.Sprint(err), "admission webhook denied: k7s is no *** and no ***: ") {
			t.Errorf("%s lost what the webhook says: %v", name, err)
		}
	}
}

// F16: one member takes requests and answers none while the fleet moves on:
// the others are not held up, and when it is back it gets the newest level,
// without those in between and without a delete.
func TestBlackHole(t *testing.T) {
	hole, other := start(t, "eu-1"), start(t, "us-1")
	way := leads(t, hole)
	var closed atomic.Bool
	back := make(chan struct{})
	m := through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
		if closed.Load() {
			select {
			case <-back:
			case <-r.Context().Done():
			}
			return nil, io.ErrUnexpectedEOF
		}
		return way.RoundTrip(r)
	})))
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", m)
	d.SetMember("us-1", pushTo(t, other))
	level := func(colour string) {
		sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", colour), configMap("b", colour)), "us-1": apply(configMap("a", colour), configMap("b", colour))})
	}
	level("red")
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	closed.Store(true)
	hole.ResetRequests()
	other.ResetRequests()
	for i := range 50 {
		level(fmt.Sprint("c", i))
		until(t, func() bool { return patches(other) == 2*(i+1) })
	}
	if n := writes(hole); n != 0 {
		t.Errorf("%d writes arrived in the hole", n)
	}
	closed.Store(false)
	close(back)
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	if n := writes(hole); n != 2 || patches(hole) != 2 {
		t.Errorf("%d writes, want 2 patches: the newest level of two objects", n)
	}
	found, err := pushTo(t, hole).Get(context.Background(), refConfigMap("a"))
	if err != nil || found.Annotations[object.AnnotationDigest] != dispatchtest.Digest(configMap("a", "c49")).String() {
		t.Errorf("the member holds %v, %v", found, err)
	}
}

// F13: a manifest that cannot be made panics for its object alone, and what
// panicked is not repeated.
func TestPanicIsOfOneObject(t *testing.T) {
	s := start(t, "eu-1")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	level := dispatchtest.Fleet(dispatchtest.Works{"eu-1": apply(configMap("bad", "red"), configMap("good", "red"))})
	if err := d.Sync(panicking{level}, level.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	left := wait(t, d, 10*time.Second)
	if len(left) != 1 || left[0].ID.Name != "bad" || !errors.Is(left[0].Err, member.Unrendered) || strings.Contains(left[0].Err.Error(), "canary") {
		t.Fatalf("left: %+v", left)
	}
	if !holds(t, s, "good") {
		t.Error("the other was not applied")
	}
}

type panicking struct{ *dispatchtest.Level }

func (p panicking) Desire(cluster string, id object.ID) dispatch.Desire {
	want := p.Level.Desire(cluster, id)
	if id.Name == "bad" {
		want.Manifest = func() (map[string]any, error) { panic("canary") }
	}
	return want
}

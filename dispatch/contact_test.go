// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/push"
)

// At first contact one list goes alone, then as many go at once as may.
func TestContactListsAtOnce(t *testing.T) {
	var (
		mu                  sync.Mutex
		sent, inFlight, top int
	)
	s := start(t, "eu-1")
	for i := range 20 {
		post(t, s, "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns-%d"}}`, i))
	}
	cfg := s.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return slow(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent++
			inFlight++
			top = max(top, inFlight)
			first := sent == 1
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if first && sent > 1 {
				t.Errorf("%d requests before the first was answered", sent)
			}
			inFlight--
			return next.RoundTrip(r)
		})
	})
	m, err := push.New(cfg, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick, Parallel: 4})
	d.SetMember("eu-1", m)
	var works []dispatchtest.Work
	for i := range 20 {
		o := dispatchtest.Object(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns-%d}}", i))
		works = append(works, dispatchtest.Work{Verb: dispatch.Hold, Object: o})
	}
	sync1(t, d, dispatchtest.Works{"eu-1": works})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	if sent != 22 || top != 4 { // one asks who it is, one for the namespaces
		t.Errorf("%d requests, at most %d at once; want 22 and 4", sent, top)
	}
}

// Which namespaces there are must be known, or known to be unknown, before
// anything is sent.
func TestContactNeedsTheNamespaces(t *testing.T) {
	s := start(t, "eu-1")
	s.Fail(func(r *http.Request) (int, bool) {
		return http.StatusInternalServerError, r.URL.Path == "/api/v1/namespaces"
	})
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", pushTo(t, s))
	other := dispatchtest.Object("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}}")
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"), other)})
	if left := wait(t, d, time.Second); len(left) == 0 {
		t.Error("nothing is left")
	}
	if patches(s) != 0 {
		t.Error("something was sent")
	}
	s.Fail(nil)
	until(t, func() bool { return holds(t, s, "a") })
}

type slow func(*http.Request) (*http.Response, error)

func (f slow) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What stands in a namespace that the member does not have is not asked for; all
// is where somebody between us and the member may leave namespaces out.
func TestContactSparesWhatCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		hidden string
		want   int
	}{
		"all are told of":      {want: 3}, // who it is, the namespaces, the place that can be
		"some are left out":    {hidden: "kube-system", want: 5},
		"we may not list them": {hidden: "all", want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "eu-1")
			cfg := s.Config()
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return slow(func(r *http.Request) (*http.Response, error) {
					if test.hidden == "" || r.URL.Path != "/api/v1/namespaces" {
						return next.RoundTrip(r)
					}
					w := httptest.NewRecorder()
					if test.hidden == "all" {
						w.WriteHeader(http.StatusForbidden)
						fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}`)
						return w.Result(), nil
					}
					answer, err := next.RoundTrip(r)
					if err != nil {
						return nil, err
					}
					body, err := io.ReadAll(answer.Body)
					answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), `"name":"kube-system"`, `"name":"another"`)))
					return answer, err
				})
			})
			m, err := push.New(cfg, push.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
			defer d.Close(context.Background())
			d.SetMember("eu-1", m)
			var works []dispatchtest.Work
			for _, ns := range []string{"default", "a", "b"} {
				o := dispatchtest.Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + ns + "}}")
				works = append(works, dispatchtest.Work{Verb: dispatch.Hold, Object: o})
			}
			sync1(t, d, dispatchtest.Works{"eu-1": works})
			if left := wait(t, d, 10*time.Second); len(left) != 0 {
				t.Fatalf("left: %v", left[0].Err)
			}
			want := test.want
			if test.hidden == "all" {
				want-- // that one did not arrive
			}
			if got := len(s.Requests()); got != want {
				t.Errorf("%d requests, want %d", got, want)
			}
		})
	}
}

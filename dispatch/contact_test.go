// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
)

// At first contact one list tries the water, then as many go at once as may.
func TestContactListsAtOnce(t *testing.T) {
	var (
		mu                sync.Mutex
		sent, flying, top int
	)
	cfg := start(t, "eu-1").Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return slow(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent++
			flying++
			top = max(top, flying)
			first := sent == 1
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if first && sent > 1 {
				t.Errorf("%d requests before the first was answered", sent)
			}
			flying--
			return next.RoundTrip(r)
		})
	})
	m, err := dispatch.Push(cfg)
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
	if sent != 21 || top != 4 { // one asks who it is
		t.Errorf("%d requests, at most %d at once; want 21 and 4", sent, top)
	}
}

type slow func(*http.Request) (*http.Response, error)

func (f slow) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

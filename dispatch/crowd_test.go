// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
)

const (
	definitions = 200
	strangers   = 20_000
)

func definition(i int) map[string]any {
	return dispatchtest.Object(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships%[1]d.sea%[1]d.example.com}
spec:
  group: sea%[1]d.example.com
  scope: Namespaced
  names: {kind: Ship%[1]d, plural: ships%[1]d, singular: ship%[1]d, listKind: Ship%[1]dList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, i))
}

// post has somebody else create an object, without a network in between.
func post(t *testing.T, s *embedded.Server, path, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		t.Fatalf("%s: %s", path, w.Body)
	}
}

// F46: what is not ours on a member costs its metadata, page by page, when a
// kind and namespace of ours is looked at first; afterwards nothing, in requests
// as in bytes, and it is not remembered.
func TestCrowdedMember(t *testing.T) {
	quiet, quietBytes, _ := among(t, 0)
	crowded, crowdedBytes, held := among(t, strangers)
	if !slices.Equal(quiet, crowded) {
		t.Errorf("once they were looked at, among %d others it asks\n%s\nand alone\n%s", strangers, strings.Join(crowded, "\n"), strings.Join(quiet, "\n"))
	}
	// Versions and ports are of other lengths.
	if quietBytes+2048 < crowdedBytes {
		t.Errorf("once they were looked at, %d bytes are answered, and %d alone", crowdedBytes, quietBytes)
	}
	if most := int64(2 << 20); held > most {
		t.Errorf("%d bytes are held that are not without a dispatcher, want no more than %d", held, most)
	}
}

// among is what is asked and answered after first contact with a member on which
// there are so many others, and what is held in memory by then.
func among(t *testing.T, others int) (asked []string, answered, held int64) {
	s := start(t, "eu-1")
	for i := range definitions {
		post(t, s, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", jsonOf(t, definition(i)))
	}
	for i := range others {
		post(t, s, "/api/v1/namespaces/default/configmaps", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other-%d","annotations":{"a":%q}}}`, i, strings.Repeat("x", 200)))
		post(t, s, fmt.Sprintf("/apis/sea%[1]d.example.com/v1/namespaces/default/ships%[1]d", i%definitions),
			fmt.Sprintf(`{"apiVersion":"sea%[1]d.example.com/v1","kind":"Ship%[1]d","metadata":{"name":"other-%[2]d"}}`, i%definitions, i))
	}
	s.ResetRequests()
	var bytes atomic.Int64
	direct := &http.Transport{}
	defer direct.CloseIdleConnections()
	member, err := push.New(&rest.Config{Host: s.URL(), Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := direct.RoundTrip(r)
		if err == nil {
			resp.Body = counted{resp.Body, &bytes}
		}
		return resp, err
	})}, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	inventory := &dispatchtest.Inventory{}
	ship := dispatchtest.Object("{apiVersion: sea7.example.com/v1, kind: Ship7, metadata: {name: ours, namespace: default}}")
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick, Watch: true})
	d.SetMember("eu-1", member)
	level := func(colour string) {
		t.Helper()
		sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("ours", colour), ship)})
		if left := wait(t, d, 30*time.Second); len(left) != 0 {
			t.Fatalf("left: %v", left[0].Err)
		}
	}
	watching := func() bool {
		return strings.Count(strings.Join(paths(s), "\n"), "watch=true") == 2
	}
	level("red")
	until(t, watching)
	held = heap() - before
	pages := max(1, (others+499)/500)
	lists := 0
	for _, asked := range paths(s) {
		switch {
		case strings.HasPrefix(asked, "GET /api/v1/namespaces/default/configmaps?"):
			lists++
		case strings.HasPrefix(asked, "GET /apis/") && !strings.HasPrefix(asked, "GET /apis/sea7.example.com/v1"):
			t.Errorf("a kind that is not ours was asked for: %s", asked)
		}
	}
	if lists != pages {
		t.Errorf("%d lists of %d ConfigMaps, want %d", lists, others+1, pages)
	}
	t.Logf("among %d others: %d requests at first contact, %d bytes answered, %d held", others, len(s.Requests()), bytes.Load(), held)

	// An update, then a process that begins anew, and an update of that.
	s.ResetRequests()
	bytes.Store(0)
	level("blue")
	d.Close(context.Background())
	d = dispatch.New(inventory, dispatch.Options{Backoff: quick, Watch: true})
	defer d.Close(context.Background())
	d.SetMember("eu-1", member)
	level("green")
	until(t, watching)
	asked = paths(s)
	slices.Sort(asked)
	return asked, bytes.Load(), held
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func paths(s *embedded.Server) (out []string) {
	for _, r := range s.Requests() {
		query, err := url.ParseQuery(r.Query)
		if err != nil {
			panic(err)
		}
		query.Del("timeoutSeconds") // is random
		out = append(out, r.Method+" "+r.Path+"?"+query.Encode())
	}
	return out
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func jsonOf(t *testing.T, o map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

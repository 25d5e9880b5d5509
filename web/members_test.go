// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/web"
	"github.com/fairlead/fairlead/web/stream"
)

const twoClusters = `-- clusters/eu-1.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
-- clusters/us-1.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us-1}
spec: {syncMode: Push}
-- shop.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
-- policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [eu-1, us-1]}}
`

// What members have is shown where somebody has asked them about that commit, and nowhere
// else: there the page says that it is what git decided.
func TestMembers(t *testing.T) {
	g := sourcetest.Txtar(t, twoClusters)
	head := g.Head()
	cells := map[object.ID]map[string]*status.Cell{}
	put := func(name, cluster string, c status.Cell) {
		c.Object, c.Cluster = object.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}, cluster
		if cells[c.Object] == nil {
			cells[c.Object] = map[string]*status.Cell{}
		}
		cells[c.Object][cluster] = &c
	}
	put("a", "eu-1", status.Cell{State: status.Failed, Why: "it is missing", Failure: "apply failed: 403 Forbidden", Replicas: -1})
	put("a", "us-1", status.Cell{State: status.Unknown, Why: "it does not answer", Replicas: -1})
	put("b", "eu-1", status.Cell{State: status.Outdated, Behind: 2, Why: "it runs 1234567", Replicas: -1})
	put("b", "us-1", status.Cell{State: status.InProgress, Why: "1 of 4", Replicas: 4, Observed: &status.Observation{Ours: true, Replicas: 4, Available: 1}})
	put("c", "eu-1", status.Cell{State: status.Current, Replicas: -1})
	members := &web.Members{Head: head, At: now.Add(-time.Minute), Cells: cells, Silent: map[string]string{"us-1": "it does not answer: <timeout>"}}
	s := open(t, g.Dir, func(o *web.Options) { o.Fleet.Members = func() *web.Members { return members } })
	s.follow(g)

	for path, want := range map[string][]string{
		"/":                       {"X failed 1", "? unknown 1", "- behind 1", "> rolling 1", "as the clusters answered 1m ago", "cm a | shop | X | ?", "cm b | shop | -2 | > 1/4", "cm c | shop | = | ="},
		"/clusters/us-1":          {"What it has is not known: it does not answer: <timeout>"},
		"/templates/cm/shop/a":    {"it is missing: apply failed: 403 Forbidden"},
		"/?show=rolling":          {"cm b"},
		"/clusters":               {"us-1", "? 1 unknown, 1 rolling it does not answer: <timeout>"},
		"/templates/cm/shop/c":    {"= current"},
		"/clusters/eu-1?show=all": {"- behind 2 commits behind"},
	} {
		text := pageText(t, s.get(path).Body.String())
		for _, line := range want {
			if !strings.Contains(text, line) {
				t.Errorf("%s lacks %q:\n%s", path, line, text)
			}
		}
	}
	if text := s.get("/api/v1/status?namespace=shop").Body.String(); !strings.Contains(text, `"kind": "ResourceBinding"`) || !strings.Contains(text, "FullyAppliedFailed") {
		t.Errorf("status: %s", text)
	}

	g.Commit("again", map[string]string{"shop.yaml": sourcetest.Delete})
	s.follow(g)
	for _, path := range []string{"/", "/?at=HEAD"} {
		if text := pageText(t, s.get(path).Body.String()); !strings.Contains(text, "by the fold: what git decided; no cluster was asked") {
			t.Errorf("%s shows what members had of another commit:\n%s", path, text)
		}
	}
}

// A browser is told when something else is shown than its page has.
func TestEvents(t *testing.T) {
	g := sourcetest.Txtar(t, twoClusters)
	s := open(t, g.Dir)
	s.follow(g)
	before := s.Version()
	events := s.events(before)
	// A stream that begins before the first state was told is told of it.
	for first := range events {
		if strings.HasPrefix(first, "ready "+before) || strings.HasPrefix(first, "resync "+before) {
			break
		}
		if first != "ready  " {
			t.Fatalf("first: %s", first)
		}
	}
	g.Commit("less", map[string]string{"policy.yaml": strings.ReplaceAll(sourcetest.Files(twoClusters)["policy.yaml"], "[eu-1, us-1]", "[eu-1]")})
	s.follow(g)
	if next := <-events; !strings.HasPrefix(next, "changed ") || !strings.Contains(next, "ns-shop") || strings.HasPrefix(next, "changed "+before) {
		t.Errorf("next: %s", next)
	}
}

// events are those of the stream, each as its kind and its data, until the test ends.
func (s *site) events(since string) <-chan string {
	s.t.Helper()
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events?since="+since, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r) //nolint:bodyclose // below
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	events := make(chan string, 8)
	go func() {
		defer close(events)
		kind := ""
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var m stream.Message
				if err := json.Unmarshal([]byte(text), &m); err == nil {
					events <- kind + " " + m.Version + " " + strings.Join(m.IDs, " ")
				}
			}
		}
	}()
	return events
}

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"io"
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
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// BenchmarkThousand sends one template to 1,000 embedded members: cold, when
// each member is met, and warm, when the template changes. The loop is a
// process of its own; the members share the benchmark's, and the machine.
func BenchmarkThousand(b *testing.B) { benchFanOut(b, 1_000) }

// BenchmarkTenThousand is BenchmarkThousand with ten times as many members. The aim is
// three seconds warm, and 1 GiB.
func BenchmarkTenThousand(b *testing.B) { benchFanOut(b, 10_000) }

func benchFanOut(b *testing.B, n int) {
	for b.Loop() {
		configs := embeddedFleet(b, n)
		repo := sourcetest.New(b)
		files := fleetFiles(configs, 1, "1")
		repo.Commit("release", files)
		c := measure(b, measuredOptions{Repo: repo.Dir, State: b.TempDir(), Kubeconfig: kubeconfig(b, configs)})
		c.order("open")
		cold := c.order("once")
		if cold.Requests[http.MethodPatch] != n {
			b.Errorf("one template on %d members is %v", n, cold.Requests)
		}
		repo.Commit("change", fleetFiles(configs, 1, "2"))
		warm := c.order("once")
		if warm.TotalRequests != n || warm.Requests[http.MethodPatch] != n {
			b.Errorf("a change of one template on %d members is %v", n, warm.Requests)
		}
		b.ReportMetric(cold.Seconds, "s-cold")
		b.ReportMetric(cold.CPU, "CPU-s-cold")
		b.ReportMetric(float64(cold.TotalRequests)/float64(n), "requests/member-cold")
		b.ReportMetric(warm.Seconds, "s-warm")
		if n == 10_000 {
			b.ReportMetric(3, "s-warm-limit")
			b.ReportMetric(1024, "MiB-limit")
		}
		b.ReportMetric(warm.CPU, "CPU-s-warm")
		b.ReportMetric(float64(warm.RSS)/mib, "MiB-RSS")
		b.ReportMetric(float64(warm.Peak)/mib, "MiB-peak")
		b.ReportMetric(float64(warm.Heap)/mib, "MiB-heap")
		b.ReportMetric(float64(warm.Goroutines), "goroutines")
	}
}

// embeddedFleet is n members inside this process, behind one server: a process has not
// as many files as it takes for them to listen.
func embeddedFleet(b *testing.B, n int, seen ...func(*http.Request)) map[string]*rest.Config {
	b.Helper()
	members := map[string]*embedded.Server{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, s := range seen {
			s(r)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		http.StripPrefix("/"+name, members[name]).ServeHTTP(w, r)
	}))
	b.Cleanup(front.Close)

	configs := map[string]*rest.Config{}
	for i := range n {
		name := fmt.Sprintf("m%04d", i)
		s, err := embedded.Start(embedded.Options{Behind: front.URL + "/" + name})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.Close)
		members[name], configs[name] = s, s.Config()
	}
	return configs
}

// fleetFiles are ConfigMaps that go to every cluster.
func fleetFiles[V any](clusters map[string]V, templates int, version string) map[string]string {
	files := map[string]string{"policy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {}\n"}
	for name := range clusters {
		files["clusters/"+name+".yaml"] = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: Push}\n"
	}
	for i := range templates {
		files[fmt.Sprintf("templates/%05d.yaml", i)] = configMap(fmt.Sprintf("app-%05d", i), version)
	}
	return files
}

const (
	holeMembers   = 100
	holes         = 10 // of them
	holeTemplates = 1  // that change with each commit
	holeCommits   = 5  // of each phase
	holePhases    = 20 // with faults, and as many without
)

// BenchmarkBlackHoles has ten of a hundred embedded members take connections
// and never answer. For every healthy member and commit it takes the time from
// the commit to the last acknowledgement, and compares the 99th percentile with
// that of the same members while nothing is wrong, phase by phase in turns. The
// aim is a ratio of 1.1 at most.
func BenchmarkBlackHoles(b *testing.B) {
	for b.Loop() {
		w := newHoleWorld(b)
		w.commit() // the members are met
		var well, faulty []float64
		for range holePhases {
			for range holeCommits {
				well = append(well, w.commit()...)
			}
			w.open(true)
			for range holeCommits {
				faulty = append(faulty, w.commit()...)
			}
			w.open(false)
		}
		p99 := func(values []float64) float64 {
			slices.Sort(values)
			return values[len(values)*99/100]
		}
		b.ReportMetric(p99(well), "ms-p99-well")
		b.ReportMetric(p99(faulty), "ms-p99-faulty")
		b.ReportMetric(p99(faulty)/p99(well), "ratio")
		b.ReportMetric(median(faulty)/median(well), "ratio-of-medians")
		if err := w.loop.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// holeWorld is a fleet of which some members can be black holes.
type holeWorld struct {
	b       *testing.B
	repo    *sourcetest.Repo
	loop    *reconcile.Loop
	version int

	hole atomic.Pointer[chan struct{}] // closed when it ends; nil without one

	mu      sync.Mutex
	landed  *sync.Cond
	answers map[string]int
	last    map[string]time.Time
}

func newHoleWorld(b *testing.B) *holeWorld {
	b.Helper()
	configs := embeddedFleet(b, holeMembers)
	w := &holeWorld{b: b, repo: sourcetest.New(b), answers: map[string]int{}, last: map[string]time.Time{}}
	w.landed = sync.NewCond(&w.mu)
	w.repo.Commit("begin", fleetFiles(configs, holeTemplates, "0"))
	var err error
	w.loop, err = reconcile.Open(context.Background(), reconcile.Options{
		Repo: w.repo.Dir, Ref: "main", Path: ".", StateDir: b.TempDir(), Report: func(reconcile.Event) {},
		Backoff: dispatch.Backoff{Base: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Members: func(c *fleet.Cluster) (member.Member, error) {
			config := rest.CopyConfig(configs[c.Name])
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) { return w.roundTrip(c.Name, next, r) })
			})
			return push.New(config, push.Options{})
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// fails is whether a member is one of those that can be a black hole.
func fails(cluster string) bool { return strings.HasSuffix(cluster, "7") }

func (w *holeWorld) roundTrip(cluster string, next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if hole := w.hole.Load(); hole != nil && fails(cluster) {
		select {
		case <-*hole:
			return nil, io.ErrUnexpectedEOF
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	response, err := next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPatch {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answers[cluster]++
		w.last[cluster] = time.Now()
		w.landed.Broadcast()
	}
	return response, err
}

// open has some members be black holes, or be well and catch up.
func (w *holeWorld) open(on bool) {
	if on {
		hole := make(chan struct{})
		w.hole.Store(&hole)
		return
	}
	close(*w.hole.Swap(nil))
	if err := w.loop.Once(context.Background()); err != nil {
		w.b.Fatal(err)
	}
}

// commit changes every template, and returns the milliseconds until each
// healthy member has them.
func (w *holeWorld) commit() (ms []float64) {
	w.b.Helper()
	w.version++
	w.repo.Commit("change", fleetFiles(map[string]int{}, holeTemplates, fmt.Sprint(w.version)))
	w.mu.Lock()
	clear(w.answers)
	w.mu.Unlock()
	began := time.Now()
	if _, err := w.loop.Round(context.Background()); err != nil {
		w.b.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.done() {
		w.landed.Wait()
	}
	for cluster, at := range w.last {
		if !fails(cluster) {
			ms = append(ms, at.Sub(began).Seconds()*1000)
		}
	}
	if len(ms) != holeMembers-holes {
		w.b.Fatalf("%d members are healthy", len(ms))
	}
	return ms
}

func (w *holeWorld) done() bool {
	healthy := 0
	for cluster, n := range w.answers {
		if !fails(cluster) && n == holeTemplates {
			healthy++
		}
	}
	return healthy == holeMembers-holes
}

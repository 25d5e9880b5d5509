// SPDX-License-Identifier: Apache-2.0

// Package metrics is what Prometheus is told of fleets: the controller and `run` give it
// the Results of their loops, and it answers scrapes from the last of each.
//
// The number of series is bounded: of a fleet with more than MostClusters clusters only
// those are told one by one that do not have everything. A fleet that ends takes its
// series with it.
package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/reconcile"
)

// MostClusters is how many clusters of a fleet have series of their own whatever they are
// in.
const MostClusters = 1000

// Name is of a Fleet; `run` has the name of the fleet and no namespace.
type Name struct{ Namespace, Fleet string }

// Fleets collects the metrics of all fleets of a process.
type Fleets struct {
	now func() time.Time

	applied  *prometheus.HistogramVec
	folds    prometheus.Histogram
	requests *prometheus.CounterVec
	restored *prometheus.CounterVec
	webhooks *prometheus.CounterVec

	mu      sync.Mutex
	by      map[Name]*fleet
	unowned map[Name]int // shards that no replica holds, as the one that leads sees them
}

// fleet is what is known of one.
type fleet struct {
	result   reconcile.Result
	accepted string
	due      time.Time            // since when the accepted commit is on its way; zero when it has arrived
	behind   map[string]time.Time // since when a cluster does not have everything
}

// New returns a collector without fleets. now is the time of day.
func New(now func() time.Time) *Fleets {
	return &Fleets{
		now: now, by: map[Name]*fleet{}, unowned: map[Name]int{},
		applied: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fairlead_commit_to_applied_seconds", Help: "From the fold of a commit until every cluster has what is not held.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 14),
		}, []string{"namespace", "fleet"}),
		folds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "fairlead_fold_seconds", Help: "How long new commits took to fold.", Buckets: prometheus.ExponentialBuckets(0.001, 3, 12),
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_member_requests_total", Help: "Requests to clusters, by verb and by the status of the answer; error is none.",
		}, []string{"cluster", "verb", "code"}),
		restored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_drift_restored_total", Help: "Objects that were restored after somebody had changed them.",
		}, []string{"cluster"}),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fairlead_webhook_requests_total", Help: "Deliveries to the receiver of webhooks, by what became of them.",
		}, []string{"result"}),
	}
}

// Observe takes in a Result.
func (f *Fleets) Observe(name Name, r *reconcile.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	known := f.by[name]
	if known == nil {
		// What was accepted before this process is no news.
		known = &fleet{accepted: r.Accepted, behind: map[string]time.Time{}}
		f.by[name] = known
	}
	known.result = *r
	if known.accepted != r.Accepted {
		known.accepted, known.due = r.Accepted, now.Add(-r.Folding)
	}
	if r.Folding > 0 {
		f.folds.Observe(r.Folding.Seconds())
	}
	for _, a := range r.Acts {
		if a.Verb == dispatch.OpRestore && a.Err == nil {
			f.restored.WithLabelValues(a.Cluster).Inc()
		}
	}

	if known.converges(now) && !known.due.IsZero() {
		f.applied.WithLabelValues(name.Namespace, name.Fleet).Observe(now.Sub(known.due).Seconds())
		known.due = time.Time{}
	}
}

// converges notes since when which clusters do not have everything, and reports whether
// all do.
func (k *fleet) converges(now time.Time) bool {
	behind := map[string]time.Time{}
	for _, m := range k.result.Members {
		if m.State(k.result.Works[m.Cluster]).Done() {
			continue
		}
		behind[m.Cluster] = now
		if since, ok := k.behind[m.Cluster]; ok {
			behind[m.Cluster] = since
		}
	}
	k.behind = behind
	return len(behind) == 0
}

// Forget drops a fleet.
func (f *Fleets) Forget(name Name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, name)
	delete(f.unowned, name)
	f.applied.DeleteLabelValues(name.Namespace, name.Fleet)
}

// SetUnowned tells how many shards of a fleet no replica holds, and returns how many were
// told before.
func (f *Fleets) SetUnowned(name Name, shards int) (was int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was = f.unowned[name]
	f.unowned[name] = shards
	return was
}

// ForgetUnowned is of a fleet whose shards another replica counts.
func (f *Fleets) ForgetUnowned(name Name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unowned, name)
}

// Webhook counts a delivery to the receiver of webhooks.
func (f *Fleets) Webhook(result string) { f.webhooks.WithLabelValues(result).Inc() }

// Requests returns what counts the requests to a cluster, for rest.Config.Wrap.
func (f *Fleets) Requests(cluster string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &counting{f.requests, cluster, next} }
}

type counting struct {
	requests *prometheus.CounterVec
	cluster  string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	code := "error"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	c.requests.WithLabelValues(c.cluster, verbOf(r), code).Inc()
	return answer, err
}

// WrappedRoundTripper returns what is wrapped; client-go looks for it.
func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbOf returns the verb of a request, as Kubernetes calls it.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet:
		if r.URL.Query().Get("watch") != "" {
			return "watch"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	}
	return strings.ToLower(r.Method)
}

// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead/fairlead/reconcile"
)

var (
	clusterState = prometheus.NewDesc("fairlead_cluster_state", "1 for the state that a cluster is in, 0 for the others.", []string{"namespace", "fleet", "cluster", "state"}, nil)
	works        = prometheus.NewDesc("fairlead_works", "Works of a cluster: all of them (total), and those that are held, deferred or blocked.", []string{"namespace", "fleet", "cluster", "state"}, nil)
	refused      = prometheus.NewDesc("fairlead_refused", "1 if the head of the branch is refused, or awaits confirmation.", []string{"namespace", "fleet"}, nil)
	looked       = prometheus.NewDesc("fairlead_last_look_timestamp_seconds", "When the repository was last read.", []string{"namespace", "fleet"}, nil)
	behind       = prometheus.NewDesc("fairlead_behind_seconds", "Since when a cluster does not have everything that is not held.", []string{"namespace", "fleet", "cluster"}, nil)
	unowned      = prometheus.NewDesc("fairlead_shard_unowned", "Shards that no replica holds, as the replica sees it that leads.", []string{"namespace", "fleet"}, nil)
	holdAge      = prometheus.NewDesc("fairlead_hold_age_seconds", "How old a hold of a policy is; cluster is * where it holds every one.", []string{"namespace", "fleet", "policy", "cluster"}, nil)
	holdOverdue  = prometheus.NewDesc("fairlead_hold_overdue", "1 if the last day that was noted for a hold is over.", []string{"namespace", "fleet", "policy", "cluster"}, nil)
)

// Describe implements prometheus.Collector.
func (f *Fleets) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clusterState, works, refused, looked, behind, unowned, holdAge, holdOverdue} {
		to <- d
	}
	for _, c := range f.counted() {
		c.Describe(to)
	}
}

func (f *Fleets) counted() []prometheus.Collector {
	return []prometheus.Collector{f.applied, f.folds, f.requests, f.restored, f.webhooks}
}

// Collect implements prometheus.Collector.
func (f *Fleets) Collect(to chan<- prometheus.Metric) {
	for _, c := range f.counted() {
		c.Collect(to)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for name, n := range f.unowned {
		to <- prometheus.MustNewConstMetric(unowned, prometheus.GaugeValue, float64(n), name.Namespace, name.Fleet)
	}
	for name, known := range f.by {
		known.collect(to, name, now)
	}
}

func (k *fleet) collect(to chan<- prometheus.Metric, name Name, now time.Time) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name.Namespace, name.Fleet}, labels...)...)
	}

	gauge(refused, flag(k.result.Refusal != nil))
	if !k.result.Fetched.IsZero() {
		gauge(looked, float64(k.result.Fetched.Unix()))
	}
	few := len(k.result.Members) <= MostClusters
	for _, m := range k.result.Members {
		counts := k.result.Works[m.Cluster]
		is := m.State(counts)
		if !few && is == reconcile.ClusterCurrent {
			continue
		}
		for _, state := range reconcile.ClusterStates() {
			gauge(clusterState, flag(state == is), m.Cluster, string(state))
		}
		gauge(works, float64(counts.Total), m.Cluster, "total")
		gauge(works, float64(counts.Held), m.Cluster, "held")
		gauge(works, float64(counts.Deferred), m.Cluster, "deferred")
		gauge(works, float64(counts.Blocked), m.Cluster, "blocked")
	}

	for cluster, since := range k.behind {
		gauge(behind, now.Sub(since).Seconds(), cluster)
	}
	for _, h := range k.result.Holds {
		if !h.Since.IsZero() {
			gauge(holdAge, max(0, now.Sub(h.Since).Seconds()), h.Policy, h.Cluster)
		}
		if h.Until != "" {
			gauge(holdOverdue, flag(now.UTC().Format(time.DateOnly) > h.Until), h.Policy, h.Cluster)
		}
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

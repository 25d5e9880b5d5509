// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/metrics"
	"github.com/fairlead/fairlead/reconcile"
)

var acme = metrics.Name{Namespace: "team", Fleet: "acme"}

// clock is a time that a test moves.
type clock struct{ now time.Time }

func newFleets(t *testing.T) (*metrics.Fleets, *clock, *prometheus.Registry) {
	t.Helper()
	c := &clock{time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	f := metrics.New(func() time.Time { return c.now })
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(f); err != nil {
		t.Fatal(err)
	}
	return f, c, r
}

func result(commit string, members ...reconcile.MemberStatus) *reconcile.Result {
	r := &reconcile.Result{Head: commit, Accepted: commit, Members: members, Works: map[string]reconcile.Works{}}
	for _, m := range members {
		r.Works[m.Cluster] = reconcile.Works{Total: 5, Held: 1}
	}
	return r
}

func has(name string) reconcile.MemberStatus {
	return reconcile.MemberStatus{Cluster: name, Contacted: true}
}

func wants(t *testing.T, r *prometheus.Registry, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// What a scrape says of a fleet with a cluster that is held, and one that is away.
func TestFleet(t *testing.T) {
	f, c, r := newFleets(t)
	away := has("us-1")
	away.Err = &member.Error{Cluster: "us-1", Reason: member.Unreachable, Err: errors.New("no answer")}
	first := result("a", has("eu-1"), away)
	first.Fetched = c.now
	first.Holds = []reconcile.Hold{{Policy: "PropagationPolicy shop/web", Cluster: "eu-1", Since: c.now.Add(-time.Hour), Until: "2026-11-21"}}
	f.Observe(acme, first)
	c.now = c.now.Add(time.Minute)

	wants(t, r, `
# HELP fairlead_behind_seconds Since when a cluster does not have everything that is not held.
# TYPE fairlead_behind_seconds gauge
fairlead_behind_seconds{cluster="us-1",fleet="acme",namespace="team"} 60
# HELP fairlead_cluster_state 1 for the state that a cluster is in, 0 for the others.
# TYPE fairlead_cluster_state gauge
fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="current"} 0
fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="failed"} 0
fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="held"} 1
fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="in-progress"} 0
fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="pending"} 0
fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="unknown"} 0
fairlead_cluster_state{cluster="us-1",fleet="acme",namespace="team",state="current"} 0
fairlead_cluster_state{cluster="us-1",fleet="acme",namespace="team",state="failed"} 0
fairlead_cluster_state{cluster="us-1",fleet="acme",namespace="team",state="held"} 0
fairlead_cluster_state{cluster="us-1",fleet="acme",namespace="team",state="in-progress"} 0
fairlead_cluster_state{cluster="us-1",fleet="acme",namespace="team",state="pending"} 0
fairlead_cluster_state{cluster="us-1",fleet="acme",namespace="team",state="unknown"} 1
# HELP fairlead_hold_age_seconds How old a hold of a policy is; cluster is * where it holds every one.
# TYPE fairlead_hold_age_seconds gauge
fairlead_hold_age_seconds{cluster="eu-1",fleet="acme",namespace="team",policy="PropagationPolicy shop/web"} 3660
# HELP fairlead_hold_overdue 1 if the last day that was noted for a hold is over.
# TYPE fairlead_hold_overdue gauge
fairlead_hold_overdue{cluster="eu-1",fleet="acme",namespace="team",policy="PropagationPolicy shop/web"} 1
# HELP fairlead_refused 1 if the head of the branch is refused, or awaits confirmation.
# TYPE fairlead_refused gauge
fairlead_refused{fleet="acme",namespace="team"} 0
`, "fairlead_behind_seconds", "fairlead_cluster_state", "fairlead_hold_age_seconds", "fairlead_hold_overdue", "fairlead_refused")

	f.Forget(acme)
	wants(t, r, "", "fairlead_behind_seconds", "fairlead_cluster_state", "fairlead_hold_age_seconds", "fairlead_hold_overdue", "fairlead_refused")
}

// A commit counts once, when the last cluster has it; what was there before does not.
func TestCommitToApplied(t *testing.T) {
	f, c, _ := newFleets(t)
	f.Observe(acme, result("a", has("eu-1")))
	busy := has("eu-1")
	busy.Pending = 3
	f.Observe(acme, result("b", busy))
	c.now = c.now.Add(2 * time.Second)
	f.Observe(acme, result("b", has("eu-1")))
	c.now = c.now.Add(time.Hour)
	f.Observe(acme, result("b", has("eu-1")))

	if got, want := histogram(t, f), "1 commits in 2s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func histogram(t *testing.T, f *metrics.Fleets) string {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(f)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "fairlead_commit_to_applied_seconds" {
			h := family.GetMetric()[0].GetHistogram()
			return fmt.Sprintf("%d commits in %gs", h.GetSampleCount(), h.GetSampleSum())
		}
	}
	return "nothing"
}

// Of a fleet that is too large only those clusters are told that do not have everything.
func TestBoundedSeries(t *testing.T) {
	f, _, r := newFleets(t)
	var members []reconcile.MemberStatus
	for i := range metrics.MostClusters + 1 {
		members = append(members, has(fmt.Sprintf("c%04d", i)))
	}
	members[7].Pending = 1
	all := result("a", members...)
	for cluster := range all.Works {
		all.Works[cluster] = reconcile.Works{Total: 5}
	}
	f.Observe(acme, all)
	n, err := testutil.GatherAndCount(r, "fairlead_cluster_state")
	if err != nil || n != len(reconcile.ClusterStates()) {
		t.Errorf("%d series (%v), want those of one cluster", n, err)
	}
}

// Requests to clusters and what was restored are counted.
func TestRequests(t *testing.T) {
	f, _, r := newFleets(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &http.Client{Transport: f.Requests("eu-1")(http.DefaultTransport)}
	for _, url := range []string{server.URL, server.URL + "/?watch=true", "http://127.0.0.1:1"} {
		if answer, err := client.Get(url); err == nil {
			answer.Body.Close()
		}
	}
	restored := result("a", has("eu-1"))
	restored.Acts = []reconcile.Act{{Verb: dispatch.OpRestore, Cluster: "eu-1"}, {Verb: dispatch.OpApply, Cluster: "eu-1"}}
	f.Observe(acme, restored)

	wants(t, r, `
# HELP fairlead_drift_restored_total Objects that were restored after somebody had changed them.
# TYPE fairlead_drift_restored_total counter
fairlead_drift_restored_total{cluster="eu-1"} 1
# HELP fairlead_member_requests_total Requests to clusters, by verb and by the status of the answer; error is none.
# TYPE fairlead_member_requests_total counter
fairlead_member_requests_total{cluster="eu-1",code="404",verb="get"} 1
fairlead_member_requests_total{cluster="eu-1",code="404",verb="watch"} 1
fairlead_member_requests_total{cluster="eu-1",code="error",verb="get"} 1
`, "fairlead_drift_restored_total", "fairlead_member_requests_total")
}

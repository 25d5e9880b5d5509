// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Explain agrees with Schedule on random fleets and placements: the chosen
// clusters are the targets, the reasons add up to the message of the condition,
// and the rejected clusters do not influence the outcome.
func TestExplainAgreesWithSchedule(t *testing.T) {
	seen := map[Cause]bool{}
	rapid.Check(t, func(t *rapid.T) {
		clusters := announcing(t, drawClusters(t, true))
		r := Request{APIVersion: "apps/v1", Kind: "Deployment", Workload: rapid.Bool().Draw(t, "workload")}
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			if r.Workload {
				r.Replicas = rapid.Int64Range(0, 40).Draw(t, "replicas")
			}

			p := NewPlacement(drawPlacement(t))
			out, verdicts := p.Schedule(r, clusters), p.Explain(r, clusters)
			if len(verdicts) != len(clusters) {
				t.Fatalf("%d verdicts on %d clusters", len(verdicts), len(clusters))
			}

			var chosen []Share
			var why unfit
			for _, v := range verdicts {
				seen[v.Cause] = true
				if v.Chosen {
					chosen = append(chosen, Share{v.Cluster, v.Count})
				}
				if v.Chosen == (v.Cause != "") || v.Chosen == (v.Detail != "") {
					t.Fatalf("%+v", v)
				}

				if v.reason != "" {
					why.add(v.reason)
					playsNoPart(t, p, r, clusters, out, v)
				}
			}

			if !slices.Equal(chosen, out.Targets) {
				t.Fatalf("explained are %v, decided %v", chosen, out.Targets)
			}
			if out.Reason == workv1alpha2.ReasonNoClusterFit && why.text(len(clusters)) != out.Message {
				t.Fatalf("explained is %q, decided %q", why.text(len(clusters)), out.Message)
			}

			r.Previous, r.Affinity = out.Targets, out.Affinity
			r.Evicting = nil

			if len(out.Targets) > 0 && rapid.Bool().Draw(t, "evict") {
				r.Evicting, r.Previous = []string{out.Targets[0].Name}, out.Targets[1:]
			}
		}
	})

	for _, c := range []Cause{CauseAPI, CauseTaint, CauseAffinity, CauseEviction, CauseSpread, CauseReplicas, CauseFailed} {
		if !seen[c] {
			t.Errorf("the search never came by the cause %s", c)
		}
	}
}

// announcing makes some clusters list their APIs, a few without Deployments.
func announcing(t *rapid.T, clusters []*Cluster) []*Cluster {
	for i, c := range clusters {
		kind := rapid.SampledFrom([]string{"", "", "Deployment", "Job"}).Draw(t, "api")
		if kind == "" {
			continue
		}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "x", Kind: kind}}}}
		clusters[i] = NewCluster(c.Cluster)
	}

	return clusters
}

// playsNoPart checks that the outcome is the same without a rejected cluster.
// It does not hold for several affinity groups: the cluster may belong to one
// that was tried earlier.
func playsNoPart(t *rapid.T, p *Placement, r Request, clusters []*Cluster, out Outcome, v Verdict) {
	if len(p.groups) > 1 || out.Reason != workv1alpha2.ReasonSuccess {
		return
	}
	others := slices.DeleteFunc(slices.Clone(clusters), func(c *Cluster) bool { return c.Name == v.Cluster })
	if without := p.Schedule(r, others); !reflect.DeepEqual(without.Targets, out.Targets) {
		t.Fatalf("%+v, but without it the targets are %v and not %v", v, without.Targets, out.Targets)
	}
}

// Misses is empty exactly when the affinity matches.
func TestMissesIsNoMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlacement(t)
		for _, c := range drawClusters(t, false) {
			for _, g := range newGroups(p) {
				for _, a := range g.tiers {
					if a.Match(c.Cluster) != (a.Misses(c.Cluster) == "") {
						t.Fatalf("%s: match %v, misses %q", c.Name, a.Match(c.Cluster), a.Misses(c.Cluster))
					}
				}
			}
		}
	})
}

// The text of each cause.
func TestExplainTexts(t *testing.T) {
	with := func(a policyv1alpha1.ClusterAffinity) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterAffinity: &a}
	}

	bare := func(names ...string) (clusters []*Cluster) {
		for _, name := range names {
			c := &clusterv1alpha1.Cluster{}
			c.Name = name
			clusters = append(clusters, NewCluster(c))
		}
		return clusters
	}

	for _, tt := range []struct {
		name      string
		placement *policyv1alpha1.Placement
		replicas  int64
		want      string
	}{
		{"listed", with(policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}), 2, "[a=2 b: clusterNames does not list it]"},
		{"excluded", with(policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"b"}}), 2, "[a=2 b: exclude lists it]"},
		{"region", spreadBy(spreadBy(duplicated(), policyv1alpha1.SpreadByRegion, 1, 1), policyv1alpha1.SpreadByCluster, 1, 1), 2, "[a: it has no region, but the placement spreads by region b: it has no region, but the placement spreads by region]"},
		{"weights", static("a:1"), 2, "[a=2 b: the static weights give it no replicas]"},
		{"share", static("a:9 b:1"), 2, "[a=2 b: its share of 2 replicas is 0]"},
		{"nothing wanted", duplicated(), 0, "[a: the template asks for no replicas b: the template asks for no replicas]"},
		{"spread", spreadBy(duplicated(), policyv1alpha1.SpreadByCluster, 1, 1), 2, "[a=2 b: it fits, but the spread constraints chose other clusters]"},
		{"too few", spreadBy(duplicated(), policyv1alpha1.SpreadByCluster, 3, 0), 2,
			"[a: failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups b: failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups]"},
		{"groups", &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
		}}, 2, "[a=2 b: it is not in the active affinity group first: clusterNames does not list it]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, v := range NewPlacement(tt.placement).Explain(Request{Workload: true, Replicas: tt.replicas}, bare("a", "b")) {
				if v.Chosen {
					got = append(got, fmt.Sprintf("%s=%d", v.Cluster, v.Count))
					continue
				}
				got = append(got, v.Cluster+": "+v.Detail)
			}

			if fmt.Sprint(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

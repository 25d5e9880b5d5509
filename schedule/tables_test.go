// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// line is a schedule on one line. Clusters read "a/r1:6": a has capacity for 6
// more pods, in region r1; "a:-1" reports no capacity. Previous targets read
// "a:1", and so do results; a failure is its message.
type line struct {
	ref       string // of the digest
	clusters  string
	placement *policyv1alpha1.Placement
	previous  string
	replicas  int64
	fresh     bool
	want      string
}

func (l line) run(t *testing.T) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %s has %s wants %d", l.ref, l.clusters, l.previous, l.replicas), func(t *testing.T) {
		out := NewPlacement(l.placement).Schedule(Request{Workload: true, Replicas: l.replicas, Previous: sharesOf(l.previous), Fresh: l.fresh}, clustersOf(l.clusters))
		got := sharesText(out.Targets)
		if out.Reason != "Success" {
			got = out.Reason + ": " + out.Message
		}
		if got != l.want {
			t.Errorf("got %s, want %s", got, l.want)
		}
	})
}

func clustersOf(text string) (clusters []*Cluster) {
	for _, s := range sharesOf(text) {
		name, region, _ := strings.Cut(s.Name, "/")
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{Region: region}}
		if s.Count >= 0 {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
				Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(s.Count, resource.DecimalSI)},
			}
		}
		clusters = append(clusters, NewCluster(c))
	}

	return clusters
}

func sharesOf(text string) (shares []Share) {
	for _, f := range strings.Fields(text) {
		var s Share
		name, count, _ := strings.Cut(f, ":")
		s.Name = name
		if _, err := fmt.Sscan(count, &s.Count); err != nil {
			panic(err)
		}
		shares = append(shares, s)
	}

	return shares
}

func sharesText(shares []Share) string {
	var all []string
	for _, s := range shares {
		all = append(all, fmt.Sprintf("%s:%d", s.Name, s.Count))
	}
	return strings.Join(all, " ")
}

func duplicated() *policyv1alpha1.Placement { return &policyv1alpha1.Placement{} }

func dynamic() *policyv1alpha1.Placement {
	return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.Divided, ReplicaDivisionPreference: policyv1alpha1.Weighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}}
}

func aggregated() *policyv1alpha1.Placement {
	return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.Divided, ReplicaDivisionPreference: policyv1alpha1.Aggregated,
	}}
}

// static returns weights by cluster, "a:1 b:2"; "" means no preference.
func static(weights string) *policyv1alpha1.Placement {
	p := dynamic()
	p.ReplicaScheduling.WeightPreference = nil

	for _, s := range sharesOf(weights) {
		if p.ReplicaScheduling.WeightPreference == nil {
			p.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{}
		}
		w := p.ReplicaScheduling.WeightPreference
		w.StaticWeightList = append(w.StaticWeightList, policyv1alpha1.StaticClusterWeight{
			TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{s.Name}}, Weight: s.Count})
	}

	return p
}

func spreadBy(p *policyv1alpha1.Placement, field policyv1alpha1.SpreadFieldValue, least, most int) *policyv1alpha1.Placement {
	p.SpreadConstraints = append(p.SpreadConstraints, policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: least, MaxGroups: most})
	return p
}

func short(available int64) string {
	return fmt.Sprintf("Unschedulable: failed to assign replicas: failed to scale up: Clusters available replicas %d are not enough to schedule.", available)
}

// The worked numbers of digest §4.7, row by row (§13, case 39).
func TestDivision(t *testing.T) {
	for _, l := range []line{
		{"§4.7 static", "a:0 b:0", static("a:1 b:1"), "", 3, false, "a:2 b:1"},
		{"§4.7 static", "a:0 b:0 c:0", static("a:1 b:1 c:1"), "", 5, false, "a:2 b:2 c:1"},
		{"§4.7 static", "a:0 b:0 c:0", static("a:3 b:2 c:1"), "", 12, false, "a:6 b:4 c:2"},
		{"§4.7 static", "a:0 b:0 c:0", static("a:3 b:2 c:1"), "", 13, false, "a:7 b:4 c:2"},
		{"§4.7 static", "a:0 b:0 c:0", static("a:3 b:2 c:1"), "", 14, false, "a:7 b:5 c:2"},
		{"§4.7 static", "a:0 b:0 c:0", static(""), "", 12, false, "a:4 b:4 c:4"},
		{"§4.7 static", "a:0 b:0 c:0 d:0", static("a:2 b:1 c:1 d:1"), "", 7, false, "a:3 b:2 c:1 d:1"},
		{"§4.7 static", "a:0 b:0 c:0 d:0", static("a:2 b:1 c:1 d:1"), "", 8, false, "a:3 b:2 c:2 d:1"},
		{"§4.7 static", "a:0 b:0 c:0 d:0", static("a:2 b:1 c:1 d:1"), "", 9, false, "a:3 b:2 c:2 d:2"},
		{"§4.7 static, recomputed", "a:0 b:0 c:0 d:0", static("a:2 b:1 c:1 d:1"), "a:2 b:2 c:1 d:1", 6, false, "a:3 b:1 c:1 d:1"},
		{"§4.7 static, one more", "a:0 b:0 c:0 d:0", static("a:1 b:1 c:1 d:1"), "a:2 b:2 c:1", 5, false, "a:2 b:1 c:1 d:1"},
		{"§4.7 static", "a:0 b:0", static("a:1 b:2"), "", 9, false, "a:3 b:6"},
		{"§4.7 static", "a:0 b:0", static("a:1 b:3"), "", 9, false, "a:2 b:7"},
		{"§4.7 static", "a:0 b:0", static("a:1 b:2"), "", 10, false, "a:3 b:7"},
		{"§4.7 static, none is left for one", "a:0 b:0", static("a:1 b:9"), "", 3, false, "b:3"},
		{"§4.7 static, only one is listed", "a:0 b:0", static("a:1"), "", 2, false, "a:2"},
		{"§4.7 static, greatest weight", "a:0 b:0", static("a:1 a:2 b:1"), "", 3, false, "a:2 b:1"},
		{"§4.7 static, none is listed", "a:0 b:0", static("z:9"), "", 2, false, "a:1 b:1"},
		// The digest has two results for a tie, by the hash of a UID; ours is the one
		// for an even hash (decision 22).
		{"§4.7 static, tie", "a:0 b:0 c:0", static(""), "", 10, false, "a:4 b:3 c:3"},
		{"§4.7 static, tie", "a:0 b:0 c:0", static(""), "", 11, false, "a:4 b:4 c:3"},
		{"§4.7 static, tie", "a:0 b:0 c:0", static(""), "", 1, false, "a:1"},

		{"§4.7 dynamic", "a:6 b:12 c:18", dynamic(), "", 12, false, "a:2 b:4 c:6"},
		{"§4.7 dynamic", "a:6 b:12 c:18", dynamic(), "", 10, false, "a:2 b:3 c:5"},
		{"§4.7 dynamic", "a:6 b:12 c:18", dynamic(), "", 36, false, "a:6 b:12 c:18"},
		{"§4.7 dynamic", "a:6 b:12 c:18", dynamic(), "", 37, false, short(36)},
		{"§4.7 dynamic", "a:6 b:8 c:10", dynamic(), "", 12, false, "a:3 b:4 c:5"},
		{"§4.7 dynamic", "a:8 b:8 c:10", dynamic(), "", 12, false, "a:4 b:4 c:4"},
		{"§4.7 dynamic", "a:20 b:12 c:6", dynamic(), "", 12, false, "a:6 b:4 c:2"},
		{"§4.7 dynamic", "a:3 b:3 c:3", dynamic(), "", 12, false, short(9)},
		{"§4.7 dynamic, down", "a:1 b:1 c:1", dynamic(), "a:2 b:4 c:6", 6, false, "a:1 b:2 c:3"},
		{"§4.7 dynamic, up", "a:10 b:10 c:10", dynamic(), "a:2 b:4 c:6", 24, false, "a:6 b:8 c:10"},
		{"§4.7 dynamic, up", "a:1 b:1 c:1", dynamic(), "a:2 b:4 c:6", 24, false, short(3)},
		{"§4.7 dynamic, up", "a:6 b:12 c:18", dynamic(), "a:2 b:4 c:6", 18, false, "a:3 b:6 c:9"},
		{"§4.7 dynamic, down", "a:0 b:0 c:0", dynamic(), "a:2 b:4 c:6", 5, false, "a:1 b:2 c:2"},
		{"§4.7 dynamic, down", "a:0 b:0 c:0", dynamic(), "a:2 b:4 c:6", 1, false, "c:1"},
		{"§4.7 dynamic, one left", "a:3 b:3", dynamic(), "a:6 c:6", 12, false, "a:9 b:3"},
		{"§4.7 dynamic, sticky", "a:6 b:12 c:18", dynamic(), "a:12", 12, false, "a:12"},
		{"§4.7 dynamic, fresh", "a:6 b:12 c:18", dynamic(), "a:12", 12, true, "a:5 b:3 c:4"},
		{"§4.7 dynamic, fresh", "a:1 b:1", dynamic(), "a:1", 4, true,
			"Unschedulable: failed to assign replicas: failed to do fresh scale: Clusters available replicas 3 are not enough to schedule."},
		{"§4.7 dynamic, no requests", "a:100 b:100 c:100", dynamic(), "", 3, false, "a:1 b:1 c:1"},

		{"§4.7 aggregated", "a:6 b:8 c:10", aggregated(), "", 12, false, "b:5 c:7"},
		{"§4.7 aggregated", "a:12 b:8 c:10", aggregated(), "", 12, false, "a:12"},
		{"§4.7 aggregated", "a:6 b:6 c:6", aggregated(), "", 12, false, "a:6 b:6"},
		{"§4.7 aggregated", "a:12 b:6 c:6", aggregated(), "", 12, false, "a:12"},
		{"§4.7 aggregated", "a:6 b:12 c:18", aggregated(), "", 12, false, "c:12"},
		{"§4.7 aggregated", "a:6 b:12 c:18", aggregated(), "", 20, false, "b:8 c:12"},
		{"§4.7 aggregated", "a:6 b:12 c:18", aggregated(), "", 31, false, "a:5 b:10 c:16"},
		{"§4.7 aggregated, down", "a:0 b:0", aggregated(), "a:4 b:8", 6, false, "b:6"},
		{"§4.7 aggregated, down", "a:0 b:0", aggregated(), "a:4 b:8", 8, false, "b:8"},
		{"§4.7 aggregated, down", "a:0 b:0", aggregated(), "a:4 b:8", 9, false, "a:3 b:6"},
		{"§4.7 aggregated, up", "a:4 b:6 c:8", aggregated(), "a:4 b:8", 24, false, "a:7 b:12 c:5"},
		{"§4.7 aggregated, up", "a:6 b:6 c:20", aggregated(), "a:4 b:8", 24, false, "a:10 b:14"},
		{"§4.7 aggregated, up", "a:1 b:1 c:1", aggregated(), "a:4 b:8", 24, false, short(3)},
		{"§4.7 aggregated, one left", "a:4 c:8 d:12", aggregated(), "a:4 b:8", 24, false, "a:7 c:7 d:10"},

		{"§4.7 nothing is known of the clusters", "a:-1 b:-1", dynamic(), "", 2, false, short(0)},
		{"§4.7 nothing is known of the clusters", "a:-1 b:-1", aggregated(), "", 2, false, short(0)},
		{"§4.7 nothing is known of the clusters", "a:-1 b:-1", duplicated(), "", 2, false, "a:2 b:2"},
		{"§4.7 nothing is known of the clusters", "a:-1 b:-1", static("a:1 b:1"), "", 2, false, "a:1 b:1"},

		{"§4.7 duplicated", "a:0 b:0", duplicated(), "", 3, false, "a:3 b:3"},
		{"§4.7 no replicas", "a:9 b:9", duplicated(), "a:1 b:1", 0, false, ""},
		{"§4.7 no replicas", "a:9 b:9", dynamic(), "a:1 b:1", 0, false, ""},
		{"§4.7 no replicas", "a:9 b:9", static(""), "a:1 b:1", 0, false, ""},
	} {
		l.run(t)
	}
}

// The worked choices of digest §4.5 (§13, cases 39 and 54).
func TestSpread(t *testing.T) {
	const abc = "a/r1:6 b/r2:12 c/r2:18"
	const (
		cluster = policyv1alpha1.SpreadByCluster
		region  = policyv1alpha1.SpreadByRegion
	)

	failed := func(message string) string { return "SchedulerError: failed to select clusters: " + message }
	for _, l := range []line{
		{"§4.5 locality, then room", abc, spreadBy(duplicated(), cluster, 1, 2), "a:1", 1, false, "a:1 c:1"},
		{"§4.5 too small", abc, spreadBy(dynamic(), cluster, 1, 1), "", 20, false, failed("no enough resource when selecting 1 clusters")},
		{"§4.5 swapped", abc, spreadBy(dynamic(), cluster, 1, 1), "a:1", 15, false, "c:15"},
		{"§4.5 kept", abc, spreadBy(dynamic(), cluster, 1, 2), "a:1 b:1", 20, false, "a:7 b:13"},
		{"§4.5 regions", abc, spreadBy(spreadBy(duplicated(), region, 2, 2), cluster, 2, 2), "", 1, false, "a:1 c:1"},
		{"§4.5 region", abc, spreadBy(spreadBy(duplicated(), region, 1, 1), cluster, 1, 1), "", 1, false, "c:1"},
		{"§4.5 one region is enough", abc, spreadBy(spreadBy(dynamic(), region, 1, 2), cluster, 1, 3), "", 30, false, "b:12 c:18"},
		{"§4.5 more clusters than allowed", abc, spreadBy(spreadBy(duplicated(), region, 2, 2), cluster, 1, 1), "", 1, false, "a:1 c:1"},
		{"§4.5 too few clusters", abc, spreadBy(duplicated(), cluster, 4, 4), "", 1, false,
			failed("the number of feasible clusters is less than spreadConstraint.MinGroups")},
		{"§4.5 too few regions", abc, spreadBy(spreadBy(duplicated(), region, 3, 3), cluster, 1, 3), "", 1, false,
			failed("the number of feasible region is less than spreadConstraint.MinGroups")},
		{"§4.5 too few clusters in the regions", abc, spreadBy(spreadBy(duplicated(), region, 1, 1), cluster, 3, 3), "", 1, false,
			failed("the number of clusters is less than the cluster spreadConstraint.MinGroups")},
		{"decision 30", abc, spreadBy(duplicated(), cluster, 1, 0), "", 1, false, "a:1 b:1 c:1"},
		{"decision 30", abc, spreadBy(spreadBy(duplicated(), region, 2, 0), cluster, 1, 0), "", 1, false, "a:1 b:1 c:1"},
		{"§4.5 static weights ignore it", abc, spreadBy(static("a:1 b:1 c:1"), cluster, 1, 1), "", 3, false, "a:1 b:1 c:1"},
		{"§4.5 neither cluster nor region", abc, spreadBy(duplicated(), "", 1, 1), "", 1, false,
			failed("just support cluster and region spread constraint")},
		{"§4.2 no region", "a:6 b/r2:12", spreadBy(spreadBy(duplicated(), region, 2, 2), cluster, 1, 2), "", 1, false,
			failed("the number of feasible region is less than spreadConstraint.MinGroups")},
		{"§4.2 no zone", abc, spreadBy(spreadBy(duplicated(), policyv1alpha1.SpreadByZone, 1, 1), cluster, 1, 2), "", 1, false,
			"NoClusterFit: 0/3 clusters are available: 3 cluster(s) did not have zones property."},
	} {
		l.run(t)
	}
}

// Digest §4.5 (§13, case 39).
func TestRegionScore(t *testing.T) {
	for _, tt := range []struct {
		ref       string
		placement *policyv1alpha1.Placement
		replicas  int64
		clusters  []candidate
		want      int64
	}{
		{"§4.5 two valid targets", duplicated(), 1, []candidate{{target: true, free: 1}, {target: true, free: 1}}, 2100},
		{"§4.5 four valid", duplicated(), 1, []candidate{{free: 1}, {free: 1}, {free: 1}, {free: 1}}, 4000},
		{"§4.5 none valid", duplicated(), 2, []candidate{{target: true, free: 1}}, 0},
		{"§4.5 too little room", dynamic(), 100, []candidate{{target: true, free: 20}, {target: true, free: 25}}, 45100},
		{"§4.5 enough room", dynamic(), 100, []candidate{{free: 30}, {free: 30}}, 50000},
		{"§4.5 enough room with targets", dynamic(), 100, []candidate{{target: true, free: 30}, {target: true, free: 30}}, 50100},
	} {
		t.Run(tt.ref, func(t *testing.T) {
			p := NewPlacement(spreadBy(spreadBy(tt.placement, policyv1alpha1.SpreadByRegion, 2, 2), policyv1alpha1.SpreadByCluster, 2, 2))
			try := &try{Placement: p, Request: &Request{Workload: true, Replicas: tt.replicas}}
			if got := try.regionScore(tt.clusters); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// Digest §4.4 (§13, case 39).
func TestRoom(t *testing.T) {
	list := func(cpu, memory, pods string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, q := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourcePods: pods} {
			if q != "" {
				l[name] = resource.MustParse(q)
			}
		}
		return l
	}

	models := func(counts ...int) (all []clusterv1alpha1.AllocatableModeling) {
		for grade, n := range counts {
			all = append(all, clusterv1alpha1.AllocatableModeling{Grade: uint(grade), Count: n})
		}
		return all
	}

	big := list("64", "512Gi", "1000")
	for _, tt := range []struct {
		ref     string
		summary *clusterv1alpha1.ResourceSummary
		asks    corev1.ResourceList
		want    int64
	}{
		{"§4.4 (1) nothing is known", nil, nil, 0},
		{"§4.4 (2) no pods left", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "", "10"), Allocated: list("", "", "10")}, nil, 0},
		{"§4.4 (3) nothing is asked for", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "", "10"), Allocated: list("", "", "3")}, nil, 7},
		{"§4.4 (5) cpu", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "", "110"), Allocated: list("2", "", "10"), Allocating: list("1", "", "1")},
			list("500m", "", ""), 10},
		{"§4.4 (5) memory", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "16Gi", "110")}, list("", "3Gi", ""), 5},
		{"§4.4 (5) missing resource", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "", "110")}, list("", "3Gi", ""), 0},
		{"§4.4 (5) overcommitted", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "", "110"), Allocated: list("9", "", "")}, list("1", "", ""), 0},
		{"§4.4 (5) pods bound", &clusterv1alpha1.ResourceSummary{Allocatable: list("8", "", "4")}, list("1", "", ""), 4},
		{"§4.4 (4) models", &clusterv1alpha1.ResourceSummary{Allocatable: big, AllocatableModelings: models(0, 0, 3, 1)}, list("1", "", ""), 10},
		{"§4.4 (4) models", &clusterv1alpha1.ResourceSummary{Allocatable: big, AllocatableModelings: models(0, 5)}, list("100m", "", ""), 50},
		{"§4.4 (4) only grade 0", &clusterv1alpha1.ResourceSummary{Allocatable: big, AllocatableModelings: models(9)}, list("1", "", ""), 0},
		{"§4.4 (4) a resource without model", &clusterv1alpha1.ResourceSummary{Allocatable: big, AllocatableModelings: models(0, 5)},
			corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}, 0},
		{"§4.4 (4) pods bound", &clusterv1alpha1.ResourceSummary{Allocatable: list("64", "", "7"), AllocatableModelings: models(0, 5)}, list("100m", "", ""), 7},
		{"§4.4 (4) a negative count", &clusterv1alpha1.ResourceSummary{Allocatable: big, AllocatableModelings: models(0, -5)}, list("1", "", ""), 64},
	} {
		t.Run(tt.ref, func(t *testing.T) {
			c := NewCluster(&clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{ResourceSummary: tt.summary}})
			var needs *Needs
			if tt.asks != nil {
				needs = NewNeeds(tt.asks)
			}
			if got := c.room.takes(needs); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// Overflow fills the group first, tier by tier (digest §4.6; §13, case 49).
func TestOverflow(t *testing.T) {
	overflowing := func(p *policyv1alpha1.Placement) *policyv1alpha1.Placement {
		p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{
			AffinityName: "own", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}},
			OverflowAffinities: []policyv1alpha1.OverflowAffinity{
				{AffinityName: "cloud", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a", "b"}}},
			},
		}}
		return p
	}

	for _, l := range []line{
		{"§4.6", "a:2 b:2 c:9", overflowing(dynamic()), "", 2, false, "a:2"},
		{"§4.6", "a:0 b:2 c:9", overflowing(dynamic()), "a:2", 4, false, "a:2 b:2"},
		{"§4.6", "a:0 b:0 c:9", overflowing(aggregated()), "a:2 b:2", 5, false,
			"Unschedulable: failed to assign replicas: Clusters available replicas 4 are not enough to schedule."},
		{"§4.6 the last tier is drained first", "a:0 b:0 c:9", overflowing(aggregated()), "a:2 b:2", 2, false, "a:2"},
	} {
		l.run(t)
	}
}

// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

func inRegions(regions, each int) []*Cluster {
	var clusters []*Cluster
	for i := range regions * each {
		clusters = append(clusters, NewCluster(&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%04d", i)},
			Spec:       clusterv1alpha1.ClusterSpec{Region: fmt.Sprintf("r%04d", i/each)},
		}))
	}
	return clusters
}

// A01: numbers of groups that no fleet has cost no more than the fleet's own
// clusters do.
func TestA1GroupsThatNoFleetHas(t *testing.T) {
	const few = "failed to select clusters: the number of clusters is less than the cluster spreadConstraint.MinGroups"
	for _, tt := range []struct {
		clusterMin, clusterMax, regionMin, regionMax int
		want                                         string // the message, or how many clusters
	}{
		{math.MaxInt, math.MaxInt, 1, 2, few},
		{math.MaxInt - 1, math.MaxInt, 1, 2, few},
		{2_000_000_000, 2_000_000_000, 1, 2, few},
		{math.MaxInt, math.MaxInt, 1, 0, few},
		{7, math.MaxInt, 1, 2, few}, // two regions have six
		{1, math.MaxInt, math.MaxInt, math.MaxInt, "failed to select clusters: the number of feasible region is less than spreadConstraint.MinGroups"},
		{6, math.MaxInt, 1, 2, "6"},
		{6, math.MaxInt, 1, math.MaxInt, "6"},
		{1, 5, 2, math.MaxInt, "5"},
	} {
		p := NewPlacement(&policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
			{SpreadByField: policyv1alpha1.SpreadByRegion, MinGroups: tt.regionMin, MaxGroups: tt.regionMax},
			{SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: tt.clusterMin, MaxGroups: tt.clusterMax},
		}})
		out := p.Schedule(Request{APIVersion: "v1", Kind: "ConfigMap"}, inRegions(2, 3))
		got := out.Message
		if got == MessageSuccess {
			got = fmt.Sprint(len(out.Targets))
		}
		if got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// A01: a search among more regions than can be searched is that binding's condition.
// Two thousand regions of which few are needed can be searched.
func TestA1SearchIsBounded(t *testing.T) {
	for groups, want := range map[int]string{5: MessageSuccess, 400: "too many ways to choose among 2000 regions with 2000 clusters"} {
		p := NewPlacement(&policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
			{SpreadByField: policyv1alpha1.SpreadByRegion, MinGroups: groups},
			{SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: groups},
		}})
		if out := p.Schedule(Request{APIVersion: "v1", Kind: "ConfigMap"}, inRegions(2000, 1)); !strings.Contains(out.Message, want) {
			t.Errorf("%d groups: %s", groups, out.Message)
		}
	}
}

// A01: weights and seats at the end of their range share exactly, and alike on every
// processor.
func TestA1WebsterAtTheEndOfTheRange(t *testing.T) {
	const most = math.MaxInt64
	for _, tt := range []struct {
		weights []int64
		seats   int64
		want    string
	}{
		{[]int64{most}, most, "[{a 9223372036854775807}]"},
		{[]int64{1}, most, "[{a 9223372036854775807}]"},
		{[]int64{most, most}, most, "[{a 4611686018427387904} {b 4611686018427387903}]"},
		{[]int64{most, most, most}, 7, "[{a 3} {b 2} {c 2}]"},
		{[]int64{most, 1}, math.MaxInt32, "[{a 2147483647}]"},
		{[]int64{1 << 62, 1 << 62, 1 << 62, 1 << 62}, 1 << 40, "[{a 274877906944} {b 274877906944} {c 274877906944} {d 274877906944}]"},
	} {
		if got := fmt.Sprint(Webster(named(tt.weights), tt.seats)); got != tt.want {
			t.Errorf("%v, %d seats: got %s, want %s", tt.weights, tt.seats, got, tt.want)
		}
	}
}

// A01: the room of a cluster stays in range whatever it reports.
func TestA1RoomAtTheEndOfTheRange(t *testing.T) {
	r := room{pods: math.MaxInt64, modelled: true, models: []model{{nodes: math.MaxInt64 / podsOfNode}, {nodes: math.MaxInt64 / podsOfNode}}}
	if got := r.takes(&Needs{}); got != unbounded {
		t.Errorf("got %d", got)
	}
}

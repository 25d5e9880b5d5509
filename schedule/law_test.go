// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// The laws of a schedule, checked on random fleets and placements, with targets
// from an earlier placement.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := drawClusters(t, true)
		r := Request{APIVersion: "apps/v1", Kind: "Deployment", Workload: rapid.Bool().Draw(t, "workload")}
		if r.Workload {
			r.Replicas = rapid.Int64Range(0, 40).Draw(t, "replicas")
		}

		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			p := NewPlacement(drawPlacement(t))
			before := slices.Clone(r.Previous)
			out := p.Schedule(r, clusters)

			if !slices.Equal(before, r.Previous) {
				t.Fatalf("untouched: previous targets became %v", r.Previous)
			}

			shuffled := slices.Clone(clusters)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			mixed := r
			mixed.Previous = slices.Clone(r.Previous)
			slices.Reverse(mixed.Previous)

			if again := p.Schedule(mixed, shuffled); out.Reason == "Success" && !reflect.DeepEqual(out, again) {
				t.Fatalf("shuffled: %+v, then %+v", out, again)
			}
			if out.Reason == "Success" {
				laws(t, p, &r, clusters, out)
			}

			r.Previous, r.Affinity = out.Targets, out.Affinity
			if r.Workload {
				r.Replicas = rapid.Int64Range(0, 40).Draw(t, "replicas")
			}
		}
	})
}

func laws(t *rapid.T, p *Placement, r *Request, clusters []*Cluster, out Outcome) {
	if !slices.IsSortedFunc(out.Targets, func(a, b Share) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatalf("sorted: %v", out.Targets)
	}

	var sum int64
	regions := map[string]bool{}
	g := p.groups[p.start(Request{Affinity: out.Affinity})]
	for _, s := range out.Targets {
		sum += s.Count
		c := clusters[slices.IndexFunc(clusters, func(c *Cluster) bool { return c.Name == s.Name })]
		regions[c.Spec.Region] = true

		if _, ok := g.tier(c, r.Workload); !ok {
			t.Fatalf("affinity: %s is outside of %q", s.Name, out.Affinity)
		}

		wasTarget := slices.ContainsFunc(r.Previous, func(had Share) bool { return had.Name == s.Name })
		if reason, _ := p.untolerated(c); reason != "" && !wasTarget {
			t.Fatalf("taints: %s %s", s.Name, reason)
		}
		if r.Workload && !p.Divided() && s.Count != r.Replicas {
			t.Fatalf("duplicated: %s has %d of %d", s.Name, s.Count, r.Replicas)
		}
	}

	if r.Workload && p.Divided() && sum != r.Replicas {
		t.Fatalf("divided: %d of %d in %v", sum, r.Replicas, out.Targets)
	}
	if !p.spreads() {
		return
	}

	n := len(out.Targets)
	if l := p.spread.cluster; l != nil && n > max(l.max, len(regions)) {
		t.Fatalf("spread: %d clusters, allowed are %d", n, l.max)
	}
	if l := p.spread.region; l != nil && len(regions) > l.max {
		t.Fatalf("spread: %d regions, allowed are %d", len(regions), l.max)
	}
	if p.Divided() && r.Workload || r.Workload && r.Replicas == 0 {
		return // some of the chosen clusters may have no replica
	}

	if l := p.spread.cluster; l != nil && n < l.min {
		t.Fatalf("spread: %d clusters, wanted are %d", n, l.min)
	}
	if l := p.spread.region; l != nil && len(regions) < l.min {
		t.Fatalf("spread: %d regions, wanted are %d", len(regions), l.min)
	}
}

// A schedule with its own result as input does not change. This does not hold
// for divisions by capacity, because running replicas use capacity, or for
// spreading by region.
func TestSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := drawClusters(t, true)
		p := NewPlacement(drawPlacement(t))
		if p.spread.region != nil {
			return // another set of regions may win when some clusters are targets
		}

		r := Request{Workload: rapid.Bool().Draw(t, "workload") && !p.byCapacity()}
		if r.Workload {
			r.Replicas = rapid.Int64Range(1, 40).Draw(t, "replicas")
		}

		out := p.Schedule(r, clusters)
		if out.Reason != "Success" {
			return
		}

		r.Previous, r.Affinity = out.Targets, out.Affinity
		if again := p.Schedule(r, clusters); !reflect.DeepEqual(out, again) {
			t.Fatalf("%+v, then %+v", out, again)
		}
	})
}

// Without history, the result depends on the placement alone: an edit that is
// reverted leaves no trace. Taints do leave one, because targets stay.
func TestEditTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := drawClusters(t, false)
		p, q := drawPlacement(t), drawPlacement(t)
		for _, p := range []*policyv1alpha1.Placement{p, q} {
			p.SpreadConstraints, p.ClusterAffinities = nil, nil
			if rs := p.ReplicaScheduling; rs != nil {
				rs.ReplicaDivisionPreference = policyv1alpha1.Weighted
				if rs.WeightPreference != nil {
					rs.WeightPreference.DynamicWeight = ""
				}
			}
		}

		r := Request{Workload: true, Replicas: rapid.Int64Range(1, 40).Draw(t, "replicas")}
		first := NewPlacement(p).Schedule(r, clusters)
		r.Previous = first.Targets
		r.Previous = NewPlacement(q).Schedule(r, clusters).Targets

		if last := NewPlacement(p).Schedule(r, clusters); !reflect.DeepEqual(first, last) {
			t.Fatalf("%+v, then %+v", first, last)
		}
	})
}

func drawClusters(t *rapid.T, taints bool) []*Cluster {
	var clusters []*Cluster
	for i := range rapid.IntRange(1, 12).Draw(t, "clusters") {
		c := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%02d", i), Labels: map[string]string{"pool": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool")}},
			Spec:       clusterv1alpha1.ClusterSpec{Region: rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "region")},
			Status: clusterv1alpha1.ClusterStatus{ResourceSummary: &clusterv1alpha1.ResourceSummary{
				Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(rapid.Int64Range(0, 20).Draw(t, "pods"), resource.DecimalSI)},
			}},
		}

		if taints && rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
			c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}

		clusters = append(clusters, NewCluster(c))
	}

	return clusters
}

func drawPlacement(t *rapid.T) *policyv1alpha1.Placement {
	pool := func(name string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}}}
	}

	p := rapid.SampledFrom([]func() *policyv1alpha1.Placement{
		duplicated, dynamic, aggregated, func() *policyv1alpha1.Placement { return static("c00:1 c01:2 c05:3") },
	}).Draw(t, "strategy")()

	switch rapid.IntRange(0, 3).Draw(t, "affinity") {
	case 1:
		a := pool("a")
		a.ExcludeClusters = []string{"c03"}
		p.ClusterAffinity = &a
	case 2:
		p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "a", ClusterAffinity: pool("a")}, {AffinityName: "b", ClusterAffinity: pool("b")},
		}
		if NewPlacement(p).byCapacity() {
			p.ClusterAffinities[0].OverflowAffinities = []policyv1alpha1.OverflowAffinity{{AffinityName: "over", ClusterAffinity: pool("b")}}
		}
	}

	if rapid.Bool().Draw(t, "tolerates") {
		p.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}

	limits := func(name string) (int, int) {
		least := rapid.IntRange(1, 4).Draw(t, "min "+name)
		return least, rapid.SampledFrom([]int{0, least, least + 2}).Draw(t, "max "+name)
	}

	switch rapid.IntRange(0, 2).Draw(t, "spread") {
	case 1:
		least, most := limits("clusters")
		spreadBy(p, policyv1alpha1.SpreadByCluster, least, most)
	case 2:
		least, most := limits("clusters")
		spreadBy(p, policyv1alpha1.SpreadByCluster, least, most)
		least, most = limits("regions")
		spreadBy(p, policyv1alpha1.SpreadByRegion, least, most)
	}

	return p
}

// The search finds the same set as checking every set of regions.
func TestSearchEqualsLookingAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := search{
			region:  limits{rapid.IntRange(1, 4).Draw(t, "min regions"), rapid.IntRange(4, 8).Draw(t, "max regions")},
			cluster: limits{min: rapid.IntRange(0, 9).Draw(t, "min clusters")},
		}

		for i := range rapid.IntRange(1, 9).Draw(t, "regions") {
			s.regions = append(s.regions, region{
				name:     string(rune('a' + i)),
				clusters: make([]candidate, rapid.IntRange(1, 4).Draw(t, "clusters")),
				score:    rapid.Int64Range(0, 4).Draw(t, "score"),
			})
		}

		want := bruteForce(&s)
		if got := s.best(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// bruteForce is digest §4.5, steps 3 and 4, literally.
func bruteForce(s *search) []int {
	type path struct {
		regions     []int
		score, size int64
		id          int
	}

	var paths []path
	var walk func(from int, p path)
	walk = func(from int, p path) {
		if len(p.regions) > s.region.max {
			return
		}

		if len(p.regions) >= s.region.min && p.size >= int64(s.cluster.min) {
			p.id = len(paths)
			slices.SortFunc(p.regions, func(i, j int) int {
				return cmp.Or(cmp.Compare(s.regions[j].score, s.regions[i].score), strings.Compare(s.regions[i].name, s.regions[j].name))
			})
			paths = append(paths, p)
			return
		}

		for i := from; i < len(s.regions); i++ {
			walk(i+1, path{append(slices.Clone(p.regions), i), p.score + s.regions[i].score, p.size + int64(len(s.regions[i].clusters)), 0})
		}
	}

	walk(0, path{})
	if len(paths) == 0 {
		return nil
	}

	slices.SortFunc(paths, func(a, b path) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.size, a.size), cmp.Compare(a.id, b.id))
	})

	chosen := paths[0].regions
	for _, p := range paths[1:] {
		if len(p.regions) < len(chosen) && slices.Equal(p.regions, chosen[:len(p.regions)]) {
			chosen = p.regions
		}
	}

	return chosen
}

// A placement cannot block a commit forever: there are more sets of these
// regions than anyone could check.
func TestSearchOfManyRegions(t *testing.T) {
	s := search{region: limits{30, 60}, cluster: limits{min: 200}}
	for i := range 100 {
		s.regions = append(s.regions, region{name: fmt.Sprintf("r%03d", i), clusters: make([]candidate, 1+i%7), score: int64(i * 7919 % 1000)})
	}
	if set := s.best(); len(set) < 30 {
		t.Fatalf("got %v", set)
	}
}

// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/schedule"
)

// fleet returns n clusters in ten regions, with capacity and APIs as clusters
// report them.
func fleet(n int) []*schedule.Cluster {
	var clusters []*schedule.Cluster
	for i := range n {
		c := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("cluster-%04d", i),
				Labels: map[string]string{"env": "prod", "tier": fmt.Sprint("t", i%3), "number": fmt.Sprint(i)},
			},
			Spec: clusterv1alpha1.ClusterSpec{Provider: "p", Region: fmt.Sprint("region-", i%10), Zones: []string{"z"}},
			Status: clusterv1alpha1.ClusterStatus{
				ResourceSummary: &clusterv1alpha1.ResourceSummary{
					Allocatable: resources(fmt.Sprint(16+i%48), "64Gi", "110"),
					Allocated:   resources("4", "8Gi", "20"),
				},
			},
		}

		for _, gv := range []string{"v1", "apps/v1", "batch/v1", "networking.k8s.io/v1"} {
			e := clusterv1alpha1.APIEnablement{GroupVersion: gv}
			for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ConfigMap", "Secret", "Service"} {
				e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Kind: kind})
			}
			c.Status.APIEnablements = append(c.Status.APIEnablements, e)
		}

		clusters = append(clusters, schedule.NewCluster(c))
	}

	return clusters
}

func resources(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods:   resource.MustParse(pods),
	}
}

// BenchmarkSchedule measures the cost of one binding.
func BenchmarkSchedule(b *testing.B) {
	named := func(i int) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: []string{fmt.Sprintf("cluster-%04d", i)}}
	}

	labelled := func(i int) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"number": fmt.Sprint(i)}}}
	}

	rules := func(of func(int) policyv1alpha1.ClusterAffinity) *policyv1alpha1.Placement {
		var list []policyv1alpha1.StaticClusterWeight
		for i := range 100 {
			list = append(list, policyv1alpha1.StaticClusterWeight{TargetCluster: of(i), Weight: int64(i%7 + 1)})
		}
		return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.Divided, ReplicaDivisionPreference: policyv1alpha1.Weighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: list},
		}}
	}

	for _, bm := range []struct {
		name      string
		clusters  int
		placement *policyv1alpha1.Placement
		replicas  int64
	}{
		{"duplicated on 3 of 10", 10, &policyv1alpha1.Placement{
			ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"cluster-0001", "cluster-0004", "cluster-0007"}}}, 3},
		{"100 weights by name, 100 clusters", 100, rules(named), 1000},
		{"100 weights by label, 100 clusters", 100, rules(labelled), 1000},
		{"dynamic weight, region spread, 1000 clusters", 1000, &policyv1alpha1.Placement{
			SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByRegion, MinGroups: 2, MaxGroups: 4},
				{SpreadByField: policyv1alpha1.SpreadByCluster, MinGroups: 5, MaxGroups: 40},
			},
			ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.Divided, ReplicaDivisionPreference: policyv1alpha1.Weighted,
				WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
			}}, 500},
	} {
		b.Run(bm.name, func(b *testing.B) {
			clusters := fleet(bm.clusters)
			p := schedule.NewPlacement(bm.placement)
			r := schedule.Request{APIVersion: "apps/v1", Kind: "Deployment", Workload: true, Replicas: bm.replicas,
				Needs: schedule.NewNeeds(resources("250m", "256Mi", "0"))}

			b.ReportAllocs()

			for b.Loop() {
				if out := p.Schedule(r, clusters); out.Reason != "Success" {
					b.Fatal(out)
				}
			}
		})
	}
}

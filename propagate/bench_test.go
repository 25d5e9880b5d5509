// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// fleet is a snapshot of so many ConfigMaps, under one policy, on so many
// clusters.
func benchFleet(b *testing.B, templates, clusters int) *fleet.Snapshot {
	b.Helper()
	s := &fleet.Snapshot{}
	for i := range clusters {
		c, problems := fleet.NewCluster(&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i)},
			Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		}, fleet.Origin{}, nil)
		if problems != nil {
			b.Fatal(problems)
		}
		s.Clusters = s.Clusters.With(c.Name, c)
	}
	for i := range 10 {
		namespace := fmt.Sprintf("ns-%d", i)
		p, problems := fleet.NewPolicy(policyv1alpha1.KindPropagationPolicy, metav1.ObjectMeta{Name: "all", Namespace: namespace},
			policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}}, fleet.Origin{}, nil)
		if problems != nil {
			b.Fatal(problems)
		}
		s.Policies = s.Policies.With(p.Ref.Key(), p)
	}
	for i := range templates {
		t := configMap(b, i, 0)
		s.Templates = s.Templates.With(t.Key(), t)
	}
	return s
}

func configMap(b *testing.B, i, version int) *fleet.Template {
	b.Helper()
	t, problems := fleet.NewTemplate(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": fmt.Sprintf("config-%05d", i), "namespace": fmt.Sprintf("ns-%d", i%10)},
		"data":     map[string]any{"version": fmt.Sprint(version)},
	}, object.BuiltinScope, fleet.Origin{File: "x.yaml"}, "x.yaml")
	if problems != nil {
		b.Fatal(problems)
	}
	return t
}

// BenchmarkStep is a commit that changes one template of so many: its cost
// must not follow their number.
func BenchmarkStep(b *testing.B) {
	for _, templates := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("templates=%d", templates), func(b *testing.B) {
			snapshot := benchFleet(b, templates, 3)
			state := propagate.Step(propagate.State{}, propagate.Commit{Hash: "first", Snapshot: snapshot})
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				next := *snapshot
				t := configMap(b, n%templates, n)
				next.Templates = next.Templates.With(t.Key(), t)
				snapshot = &next
				state = propagate.Step(state, propagate.Commit{Hash: fmt.Sprint(n), Snapshot: snapshot})
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// BenchmarkFirstStep places 10,000 templates on 100 clusters: a million works.
func BenchmarkFirstStep(b *testing.B) {
	snapshot := benchFleet(b, 10_000, 100)
	before := heap()
	var state propagate.State
	for b.Loop() {
		state = propagate.Step(propagate.State{}, propagate.Commit{Hash: "first", Snapshot: snapshot})
	}
	b.ReportMetric(float64(heap()-before)/float64(state.Works), "bytes/work")
	runtime.KeepAlive(state)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMatch finds the policies of 10,000 templates among 1,000, half of
// them by labels, and binds them where there is no cluster to go to.
func BenchmarkMatch(b *testing.B) {
	s := benchFleet(b, 10_000, 0)
	for i := range 1_000 {
		selector := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("config-%05d", i*10)}
		if i%2 == 0 {
			selector.Name, selector.LabelSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
		}
		p, problems := fleet.NewPolicy(policyv1alpha1.KindPropagationPolicy, metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i), Namespace: fmt.Sprintf("ns-%d", i%10)},
			policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{selector}}, fleet.Origin{}, nil)
		if problems != nil {
			b.Fatal(problems)
		}
		s.Policies = s.Policies.With(p.Ref.Key(), p)
	}
	for b.Loop() {
		propagate.Step(propagate.State{}, propagate.Commit{Hash: "first", Snapshot: s})
	}
}

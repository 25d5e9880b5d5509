// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

const threeClusters = `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: a}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: b}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: c}
spec: {syncMode: Push}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [a, b]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 2, selector: {}, template: {}}
status: {replicas: 99}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
`

// Each row of digest §9.2 and what of §9.4 is ours to add up.
func TestCollectedStatus(t *testing.T) {
	c := propagate.Commit{Hash: "1"}
	if c.Snapshot, c.Problems = read(map[string]string{"fleet.yaml": threeClusters}); c.Problems != nil {
		t.Fatal(c.Problems)
	}
	s := propagate.Step(propagate.State{}, c)
	seen := func(cluster string, health propagate.Health, replicas int) propagate.Copy {
		return propagate.Copy{Observed: interpret.Observed{Cluster: cluster, Applied: true, Health: health,
			Status: map[string]any{"replicas": int64(replicas), "observedGeneration": int64(3), "generation": int64(3)}}}
	}
	silent := func(cluster, why string) propagate.Copy {
		// What was seen of it once says nothing about what is wanted now.
		return propagate.Copy{Message: why, Observed: interpret.Observed{Cluster: cluster, Health: propagate.Healthy, Status: map[string]any{"replicas": int64(7)}}}
	}
	const all, some = "True FullyAppliedSuccess", "False FullyAppliedFailed"
	for _, w := range []struct {
		name, kind, items, applied, sum string
		copies                          []propagate.Copy
	}{
		{"both have it, in any order", "Deployment",
			`[{"clusterName":"a","status":{"generation":3,"observedGeneration":3,"replicas":1},"applied":true,"health":"Healthy"},{"clusterName":"b","status":{"generation":3,"observedGeneration":3,"replicas":2},"applied":true,"health":"Unhealthy"}]`,
			all, `{"availableReplicas":0,"readyReplicas":0,"replicas":3,"unavailableReplicas":0,"updatedReplicas":0}`,
			[]propagate.Copy{seen("b", propagate.Unhealthy, 2), seen("a", propagate.Healthy, 1)}},
		{"one has not applied it: nothing else is said of it", "Deployment",
			`[{"clusterName":"a","status":{"generation":3,"observedGeneration":3,"replicas":1},"applied":true,"health":"Healthy"},{"clusterName":"b","appliedMessage":"it is missing","health":"Unknown"}]`,
			some, `{"availableReplicas":0,"readyReplicas":0,"replicas":1,"unavailableReplicas":0,"updatedReplicas":0}`,
			[]propagate.Copy{seen("a", propagate.Healthy, 1), silent("b", "it is missing")}},
		{"one is not told about", "Deployment",
			`[{"clusterName":"a","status":{"generation":3,"observedGeneration":3,"replicas":1},"applied":true,"health":"Healthy"}]`,
			some, `{"availableReplicas":0,"readyReplicas":0,"replicas":1,"unavailableReplicas":0,"updatedReplicas":0}`,
			[]propagate.Copy{seen("a", propagate.Healthy, 1)}},
		{"one too many", "Deployment",
			`[{"clusterName":"a","applied":true,"health":"Unknown"},{"clusterName":"b","applied":true,"health":"Unknown"},{"clusterName":"c","applied":true,"health":"Unknown"}]`,
			some, `{"availableReplicas":0,"readyReplicas":0,"replicas":0,"unavailableReplicas":0,"updatedReplicas":0}`,
			[]propagate.Copy{applied("a"), applied("b"), applied("c")}},
		{"another instead", "Deployment",
			`[{"clusterName":"a","applied":true,"health":"Unknown"},{"clusterName":"c","applied":true,"health":"Unknown"}]`,
			some, `{"availableReplicas":0,"readyReplicas":0,"replicas":0,"unavailableReplicas":0,"updatedReplicas":0}`,
			[]propagate.Copy{applied("a"), applied("c")}},
		{"a kind that adds nothing up", "ConfigMap",
			`[{"clusterName":"a","applied":true,"health":"Unknown"},{"clusterName":"b","applied":true,"health":"Unknown"}]`,
			all, ``,
			[]propagate.Copy{applied("a"), applied("b")}},
	} {
		b := s.Bindings.At(object.ID{Group: map[string]string{"Deployment": "apps"}[w.kind], Kind: w.kind, Namespace: "shop", Name: "web"}.Key())
		given := slices.Clone(w.copies)
		rb := s.MemberStatus(b, w.copies)
		if got := asJSON(t, rb.Status.AggregatedStatus); got != w.items {
			t.Errorf("%s:\n got %s\nwant %s", w.name, got, w.items)
		}
		last := rb.Status.Conditions[len(rb.Status.Conditions)-1]
		if got := string(last.Status) + " " + last.Reason; last.Type != "FullyApplied" || got != w.applied {
			t.Errorf("%s: %s is %s, want %s", w.name, last.Type, got, w.applied)
		}
		sum, err := s.Aggregated(b, w.copies)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if w.sum != "" {
			want = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"status":` + w.sum + `}`
		}
		if got := asJSON(t, sum); got != want && (want != "" || sum != nil) {
			t.Errorf("%s: sum\n got %s\nwant %s", w.name, got, want)
		}
		if asJSON(t, given) != asJSON(t, w.copies) {
			t.Errorf("%s: the copies were altered", w.name)
		}
	}
}

func applied(cluster string) propagate.Copy {
	return propagate.Copy{Observed: interpret.Observed{Cluster: cluster, Applied: true}}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

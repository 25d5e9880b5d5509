// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"slices"
	"testing"

	"github.com/fairlead/fairlead/propagate"
)

// Fold rule 23: an autoscaler of the fleet owns the replicas of what it scales on its
// clusters, and a label those of what somebody else scales.
func TestRetainedReplicas(t *testing.T) {
	c := propagate.Commit{Hash: "1"}
	c.Snapshot, c.Problems = read(map[string]string{"all.yaml": `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: a}
spec: {syncMode: Push}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: shop}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}
  - {apiVersion: argoproj.io/v1alpha1, kind: Workflow}
  - {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop}, spec: {replicas: 2}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: labelled, namespace: shop, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: other, namespace: shop}, spec: {replicas: 2}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w, namespace: shop, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {parallelism: 2}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}}
`})
	if c.Problems != nil {
		t.Fatal(c.Problems)
	}

	s := propagate.Step(propagate.State{}, c)
	scalers := propagate.NewScalers(&s)
	var got []string
	for b := range s.Bindings.Values() {
		for i := range b.Works {
			if scalers.Retain(b, &b.Works[i]) {
				got = append(got, b.Kind+" "+b.Name)
			}
		}
	}
	slices.Sort(got)
	if want := []string{"CloneSet labelled", "CloneSet web"}; !slices.Equal(got, want) {
		t.Errorf("an autoscaler owns the replicas of %v, want %v", got, want)
	}
}

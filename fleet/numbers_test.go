// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/object"
)

// A01: a number of replicas that no API server accepts is not divided, and is not
// replaced by one that would be accepted.
func TestA1ReplicasOutOfRange(t *testing.T) {
	pod := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}}}}
	for _, n := range []int64{-1, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64} {
		workers := []any{map[string]any{"replicas": int64(1)}, map[string]any{"replicas": n}}
		for kind, spec := range map[object.ID]map[string]any{
			{Group: "apps", Kind: "Deployment"}:         {"replicas": n, "template": pod},
			{Group: "batch", Kind: "Job"}:               {"parallelism": int64(1), "completions": n, "template": pod},
			{Group: "apps.kruise.io", Kind: "CloneSet"}: {"replicas": n, "template": pod},
			{Group: "ray.io", Kind: "RayService"}:       {"rayClusterConfig": map[string]any{"headGroupSpec": map[string]any{"template": pod}, "workerGroupSpecs": workers}},
			{Group: "flink.apache.org", Kind: "FlinkDeployment"}: {
				"jobManager": map[string]any{}, "taskManager": map[string]any{"replicas": n, "resource": map[string]any{"cpu": 1.0}},
			},
		} {
			version := map[string]string{"apps": "v1", "batch": "v1", "apps.kruise.io": "v1alpha1", "ray.io": "v1", "flink.apache.org": "v1beta1"}[kind.Group]
			if replicas, workload := newDemand(kind, kind.Group+"/"+version, map[string]any{"spec": spec}).Wanted(); workload {
				t.Errorf("%s with %d: %d replicas are placed", kind.Kind, n, replicas)
			}
		}
	}
}

// A01: percentages beyond every fleet mean the same on every processor.
func TestA1MaxDeleteOutOfRange(t *testing.T) {
	for value, want := range map[string]string{
		"50%": "20 true", "100%": "40 true", "101%": "40 true", "0%": "0 true",
		"9223372036854775807%": "40 true", "9223372036854775808%": "0 false", "-9223372036854775808%": "0 false", "7": "0 false",
	} {
		v := intstr.FromString(value)
		s, problems := NewSettings(&fleetv1alpha1.FleetConfig{Spec: fleetv1alpha1.FleetConfigSpec{MaxDelete: &v}}, Origin{}, nil)
		got := "0 false"
		if len(problems) == 0 {
			got = fmt.Sprintln(s.MaxDelete(40))
			got = got[:len(got)-1]
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}

// A01: adding up the requests of a pod is counted before it is done.
func TestA1RequestsOfManyContainers(t *testing.T) {
	many, containers := map[string]any{}, []any{}
	for i := range 2_000 {
		many[fmt.Sprintf("example.com/r%d", i)] = "1"
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", i)})
	}
	first := map[string]any{"restartPolicy": "Always", "resources": map[string]any{"requests": many}}
	spec := map[string]any{"initContainers": append([]any{first}, containers...)}

	d := newDemand(object.ID{Group: "apps", Kind: "Deployment"}, "", map[string]any{"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": spec}}})
	if d.Needs == nil || len(d.Needs.Resources) > 0 {
		t.Errorf("%d amounts are added up", len(d.Needs.Resources))
	}
}

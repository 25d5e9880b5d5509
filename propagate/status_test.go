// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/propagate"
)

// What members report is read by the scripts of its kind and version, by the
// kind's own rule where there are none.
func TestWhatMembersReport(t *testing.T) {
	c := propagate.Commit{Hash: "1"}
	c.Snapshot, c.Problems = read(map[string]string{"widgets.yaml": `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: widgets}
spec:
  target: {apiVersion: example.io/v1, kind: Widget}
  customizations:
    healthInterpretation:
      luaScript: function InterpretHealth(o) return o.status.ready end
    statusReflection:
      luaScript: function ReflectStatus(o) return {ready = o.status.ready} end
    statusAggregation:
      luaScript: "function AggregateStatus(o, items) o.status = {copies = #items} return o end"
---
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: clonesets}
spec:
  target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}
  customizations:
    healthInterpretation:
      luaScript: function InterpretHealth(o) return o.status.replicas > 1 end
`})
	if c.Problems != nil {
		t.Fatal(c.Problems)
	}
	s := propagate.Step(propagate.State{}, c)
	items := []interpret.Observed{{Cluster: "a"}, {Cluster: "b"}}
	for _, w := range []struct {
		object            map[string]any
		health            propagate.Health
		status, aggregate string
	}{
		{thing("example.io/v1", "Widget", `{"ready":true,"more":1}`), propagate.Healthy, `{"ready":true}`, `{"copies":2}`},
		{thing("example.io/v1", "Widget", `{"ready":false}`), propagate.Unhealthy, `{"ready":false}`, `{"copies":2}`},
		{thing("example.io/v1", "Widget", `{}`), propagate.UnknownHealth, `null`, `{"copies":2}`},
		{thing("example.io/v2", "Widget", `{"ready":false}`), propagate.Healthy, `{"ready":false}`, `{"ready":false}`},
		{thing("apps.kruise.io/v1alpha1", "CloneSet", `{"replicas":2,"other":1}`), propagate.Healthy, `{"replicas":2}`,
			`{"availableReplicas":0,"expectedUpdatedReplicas":0,"readyReplicas":0,"replicas":0,"updatedReadyReplicas":0,"updatedReplicas":0}`},
		{thing("apps.kruise.io/v1beta1", "StatefulSet", `{"updatedReplicas":2,"availableReplicas":1}`), propagate.Unhealthy, `{"availableReplicas":1,"updatedReplicas":2}`,
			`{"availableReplicas":0,"currentReplicas":0,"readyReplicas":0,"replicas":0,"updatedReadyReplicas":0,"updatedReplicas":0}`},
		{thing("v1", "PersistentVolumeClaim", `{"phase":"Pending"}`), propagate.Unhealthy, `{"phase":"Pending"}`, `{"phase":"Pending"}`},
	} {
		health, err := s.Health(w.object)
		if health != w.health || (err != nil) != (health == propagate.UnknownHealth) {
			t.Errorf("%v is %s (%v), want %s", w.object, health, err, w.health)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "ResourceInterpreterCustomization widgets (widgets.yaml:8): InterpretHealth: ") {
			t.Error(err)
		}
		status, err := s.StatusOf(w.object)
		if text, _ := json.Marshal(status); err != nil || string(text) != w.status {
			t.Errorf("status of %v: %s (%v), want %s", w.object, text, err, w.status)
		}
		whole, err := s.Aggregate(w.object, items)
		if text, _ := json.Marshal(whole["status"]); err != nil || string(text) != w.aggregate {
			t.Errorf("aggregate of %v: %s (%v), want %s", w.object, text, err, w.aggregate)
		}
	}
}

func thing(apiVersion, kind, status string) map[string]any {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind}
	var s map[string]any
	if err := json.Unmarshal([]byte(status), &s); err != nil {
		panic(err)
	}
	o["status"] = s
	return o
}

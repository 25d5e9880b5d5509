// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Each row of digest §9.3.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		object string
		want   Health
	}{
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":2}}`, Healthy},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2}}`, Healthy},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":2}}`, Unhealthy},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":2}}`, Unhealthy},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":1}}`, Unhealthy},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":"2"}}`, Unknown},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"status":"fine"}`, Unknown},
		{`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"generation":1},"spec":{"replicas":2},"status":{"observedGeneration":1,"updatedReplicas":2,"availableReplicas":1}}`, Unhealthy},
		{`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"generation":1},"spec":{"replicas":2},"status":{"observedGeneration":1,"updatedReplicas":2,"availableReplicas":2}}`, Healthy},
		{`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"generation":1},"spec":{"replicas":1},"status":{"observedGeneration":1,"availableReplicas":1}}`, Healthy},
		{`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"generation":1},"spec":{"replicas":1},"status":{"observedGeneration":1}}`, Unhealthy},
		{`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3}}`, Healthy},
		{`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":2,"numberAvailable":2}}`, Unhealthy},
		{`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":2}}`, Unhealthy},
		{`{"apiVersion":"v1","kind":"Service","spec":{"type":"ClusterIP"}}`, Healthy},
		{`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"}}`, Unhealthy},
		{`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{}]}}}`, Unhealthy},
		{`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`, Healthy},
		{`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":["192.0.2.1"]}}}`, Unknown},
		{`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","status":{"loadBalancer":{"ingress":[{"hostname":"a.example"}]}}}`, Healthy},
		{`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress"}`, Unhealthy},
		{`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Bound"}}`, Healthy},
		{`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Pending"}}`, Unhealthy},
		{`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":1}}`, Unknown},
		{`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, Healthy},
		{`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`, Unhealthy},
		{`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Succeeded"}}`, Healthy},
		{`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","status":{"currentHealthy":1,"desiredHealthy":2}}`, Unhealthy},
		{`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","status":{"currentHealthy":2,"desiredHealthy":2}}`, Healthy},
		{`{"apiVersion":"batch/v1","kind":"Job","status":{"failed":1}}`, Healthy},
		{`{"apiVersion":"example.io/v1","kind":"Widget"}`, Healthy},
	} {
		got, err := HealthOf(nil, object(t, c.object))
		if got != c.want || (err != nil) != (c.want == Unknown) {
			t.Errorf("%s is %s (%v), want %s", c.object, got, err, c.want)
		}
	}

	if got, err := HealthOf(nil, nil); got != Unknown || err != nil {
		t.Errorf("what was not seen is %s (%v)", got, err)
	}
}

func TestHealthByScript(t *testing.T) {
	s := compiled(t, InterpretHealth, `function InterpretHealth(o) return o.status.ready end`)
	for text, want := range map[string]Health{
		`{"kind":"W"}`:                          Unknown, // no status to inspect
		`{"kind":"W","status":{"ready":true}}`:  Healthy,
		`{"kind":"W","status":{"ready":false}}`: Unhealthy,
		`{"kind":"W","status":{"ready":"yes"}}`: Unknown,
	} {
		if got, err := HealthOf(s, object(t, text)); got != want || (err != nil) != (want == Unknown) {
			t.Errorf("%s is %s (%v), want %s", text, got, err, want)
		}
	}
}

// Digest §9.1.
func TestStatusOf(t *testing.T) {
	for name, c := range map[string]struct{ object, want string }{
		"deployment": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":4,"annotations":{"resourcetemplate.karmada.io/generation":"2"}},
			"status":{"replicas":3,"readyReplicas":2,"observedGeneration":4,"conditions":[{"type":"Available"}],"collisionCount":1}}`,
			`{"generation":4,"observedGeneration":4,"readyReplicas":2,"replicas":3,"resourceTemplateGeneration":2}`},
		"replica set": {`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"generation":1},"status":{"replicas":1,"fullyLabeledReplicas":1,"conditions":[]}}`,
			`{"fullyLabeledReplicas":1,"generation":1,"replicas":1}`},
		"daemon set": {`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"currentNumberScheduled":1,"numberMisscheduled":0,"desiredNumberScheduled":1,"collisionCount":7}}`,
			`{"currentNumberScheduled":1,"desiredNumberScheduled":1,"generation":1,"numberMisscheduled":0}`},
		"stateful set": {`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"generation":3},"status":{"replicas":2,"observedGeneration":3,"currentRevision":"x"}}`,
			`{"generation":3,"observedGeneration":3,"replicas":2}`},
		"load balancer":   {`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]},"conditions":[]}}`, `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}`},
		"other service":   {`{"apiVersion":"v1","kind":"Service","spec":{"type":"NodePort"},"status":{"loadBalancer":{"ingress":[]}}}`, `null`},
		"ingress":         {`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","status":{"loadBalancer":{}}}`, `{"loadBalancer":{}}`},
		"job":             {`{"apiVersion":"batch/v1","kind":"Job","status":{"active":1,"ready":1,"startTime":"2024-01-01T00:00:00Z","conditions":[],"uncountedTerminatedPods":{}}}`, `{"active":1,"conditions":[],"startTime":"2024-01-01T00:00:00Z"}`},
		"budget":          {`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","status":{"currentHealthy":1,"observedGeneration":2,"disruptedPods":{"a":"t"}}}`, `{"currentHealthy":1,"disruptedPods":{"a":"t"}}`},
		"autoscaler":      {`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","status":{"currentReplicas":1,"desiredReplicas":2,"conditions":[]}}`, `{"currentReplicas":1,"desiredReplicas":2}`},
		"any other":       {`{"apiVersion":"example.io/v1","kind":"Widget","status":{"phase":"Ready","parts":[1]}}`, `{"parts":[1],"phase":"Ready"}`},
		"an empty status": {`{"apiVersion":"example.io/v1","kind":"Widget","status":{}}`, `null`},
		"no status":       {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":1}}`, `null`},
	} {
		got, err := StatusOf(nil, object(t, c.object))
		if text := compact(t, got); err != nil || text != c.want {
			t.Errorf("%s: %s (%v), want %s", name, text, err, c.want)
		}
	}
}

func TestStatusOfByScript(t *testing.T) {
	for source, want := range map[string]string{
		`return {phase = o.status.phase, big = o.status.big}`: `{"big":9007199254740993,"phase":"Ready"}`,
		`return o.status`: `{"big":9007199254740993,"phase":"Ready"}`,
		`return {}`:       `null`,
		`return nil`:      `null`,
	} {
		s := compiled(t, ReflectStatus, "function ReflectStatus(o) "+source+" end")
		got, err := StatusOf(s, object(t, `{"apiVersion":"apps/v1","kind":"Deployment","status":{"phase":"Ready","big":9007199254740993,"gone":null}}`))
		if text := compact(t, got); err != nil || text != want {
			t.Errorf("%s: %s (%v), want %s", source, text, err, want)
		}
	}

	s := compiled(t, ReflectStatus, "function ReflectStatus(o) return o.status.phase end")
	if _, err := StatusOf(s, object(t, `{"kind":"W","status":{"phase":"Ready"}}`)); err == nil || err.Error() != "ReflectStatus: the result is not an object" {
		t.Error(err)
	}
}

// Each row of digest §9.4, and of §13, cases 79, 80 and 81.
func TestAggregate(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		items    map[string]string
		want     string
	}{
		"deployment on three clusters": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2}}`,
			map[string]string{
				"m1": `{"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2,"generation":5,"observedGeneration":5,"resourceTemplateGeneration":2}`,
				"m2": `{"replicas":2,"readyReplicas":2,"updatedReplicas":1,"availableReplicas":1,"unavailableReplicas":1,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2}`,
				"m3": `{"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2,"generation":1,"observedGeneration":2,"resourceTemplateGeneration":3}`,
			},
			`{"availableReplicas":5,"observedGeneration":2,"readyReplicas":6,"replicas":6,"unavailableReplicas":1,"updatedReplicas":5}`,
		},
		"one has not been seen by its controller": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Available"}]}}`,
			map[string]string{"m1": `{"replicas":1,"generation":5,"observedGeneration":4,"resourceTemplateGeneration":2}`},
			`{"availableReplicas":0,"observedGeneration":1,"readyReplicas":0,"replicas":1,"unavailableReplicas":0,"updatedReplicas":0}`,
		},
		"one is of an older template": {
			`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"generation":2}}`,
			map[string]string{
				"m1": `{"replicas":1,"fullyLabeledReplicas":1,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`,
				"m2": `{"replicas":1,"fullyLabeledReplicas":1,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2}`,
			},
			`{"availableReplicas":0,"fullyLabeledReplicas":2,"readyReplicas":0,"replicas":2}`,
		},
		"one has no status": {
			`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1}}`,
			map[string]string{"m1": `{"desiredNumberScheduled":3,"numberReady":2,"numberAvailable":2,"numberMisscheduled":1,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberUnavailable":1,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`, "m2": ``},
			`{"currentNumberScheduled":3,"desiredNumberScheduled":3,"numberAvailable":2,"numberMisscheduled":1,"numberReady":2,"numberUnavailable":1,"updatedNumberScheduled":3}`,
		},
		"stateful set": {
			`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"generation":1}}`,
			map[string]string{
				"m1": `{"replicas":1,"currentReplicas":1,"readyReplicas":1,"availableReplicas":1,"updatedReplicas":1,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`,
				"m2": `{"replicas":2,"currentReplicas":1,"readyReplicas":1,"availableReplicas":1,"updatedReplicas":2,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`,
			},
			`{"availableReplicas":2,"currentReplicas":2,"observedGeneration":1,"readyReplicas":2,"replicas":3,"updatedReplicas":3}`,
		},
		"a workload that is nowhere": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2}}`, nil,
			`{"availableReplicas":0,"observedGeneration":2,"readyReplicas":0,"replicas":0,"unavailableReplicas":0,"updatedReplicas":0}`,
		},
		"a template without a generation": {
			`{"apiVersion":"apps/v1","kind":"ReplicaSet"}`, map[string]string{"m1": `{"replicas":1,"generation":3,"observedGeneration":3}`},
			`{"availableReplicas":0,"fullyLabeledReplicas":0,"readyReplicas":0,"replicas":1}`,
		},
		"load balancer": {
			`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"}}`,
			map[string]string{"m1": `{"loadBalancer":{"ingress":[{"ip":"192.0.2.9"},{"hostname":"b.example"}]}}`, "m2": `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"ip":"192.0.2.9"}]}}`, "m3": ``},
			`{"loadBalancer":{"ingress":[{"hostname":"b.example"},{"ip":"192.0.2.1"},{"ip":"192.0.2.9"}]}}`,
		},
		"another service": {
			`{"apiVersion":"v1","kind":"Service","spec":{"type":"ClusterIP"},"status":{"conditions":[{"type":"x"}]}}`,
			map[string]string{"m1": `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}`},
			`{"conditions":[{"type":"x"}]}`,
		},
		"ingress": {
			`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress"}`,
			map[string]string{"m1": `{"loadBalancer":{"ingress":[{"hostname":"b.example"}]}}`, "m2": `{"loadBalancer":{"ingress":[{"hostname":"a.example"},{"hostname":"b.example"}]}}`},
			`{"loadBalancer":{"ingress":[{"hostname":"a.example"},{"hostname":"b.example"}]}}`,
		},
		"job that runs": {
			`{"apiVersion":"batch/v1","kind":"Job"}`,
			map[string]string{
				"m1": `{"active":1,"startTime":"2024-01-01T00:00:02Z"}`,
				"m2": `{"succeeded":2,"startTime":"2024-01-01T00:00:01Z","completionTime":"2024-01-01T00:01:00Z","conditions":[{"type":"Complete","status":"True"}]}`,
			},
			`{"active":1,"failed":0,"startTime":"2024-01-01T00:00:01Z","succeeded":2}`,
		},
		"job that has not begun everywhere": {
			`{"apiVersion":"batch/v1","kind":"Job"}`,
			map[string]string{"m1": `{"active":1,"startTime":"2024-01-01T00:00:02Z"}`, "m2": ``},
			`{"active":1,"failed":0,"succeeded":0}`,
		},
		"job that began before": {
			`{"apiVersion":"batch/v1","kind":"Job","status":{"startTime":"2023-01-01T00:00:00Z"}}`,
			map[string]string{"m1": `{"active":1,"startTime":"2024-01-01T00:00:02Z"}`},
			`{"active":1,"failed":0,"startTime":"2023-01-01T00:00:00Z","succeeded":0}`,
		},
		"job that failed": {
			`{"apiVersion":"batch/v1","kind":"Job"}`,
			map[string]string{
				"m1": `{"failed":1,"conditions":[{"type":"Failed","status":"True"}]}`,
				"m2": `{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}`,
				"m3": `{"failed":2,"conditions":[{"type":"Failed","status":"True"}]}`,
			},
			`{"active":0,"conditions":[{"message":"Job executed failed in member clusters m1,m3","reason":"JobFailed","status":"True","type":"Failed"}],"failed":3,"succeeded":1}`,
		},
		"job that is complete": {
			`{"apiVersion":"batch/v1","kind":"Job"}`,
			map[string]string{
				"m1": `{"succeeded":1,"startTime":"2024-01-01T00:00:01Z","completionTime":"2024-01-01T00:01:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`,
				"m2": `{"succeeded":1,"startTime":"2024-01-01T00:00:02Z","completionTime":"2024-01-01T00:02:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`,
			},
			`{"active":0,"completionTime":"2024-01-01T00:02:00Z","conditions":[{"message":"Job completed","reason":"Completed","status":"True","type":"Complete"},{"message":"Job completed","reason":"Completed","status":"True","type":"SuccessCriteriaMet"}],"failed":0,"startTime":"2024-01-01T00:00:01Z","succeeded":2}`,
		},
		"job that was finished": {
			`{"apiVersion":"batch/v1","kind":"Job","status":{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}}`,
			map[string]string{"m1": `{"failed":1,"conditions":[{"type":"Failed","status":"True"}]}`},
			`{"conditions":[{"status":"True","type":"Complete"}],"succeeded":1}`,
		},
		"job that is nowhere": {
			`{"apiVersion":"batch/v1","kind":"Job"}`, nil, `{"active":0,"failed":0,"succeeded":0}`,
		},
		"cron job": {
			`{"apiVersion":"batch/v1","kind":"CronJob"}`,
			map[string]string{
				"m1": `{"active":[{"name":"a"}],"lastScheduleTime":"2024-01-02T00:00:00Z"}`,
				"m2": `{"active":[{"name":"b"}],"lastScheduleTime":"2024-01-01T00:00:00Z","lastSuccessfulTime":"2024-01-01T00:00:09Z"}`,
			},
			`{"active":[{"name":"a"},{"name":"b"}],"lastScheduleTime":"2024-01-02T00:00:00Z","lastSuccessfulTime":"2024-01-01T00:00:09Z"}`,
		},
		"pod that failed": {
			`{"apiVersion":"v1","kind":"Pod"}`,
			map[string]string{"m1": `{"phase":"Running","containerStatuses":[{"name":"a"}]}`, "m2": `{"phase":"Failed","containerStatuses":[{"name":"b"}],"initContainerStatuses":[{"name":"i"}]}`},
			`{"containerStatuses":[{"name":"a"},{"name":"b"}],"initContainerStatuses":[{"name":"i"}],"phase":"Failed"}`,
		},
		"pod without a status somewhere": {`{"apiVersion":"v1","kind":"Pod"}`, map[string]string{"m1": `{"phase":"Running"}`, "m2": ``}, `{"phase":"Pending"}`},
		"pod that runs":                  {`{"apiVersion":"v1","kind":"Pod"}`, map[string]string{"m1": `{"phase":"Running"}`, "m2": `{"phase":"Succeeded"}`}, `{"phase":"Running"}`},
		"pod that is done":               {`{"apiVersion":"v1","kind":"Pod"}`, map[string]string{"m1": `{"phase":"Succeeded"}`}, `{"phase":"Succeeded"}`},
		"pod in an unknown phase":        {`{"apiVersion":"v1","kind":"Pod"}`, map[string]string{"m1": `{"phase":"Unknown"}`}, `{"phase":"Unknown"}`},
		"pod that is nowhere":            {`{"apiVersion":"v1","kind":"Pod"}`, nil, `null`},
		"volumes":                        {`{"apiVersion":"v1","kind":"PersistentVolume"}`, map[string]string{"m1": `{"phase":"Bound"}`, "m2": `{"phase":"Available"}`, "m3": `{"phase":"Released"}`}, `{"phase":"Available"}`},
		"volume that failed":             {`{"apiVersion":"v1","kind":"PersistentVolume"}`, map[string]string{"m1": `{"phase":"Pending"}`, "m2": `{"phase":"Failed"}`}, `{"phase":"Failed"}`},
		"volume that is bound":           {`{"apiVersion":"v1","kind":"PersistentVolume"}`, map[string]string{"m1": `{"phase":"Released"}`, "m2": `{"phase":"Bound"}`}, `{"phase":"Bound"}`},
		"claim": {
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim"}`,
			map[string]string{"m1": `{"phase":"Bound","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}`, "m2": `{"phase":"Bound","capacity":{"storage":"512Mi"},"accessModes":["ReadWriteOnce","ReadOnlyMany"]}`},
			`{"accessModes":["ReadWriteOnce","ReadOnlyMany"],"capacity":{"storage":"1536Mi"},"phase":"Bound"}`,
		},
		"claim that waits":   {`{"apiVersion":"v1","kind":"PersistentVolumeClaim"}`, map[string]string{"m1": `{"phase":"Bound"}`, "m2": `{"phase":"Pending"}`, "m3": `{"phase":"Bound"}`}, `{"phase":"Pending"}`},
		"claim that is lost": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim"}`, map[string]string{"m1": `{"phase":"Lost"}`, "m2": `{"phase":"Pending"}`}, `{"phase":"Lost"}`},
		"budget": {
			`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget"}`,
			map[string]string{"m1": `{"currentHealthy":2,"desiredHealthy":1,"expectedPods":2,"disruptionsAllowed":1,"disruptedPods":{"a":"t"}}`, "m2": `{"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}`},
			`{"currentHealthy":3,"desiredHealthy":2,"disruptedPods":{"m1/a":"t"},"disruptionsAllowed":1,"expectedPods":3}`,
		},
		"autoscaler": {
			`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler"}`,
			map[string]string{"m1": `{"currentReplicas":2,"desiredReplicas":3}`, "m2": `{"currentReplicas":1,"desiredReplicas":1}`},
			`{"currentReplicas":3,"desiredReplicas":4}`,
		},
		"any other": {
			`{"apiVersion":"example.io/v1","kind":"Widget","status":{"n":1}}`, map[string]string{"m1": `{"n":2}`}, `{"n":1}`,
		},
	} {
		template := object(t, c.template)
		items := observations(t, c.items)
		before := []any{runtime.DeepCopyJSON(template), observations(t, c.items)}
		got, err := Aggregate(nil, template, items)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		if text := compact(t, got["status"]); text != c.want {
			t.Errorf("%s\n got %s\nwant %s", name, text, c.want)
		}
		if !reflect.DeepEqual(before, []any{template, items}) {
			t.Errorf("%s: the arguments were altered", name)
		}
	}
}

func TestAggregateOfWhatIsNotOfItsType(t *testing.T) {
	for _, c := range []struct{ kind, status, want string }{
		{`"apiVersion":"apps/v1","kind":"Deployment"`, `{"replicas":"3"}`, "Deployment: status.replicas on m1 has the wrong type"},
		{`"apiVersion":"networking.k8s.io/v1","kind":"Ingress"`, `{"loadBalancer":{"ingress":{}}}`, "Ingress: status.loadBalancer.ingress on m1 has the wrong type"},
		{`"apiVersion":"batch/v1","kind":"Job"`, `{"startTime":1}`, "Job: status.startTime on m1 has the wrong type"},
		{`"apiVersion":"v1","kind":"PersistentVolumeClaim"`, `{"capacity":{"storage":"1e99999999"}}`, "PersistentVolumeClaim: status.capacity on m1 has the wrong type"},
	} {
		_, err := Aggregate(nil, object(t, "{"+c.kind+"}"), observations(t, map[string]string{"m1": c.status}))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.status, err, c.want)
		}
	}
}

func TestAggregateByScript(t *testing.T) {
	s := compiled(t, AggregateStatus, `
function AggregateStatus(desiredObj, statusItems)
  desiredObj.status = {ready = 0, where = {}}
  desiredObj.spec = nil
  for i, item in ipairs(statusItems) do
    if item.status ~= nil then desiredObj.status.ready = desiredObj.status.ready + item.status.ready end
    desiredObj.status.where[i] = item.clusterName .. " " .. item.health .. " " .. tostring(item.applied)
  end
  return desiredObj
end`)

	template := object(t, `{"apiVersion":"example.io/v1","kind":"Widget","spec":{"size":1}}`)
	items := []Observed{{Cluster: "b"}, {Cluster: "a", Applied: true, Health: Healthy, Status: map[string]any{"ready": int64(2)}}}
	got, err := Aggregate(s, template, items)
	want := `{"apiVersion":"example.io/v1","kind":"Widget","spec":{"size":1},"status":{"ready":2,"where":["a Healthy true","b Unknown false"]}}`
	if text := compact(t, got); err != nil || text != want {
		t.Errorf("%s (%v), want %s", text, err, want)
	}

	for source, want := range map[string]string{
		`return {}`:             `{"apiVersion":"example.io/v1","kind":"Widget","spec":{"size":1}}`,
		`return {status = "x"}`: "AggregateStatus: the status is not an object",
		`return "x"`:            "AggregateStatus: the result is not an object",
		`return missing.field`:  "AggregateStatus: line 1: attempt to index a non-table object(nil)",
	} {
		s := compiled(t, AggregateStatus, "function AggregateStatus(o, items) "+source+" end")
		got, err := Aggregate(s, template, items)
		text := compact(t, got)
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s: %s, want %s", source, text, want)
		}
	}
}

func TestRetain(t *testing.T) {
	s := compiled(t, Retain, `
function Retain(desiredObj, observedObj)
  desiredObj.spec.node = observedObj.spec.node
  return desiredObj
end`)

	desired, observed := object(t, `{"kind":"W","spec":{"big":9007199254740993,"gone":null}}`), object(t, `{"kind":"W","spec":{"node":"n1","other":1}}`)
	got, err := s.Retain(desired, observed)
	want := `{"kind":"W","spec":{"big":9007199254740993,"gone":null,"node":"n1"}}`
	if text := compact(t, got); err != nil || text != want {
		t.Errorf("%s (%v), want %s", text, err, want)
	}
	if text := compact(t, desired); text != `{"kind":"W","spec":{"big":9007199254740993,"gone":null}}` {
		t.Errorf("the argument was altered: %s", text)
	}
}

// observations of objects; an empty text means no status.
func observations(t *testing.T, items map[string]string) (all []Observed) {
	t.Helper()
	for _, cluster := range []string{"m3", "m1", "m2"} { // not sorted
		if text, ok := items[cluster]; ok {
			o := Observed{Cluster: cluster}
			if text != "" {
				o.Status = object(t, strings.Replace(text, "{", `{"kind":"X",`, 1))
				delete(o.Status, "kind")
			}
			all = append(all, o)
		}
	}

	return all
}

func compact(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

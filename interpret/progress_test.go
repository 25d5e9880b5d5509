// SPDX-License-Identifier: Apache-2.0

package interpret

import "testing"

// Progress by the rule of a kind, by conditions for a kind without a rule, and
// by conditions that report a failure.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		object string
		want   Progress
		why    string
	}{
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":2}}`, Current, ""},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":2,"updatedReplicas":2,"availableReplicas":2}}`, InProgress, "its controller has not observed it yet"},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"updatedReplicas":1,"availableReplicas":3}}`, InProgress, "1 of 3 replicas"},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"updatedReplicas":3,"availableReplicas":2,
			"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"timed out\u001b[31m\nafter 10m"}]}}`, Failed, "timed out [31m after 10m"},
		// A condition from before the object became healthy.
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"updatedReplicas":1,"availableReplicas":1,
			"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`, Current, ""},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2,"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":0},"status":{"observedGeneration":2}}`, InProgress, "it is being deleted"},
		{`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"generation":1},"spec":{"replicas":2},"status":{"observedGeneration":1,"availableReplicas":1}}`, InProgress, "1 of 2 replicas"},
		{`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":2}}`, InProgress, "2 of 3 nodes"},
		{`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"}}`, InProgress, "it has no address yet"},
		{`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Pending"}}`, InProgress, "it is not healthy"},
		{`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Lost"}}`, Failed, "its volume is lost"},
		{`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Failed"}}`, Failed, "it failed"},
		{`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]}}`, InProgress, "ContainersNotReady"},
		{`{"apiVersion":"batch/v1","kind":"Job","status":{"active":1}}`, Current, ""},
		{`{"apiVersion":"batch/v1","kind":"Job","status":{"conditions":[{"type":"Failed","status":"True","message":"BackoffLimitExceeded"}]}}`, Failed, "BackoffLimitExceeded"},
		{`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{}}`, InProgress, "it is not established yet"},
		{`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Established","status":"True"}]}}`, Current, ""},
		{`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[{"type":"NamesAccepted","status":"False","reason":"ListKindConflict"}]}}`, Failed, "ListKindConflict"},
		{`{"apiVersion":"v1","kind":"ConfigMap"}`, Current, ""},
		{`{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4},"status":{"observedGeneration":3}}`, InProgress, "its controller has not observed it yet"},
		{`{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4},"status":{"observedGeneration":4,"conditions":[{"type":"Ready","status":"Unknown","message":"starting"}]}}`, InProgress, "starting"},
		{`{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Reconciling","status":"True"}]}}`, InProgress, "it is being reconciled"},
		{`{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4},"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Stalled","status":"True","reason":"BuildFailed"}]}}`, Failed, "BuildFailed"},
		{`{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, Current, ""},
		{`{"apiVersion":"example.io/v1","kind":"Widget","status":"fine"}`, Current, ""},
	} {
		o := object(t, c.object)
		does, err := HealthOf(nil, o)
		if err != nil {
			t.Errorf("%s: %v", c.object, err)
		}
		if got, why := ProgressOf(nil, o, does); got != c.want || why != c.why {
			t.Errorf("%s is %s (%s), want %s (%s)", c.object, got, why, c.want, c.why)
		}
	}
}

// A script decides for its kind, whatever the conditions say.
func TestProgressByScript(t *testing.T) {
	s, err := Compile(InterpretHealth, "function InterpretHealth(o) return o.status.ready end", Native{})
	if err != nil {
		t.Fatal(err)
	}

	for text, want := range map[string]Progress{
		`{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"generation":4},"status":{"ready":true,"observedGeneration":1,"conditions":[{"type":"Ready","status":"False"}]}}`: Current,
		`{"apiVersion":"example.io/v1","kind":"Widget","status":{"ready":false}}`:                                                                                                    InProgress,
		`{"apiVersion":"example.io/v1","kind":"Widget","status":{"ready":false,"conditions":[{"type":"Stalled","status":"True"}]}}`:                                                  Failed,
	} {
		o := object(t, text)
		does, err := HealthOf(s, o)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := ProgressOf(s, o, does); got != want {
			t.Errorf("%s is %s (%s), want %s", text, got, why, want)
		}
	}
}

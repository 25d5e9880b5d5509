// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch/push"
)

const compared = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web, fairlead.dev/managed: "true"}
  annotations: {fairlead.dev/revision: abc, example.com/owner: ann}
spec:
  replicas: 3
  paused: false
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - name: web
        image: web:1
        resources: {requests: {cpu: 1000m}}
        ports: [{containerPort: 80}]
        args: [a, b]
        env: [{name: A, value: ""}]
      volumes: [{name: tmp, emptyDir: {}}]
      nodeSelector: {disk: ssd}
`

// What SOPS has encrypted is decrypted by the cluster's Flux. Of that the
// metadata is compared, and all of what the cluster has encrypted, too.
func TestDriftOfEncrypted(t *testing.T) {
	manifest := parsed(t, `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {app: web}}, stringData: {key: "ENC[x]"}, sops: {mac: "ENC[m]"}}`)
	for live, want := range map[string]string{
		`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {app: web}}, data: {key: eA==}, type: Opaque}`:                    "",
		`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {app: api}}, data: {key: eA==}, type: Opaque}`:                    "metadata.labels.app: api => web",
		`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {app: web}}, stringData: {key: "ENC[y]"}, sops: {mac: "ENC[m]"}}`: "data.key: redacted",
	} {
		if got := told(push.Drift(parsed(t, live), manifest)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", live, got, want)
		}
	}
}

// A server says null where a role has no rules.
func TestDriftOfNothing(t *testing.T) {
	const none = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: []}`
	for live, want := range map[string]string{
		strings.Replace(none, "[]", "null", 1):             "",
		strings.Replace(none, "[]", "[{verbs: [get]}]", 1): "rules: [map[verbs:[get]]] => []",
	} {
		if got := told(push.Drift(parsed(t, live), parsed(t, none))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", live, got, want)
		}
	}
}

// What a server makes of what we set, and what others set beside it, is no
// drift; another value of a field that we set is.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		name string
		edit string // old => new, in the manifest, to make it the live one
		want string
	}{
		{"the same", "", ""},
		{"a mark of ours", "revision: abc => revision: def", ""},
		{"somebody else's annotation", "owner: ann => owner: ann, other: x", ""},
		{"an annotation of ours", "owner: ann => owner: bob", "metadata.annotations[example.com/owner]: bob => ann"},
		{"an amount in other words", "cpu: 1000m => cpu: 1", ""},
		{"another amount", "cpu: 1000m => cpu: 500m", "spec.template.spec.containers[name=web].resources.requests.cpu: 500m => 1"},
		{"replicas", "replicas: 3 => replicas: 9", "spec.replicas: 9 => 3"},
		{"a default of the server", "containerPort: 80 => containerPort: 80, protocol: TCP", ""},
		{"another port beside ours", "containerPort: 80} => containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: TCP}", ""},
		{"our port is gone", "containerPort: 80 => containerPort: 81", "spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP].containerPort: <nil> => 80"},
		{"another container in front of ours", "containers:\n => containers:\n      - {name: proxy, image: proxy}\n", ""},
		{"a zero that the server leaves out", "  paused: false\n => ", ""},
		{"a zero that became something", "paused: false => paused: true", "spec.paused: true => false"},
		{"an empty value is a value", `env: [{name: A, value: ""}] => env: [{name: A, value: x}]`, "spec.template.spec.containers[name=web].env[name=A].value: x => "},
		{"a list that is one value", "args: [a, b] => args: [a, c]", "spec.template.spec.containers[name=web].args: [a c] => [a b]"},
		{"a list with more in it", "args: [a, b] => args: [a, b, c]", "spec.template.spec.containers[name=web].args: [a b c] => [a b]"},
		{"an empty object that was filled", "emptyDir: {} => emptyDir: {medium: Memory}", ""},
		{"an object that is gone", "volumes: [{name: tmp, emptyDir: {}}] => volumes: []", "spec.template.spec.volumes[name=tmp].emptyDir: <nil> => map[]; spec.template.spec.volumes[name=tmp].name: <nil> => tmp"},
		{"a status", "spec:\n  replicas => status: {replicas: 1}\nspec:\n  replicas", ""},
	} {
		live := compared
		if c.edit != "" {
			from, to, _ := strings.Cut(c.edit, " => ")
			if live = strings.Replace(compared, from, to, 1); live == compared {
				t.Fatalf("%s: the edit does not apply", c.name)
			}
		}
		if got := told(push.Drift(parsed(t, live), parsed(t, compared))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Of a Secret it is told that a key differs, and not how.
func TestDriftOfASecret(t *testing.T) {
	manifest := parsed(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque, data: {a: YQ==, b: Yg==}, stringData: {c: c}}`)
	live := parsed(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, type: other, data: {a: YQ==, b: eA==, c: Yw==, d: eA==}}`)
	if got, want := told(push.Drift(live, manifest)), "data.b: redacted; type: other => Opaque"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := told(push.Changes(live, manifest)), "data.b: redacted; data.d: redacted; type: other => Opaque"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// kubectl leaves the whole manifest in an annotation (A8).
	manifest["metadata"] = map[string]any{"name": "s", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "YQ=="}}
	if got, want := told(push.Drift(live, manifest)), "data.b: redacted; metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: redacted; metadata.labels.a: <nil> => b; type: other => Opaque"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprintf("%#v", push.Changes(nil, manifest)); strings.Contains(got, "YQ==") || strings.Contains(got, `"c"`) {
		t.Errorf("a value shows: %s", got)
	}
}

// Between two manifests everything counts that either of them sets.
func TestChanges(t *testing.T) {
	old := parsed(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "2"}}`)
	is := parsed(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: "y"}}, data: {a: "1", c: ""}}`)
	if got, want := told(push.Changes(old, is)), "data.b: 2 => <nil>; data.c: <nil> => ; metadata.labels.x: <nil> => y"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := told(push.Changes(nil, old)); got != "data.a: <nil> => 1; data.b: <nil> => 2" {
		t.Errorf("a new object: %s", got)
	}
	widget := func(text string) map[string]any {
		return parsed(t, "{apiVersion: example.io/v1, kind: Widget, metadata: {name: a}, spec: "+text+"}")
	}
	if got, want := told(push.Changes(widget("{items: [{name: a, v: 1}], size: 1}"), widget("{items: [{name: a, v: 2}], size: 1.0}"))), "spec.items: [map[name:a v:1]] => [map[name:a v:2]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := told(push.Drift(widget("{items: [{name: a, v: 1, more: 2}], size: 1, other: 3}"), widget("{items: [{name: a, v: 1}], size: 1}"))); got != "" {
		t.Errorf("what the server added is drift: %s", got)
	}
}

func told(all []push.Difference) string {
	var lines []string
	for _, d := range all {
		if d.Redacted {
			lines = append(lines, d.Path+": redacted")
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %v => %v", d.Path, d.Before, d.After))
	}
	return strings.Join(lines, "; ")
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return o
}

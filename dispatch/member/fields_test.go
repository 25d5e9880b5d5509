// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch/member"
)

// TestLost names what others have written by its path, and no value but the keys of
// list items (U38).
func TestLost(t *testing.T) {
	const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, tier: front}}
spec:
  replicas: 3
  args: [one, two]
  template: {spec: {containers: [{name: web, image: "web:1", env: []}, {name: log, image: "log:1"}]}}
`
	const whole = `{"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}},"f:spec":{"f:replicas":{},"f:args":{},"f:template":{"f:spec":{"f:containers":{
		"k:{\"name\":\"web\"}":{"f:name":{},"f:image":{}},"k:{\"name\":\"log\"}":{"f:name":{},"f:image":{}}}}}}}`

	for _, test := range []struct{ without, with, retained, want string }{
		{"", "", "", ""},
		{`"f:replicas":{},`, "", "", "spec.replicas"},
		{`"f:replicas":{},`, "", "retained", ""},
		{`,"f:tier":{}`, "", "", "metadata.labels.tier"},
		{`"f:args":{},`, "", "", "spec.args"},
		{`"k:{\"name\":\"web\"}":{"f:name":{},"f:image":{}},`, "", "", "spec.template.spec.containers[0].image spec.template.spec.containers[0].name"},
		{`"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}},`, "", "", "metadata.labels.app metadata.labels.tier"},
		{`"k:{\"name\":\"web\"}":{"f:name":{},"f:image":{}}`, `"k:{\"name\":\"web\"}":{"f:name":{}}`, "", "spec.template.spec.containers[name=web].image"},
	} {
		fields := strings.Replace(whole, test.without, test.with, 1)
		if !json.Valid([]byte(fields)) {
			t.Fatalf("%s", fields)
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
			t.Fatal(err)
		}

		got := strings.Join(slices.Collect(member.Lost(json.RawMessage(fields), object, test.retained != "")), " ")
		if got != test.want {
			t.Errorf("without %s: got %q, want %q", test.without, got, test.want)
		}
		if owns := member.Owns(json.RawMessage(fields), object, test.retained != ""); owns != (got == "") {
			t.Errorf("without %s: Owns is %v", test.without, owns)
		}
	}
}

// What SOPS has encrypted was sent decrypted: without its field sops, and of a Secret the
// stringData as data.
func TestOwnsEncrypted(t *testing.T) {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": "ENC"}, "data": map[string]any{"b": "ENC"}, "sops": map[string]any{"mac": "m"}}
	for fields, want := range map[string]string{
		`{"f:data":{"f:a":{},"f:b":{}}}`: "",
		`{"f:data":{"f:b":{}}}`:          "data.a",
		`{"f:data":{"f:a":{}}}`:          "data.b",
	} {
		if got := slices.Collect(member.Lost(json.RawMessage(fields), secret, false)); strings.Join(got, " ") != want {
			t.Errorf("%s: %v", fields, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package yamledit_test

import (
	"math"
	"testing"

	"github.com/fairlead/fairlead/change/yamledit"
)

// The layout of a new file: identifying fields come first, lists are not
// indented, multi-line strings are blocks, and ambiguous strings are quoted.
func TestNew(t *testing.T) {
	template := map[string]any{
		"spec": map[string]any{
			"template": map[string]any{
				"spec": map[string]any{
					"containers": []any{map[string]any{
						"image": "web:1.0", "name": "web", "args": []any{"--v=2", "on", "1"},
						"env": []any{map[string]any{"value": "1e3", "name": "N"}, map[string]any{"name": "NONE", "value": ""}},
					}},
				},
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			},
			"replicas": int64(3), "paused": false, "none": nil, "share": 0.5, "large": int64(math.MaxInt64 >> 11), "empty": map[string]any{}, "list": []any{},
		},
		"kind": "Deployment", "apiVersion": "apps/v1", "data": map[string]any{"conf": "a: 1\n\n# ---\nb: |\n  2\n", "y": "0777", "tail": "x \n\n"},
		"metadata": map[string]any{"labels": map[string]any{"name": "x"}, "namespace": "shop", "name": "web", "annotations": map[string]any{"a": "no"}},
	}

	policy := yamledit.Fields{{Name: "kind", Value: "P"}, {Name: "b", Value: []any{yamledit.Fields{{Name: "z", Value: "1"}, {Name: "name", Value: true}}}}, {Name: "a", Value: "x"}}
	got, err := yamledit.New(template, policy)
	if err != nil {
		t.Fatal(err)
	}

	want := `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    a: "no"
  labels:
    name: x
data:
  conf: |
    a: 1

    # ---
    b: |
      2
  tail: "x \n\n"
  "y": "0777"
spec:
  empty: {}
  large: 4503599627370495
  list: []
  none: null
  paused: false
  replicas: 3
  share: 0.5
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: web
        args:
        - --v=2
        - "on"
        - "1"
        env:
        - name: "N"
          value: "1e3"
        - name: NONE
          value: ""
        image: web:1.0
---
kind: P
b:
- z: "1"
  name: true
a: x
`

	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

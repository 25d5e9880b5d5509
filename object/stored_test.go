// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"encoding/json"
	"testing"

	"github.com/fairlead/fairlead/object"
)

func TestStored(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want string }{
		"stringData wins":      {`{"apiVersion":"v1","kind":"Secret","data":{"a":"YQ==","b":"Yg=="},"stringData":{"b":"c"}}`, `{"apiVersion":"v1","data":{"a":"YQ==","b":"Yw=="},"kind":"Secret"}`},
		"no data yet":          {`{"apiVersion":"v1","kind":"Secret","stringData":{"a":""}}`, `{"apiVersion":"v1","data":{"a":""},"kind":"Secret"}`},
		"nothing in it":        {`{"apiVersion":"v1","kind":"Secret","stringData":{}}`, `{"apiVersion":"v1","kind":"Secret"}`},
		"null":                 {`{"apiVersion":"v1","kind":"Secret","data":null,"stringData":{"a":"a"}}`, `{"apiVersion":"v1","data":{"a":"YQ=="},"kind":"Secret"}`},
		"a number":             {`{"apiVersion":"v1","kind":"Secret","stringData":{"a":"a","b":1}}`, `{"apiVersion":"v1","data":{"a":"YQ=="},"kind":"Secret","stringData":{"b":1}}`},
		"data is no map":       {`{"apiVersion":"v1","kind":"Secret","data":"x","stringData":{"a":"a"}}`, `{"apiVersion":"v1","data":"x","kind":"Secret","stringData":{"a":"a"}}`},
		"stringData is no map": {`{"apiVersion":"v1","kind":"Secret","stringData":"x"}`, `{"apiVersion":"v1","kind":"Secret","stringData":"x"}`},
		"another kind":         {`{"apiVersion":"v1","kind":"ConfigMap","stringData":{"a":"a"}}`, `{"apiVersion":"v1","kind":"ConfigMap","stringData":{"a":"a"}}`},
	} {
		var manifest map[string]any
		if err := json.Unmarshal([]byte(test.manifest), &manifest); err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(manifest)
		if got, _ := json.Marshal(object.Stored(manifest)); string(got) != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if after, _ := json.Marshal(manifest); string(after) != string(before) {
			t.Errorf("%s: the manifest became %s", name, after)
		}
	}
}

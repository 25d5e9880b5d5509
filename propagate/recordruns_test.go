// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fairlead/fairlead/propagate"
)

// Neighbors that are alike are one entry, in whatever field others differ, and entries of
// before are read.
func TestRecordRuns(t *testing.T) {
	like := propagate.WorkRecord{Want: 1, Released: 1}
	named := func(name string, w propagate.WorkRecord) propagate.WorkRecord { w.Cluster = name; return w }
	for i := range reflect.TypeFor[propagate.WorkRecord]().NumField() {
		other := like
		field := reflect.ValueOf(&other).Elem().Field(i)
		switch field.Interface().(type) {
		case string:
			field.SetString("x")
		case int:
			field.SetInt(7)
		case bool:
			field.SetBool(true)
		case []string:
			field.Set(reflect.ValueOf([]string{"x"}))
		default:
			t.Fatalf("a field of type %s", field.Type())
		}

		all := propagate.WorkRecords{named("a", like), named("b", like), named("c", other), named("d", other), named("e", like)}
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		var back propagate.WorkRecords
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(all, back) {
			t.Errorf("%s\nis %+v\nnot %+v", raw, back, all)
		}
	}

	for text, want := range map[string]string{
		`{"targets":[{"Name":"a","Count":2},{"Name":"b","Count":2}],"works":[{"cluster":"a","want":0,"released":-1},{"cluster":"b","want":0,"released":-1}]}`: `{"targets":[{"Clusters":"a b","Count":2}],"works":[{"want":0,"released":-1,"clusters":"a b"}]}`,
		`{"targets":[{"Clusters":"a b","Count":2},{"Clusters":"c","Count":1},{"Clusters":"d","Count":2}],"works":[]}`:                                         `{"targets":[{"Clusters":"a b","Count":2},{"Clusters":"c","Count":1},{"Clusters":"d","Count":2}],"works":null}`,
	} {
		var r struct {
			Targets propagate.TargetRecords `json:"targets"`
			Works   propagate.WorkRecords   `json:"works"`
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(r); err != nil || string(raw) != want {
			t.Errorf("%s\nis written as %s\nnot         %s (%v)", text, raw, want, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

func counters(n int, value string) []policyv1alpha1.PlaintextOverrider {
	all := make([]policyv1alpha1.PlaintextOverrider, n)
	for i := range all {
		all[i] = policyv1alpha1.PlaintextOverrider{Path: "/data/n", Operator: policyv1alpha1.OverriderReplace, Value: apiextensionsv1.JSON{Raw: fmt.Appendf(nil, value, i)}}
	}
	return all
}

// A03: the operations of a rule cost one decoding of the object, not one each, and
// which of them fails is known all the same.
func TestA3OperationsAreAppliedTogether(t *testing.T) {
	object := map[string]any{"data": map[string]any{"n": "0", "big": strings.Repeat("x", 600_000)}}
	for name, edit := range map[string]func(*policyv1alpha1.Overriders){
		"plaintext": func(o *policyv1alpha1.Overriders) { o.Plaintext = counters(3000, `"%d"`) },
		"a field": func(o *policyv1alpha1.Overriders) {
			f := policyv1alpha1.FieldOverrider{FieldPath: "/data/doc"}
			for _, p := range counters(3000, `%d`) {
				f.JSON = append(f.JSON, policyv1alpha1.JSONPatchOperation{SubPath: "/n", Operator: p.Operator, Value: p.Value})
			}
			o.FieldOverrider = append(o.FieldOverrider, f)
		},
	} {
		object["data"].(map[string]any)["doc"] = fmt.Sprintf(`{"n":0,"big":%q}`, strings.Repeat("x", 300_000))
		var o policyv1alpha1.Overriders
		edit(&o)

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Apply(object, &o)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("%s: took %d MiB", name, took>>20)
		}
		data := got["data"].(map[string]any)
		if data["n"] != "2999" && !strings.Contains(data["doc"].(string), `"n":2999`) {
			t.Errorf("%s: got n %v", name, data["n"])
		}
	}

	small := map[string]any{"data": map[string]any{"n": "0"}}
	for _, failing := range []int{0, 1, 17, 99} {
		o := policyv1alpha1.Overriders{Plaintext: counters(100, `"%d"`)}
		o.Plaintext[failing].Path = "/data/none"
		_, err := Apply(small, &o)
		if want := fmt.Sprintf("plaintext[%d]: replace /data/none: ", failing); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A03: what a rule costs is counted before it is applied.
func TestA3OperationsAreCounted(t *testing.T) {
	object := map[string]any{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"image": "a"}}}, "data": strings.Repeat("x", 900_000)}
	for name, o := range map[string]*policyv1alpha1.Overriders{
		"plaintext": {Plaintext: counters(6000, `"%d"`)},
		"images":    {ImageOverrider: slices.Repeat([]policyv1alpha1.ImageOverrider{{Component: "Repository", Operator: "add", Value: "a"}}, 6000)},
		"values":    {ArgsOverrider: []policyv1alpha1.CommandArgsOverrider{{ContainerName: "a", Operator: "remove", Value: slices.Repeat([]string{"a"}, 6000)}}},
	} {
		_, err := Apply(object, o)
		if err == nil || !strings.Contains(err.Error(), "are too much for one rule") {
			t.Errorf("%s: got %v", name, err)
		}
	}

	// An image that grows by what a rule adds counts with the rule's own size.
	long := &policyv1alpha1.Overriders{ImageOverrider: slices.Repeat([]policyv1alpha1.ImageOverrider{{Component: "Repository", Operator: "add", Value: strings.Repeat("a", 100)}}, 20_000)}
	if _, err := Apply(map[string]any{"kind": "Pod"}, long); err == nil {
		t.Error("an image may grow without limit")
	}
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// Whatever a file contains, rendering returns a snapshot, or problems that name
// the file.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: a}\nspec:\n  resourceSelectors:\n  - {apiVersion: v1, kind: ConfigMap}\n  placement:\n    clusterAffinity: {clusterNames: [m1]}\n    replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {staticWeightList: [{targetCluster: {}, weight: 1}]}}\n",
		"apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: a}\nspec:\n  overrideRules:\n  - overriders: {imageOverrider: [{component: Tag, operator: add, value: x}]}\n",
		"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push, taints: [{key: a, effect: NoSchedule}]}\nstatus: {resourceSummary: {allocatable: {cpu: \"1\"}}}\n",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n",
		"[{\"apiVersion\": \"v1\"}]", "a: &a [*a]", "---\n...\n---\n", "\xef\xbb\xbfkind: x\r\n", "x: !!binary aGk=\n",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		build, err := New().Render(fstest.MapFS{"file.yaml": {Data: []byte(text)}})
		var problems Problems
		switch {
		case err == nil && build.Snapshot == nil:
			t.Error("neither a snapshot nor a problem")
		case err != nil && !errors.As(err, &problems):
			t.Errorf("no problem of the file: %v", err)
		}

		for _, p := range problems {
			if p.File != "file.yaml" && !strings.HasPrefix(p.Message, "and ") {
				t.Errorf("%q is told of %q", p.Message, p.File)
			}
		}
	})
}

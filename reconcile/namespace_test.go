// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Digest §13, cases 60 and 86. A namespace that no policy sends is made where a
// work needs it, from the fleet's document, as cluster overrides edit it there.
func TestNamespaceThatAWorkNeeds(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	files := quickstart(t)
	const shared, selector = "policies/shared.yaml", "    - apiVersion: v1\n      kind: Namespace\n      name: shop\n"
	if !strings.Contains(files[shared], selector) {
		t.Fatal("the example places its namespace in another way")
	}
	files[shared] = strings.Replace(files[shared], selector, "", 1)
	files["policies/namespaces.yaml"] = `apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: namespaces}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Namespace}]
  overrideRules:
  - targetCluster: {clusterNames: [eu-1]}
    overriders: {labelsOverrider: [{operator: add, value: {zone: eu}}]}
`
	w.repo.Commit("first release", files)
	w.settle()
	for cluster, zone := range map[string]string{"ap-1": "", "eu-1": "eu", "us-1": ""} {
		labels := w.get(cluster, namespaces, "", "shop").GetLabels()
		if labels["team"] != "shop" || labels["zone"] != zone {
			t.Errorf("%s has the namespace with the labels %v, want team shop and zone %q", cluster, labels, zone)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/source"
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

// F33. A namespace that the fleet gave up once, and that was made later because
// a work needs it, is not what was given up: who forgets everything and reads
// the marks deletes nothing.
func TestNamespaceMadeOnTheWayStays(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	policy := `apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Namespace}, {apiVersion: v1, kind: ConfigMap}]
`
	files := map[string]string{"clusters.yaml": quickstart(t)["clusters/eu-1.yaml"], "policy.yaml": policy}
	files["namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	w.repo.Commit("placed", files)
	w.settle()
	held := w.repo.Commit("given up", map[string]string{"namespace.yaml": ""})
	if err := w.once(); err == nil {
		t.Fatalf("%s is not held", held)
	}
	_, digest, _ := strings.Cut(w.said(), "Fairlead-Allow-Delete: ")
	digest, _, _ = strings.Cut(digest, "\n")
	w.repo.Commit("yes\n\nFairlead-Allow-Delete: "+digest+"\n", nil)
	w.settle()
	if w.get("eu-1", namespaces, "", "shop") != nil {
		t.Fatal("the namespace is still there")
	}
	w.repo.Commit("needed", map[string]string{"note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"})
	w.settle()
	made := w.get("eu-1", namespaces, "", "shop").GetUID()
	w.state = t.TempDir()
	w.writes()
	w.settle()
	w.wantWrites()
	if again := w.get("eu-1", namespaces, "", "shop"); again == nil || again.GetUID() != made {
		t.Errorf("the namespace was deleted:\n%s", w.said())
	}

	// And nobody who looks is told that it is to go.
	repo, err := source.Open(w.repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := history.New(repo, ".").At(w.repo.Head())
	if err != nil {
		t.Fatal(err)
	}
	reader, err := push.NewReader(w.members["eu-1"].config)
	if err != nil {
		t.Fatal(err)
	}
	sights, err := status.Inspect(t.Context(), &state, state.Marker(), "eu-1", reader)
	if err != nil {
		t.Fatal(err)
	}
	shop := object.ID{Kind: "Namespace", Name: "shop"}
	if cells := status.Cells(&state, map[string]status.Answer{"eu-1": {Observations: sights}}); cells[shop] != nil {
		t.Errorf("status says %+v", cells[shop]["eu-1"])
	}
	differs, err := status.Drift(t.Context(), &state, state.Marker(), "eu-1", reader, func(object.ID) bool { return true })
	if err != nil || len(differs) != 0 {
		t.Errorf("diff says %+v, %v", differs, err)
	}
}

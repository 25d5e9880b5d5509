// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const (
	namespaceShop   = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: shop}}\n"
	namespacePolicy = "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: shop}\nspec:\n" +
		"  resourceSelectors: [{apiVersion: v1, kind: Namespace}]\n"
	suspended  = "  suspension: {dispatching: true}\n"
	preserving = "  preserveResourcesOnDeletion: true\n"
	failing    = "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: blocked, namespace: default}\nspec:\n" +
		"  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: blocked}]\n" +
		"  overrideRules: [{overriders: {plaintext: [{path: /data/absent, operator: remove}]}}]\n"
)

// What a state says of an object is what a member is told to do with it, and
// nothing of what is held or cannot be made is told.
func TestDesires(t *testing.T) {
	git := sourcetest.New(t)
	git.Commit("one", map[string]string{
		"clusters.yaml": failoverCluster("eu-1", "") + "---\n" + strings.Replace(failoverCluster("edge", ""), "Push", "Pull", 1),
		"plain.yaml":    configMap("plain", "1"), "kept.yaml": configMap("kept", "1"), "held.yaml": configMap("held", "1"),
		"gone.yaml": configMap("gone", "1"), "let.yaml": configMap("let", "1"), "blocked.yaml": configMap("blocked", "1"),
		"p1.yaml":   policyFor("ConfigMap", "plain", "gone", "blocked"),
		"p2.yaml":   policyFor("ConfigMap", "kept", "let") + preserving,
		"p3.yaml":   policyFor("ConfigMap", "held"),
		"shop.yaml": namespaceShop, "p4.yaml": namespacePolicy + suspended,
	})
	git.Commit("two", map[string]string{
		"gone.yaml": sourcetest.Delete, "let.yaml": sourcetest.Delete, "blocked.yaml": configMap("blocked", "2"), "o.yaml": failing,
		"held.yaml": configMap("held", "2"), "p3.yaml": policyFor("ConfigMap", "held") + suspended,
	})
	repo, err := source.Open(git.Dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := history.New(repo, ".").At(git.Head())
	if err != nil || state.Refusal != nil {
		t.Fatal(err, state.Refusal)
	}
	fleet := reconcile.FleetOf(&state)
	for _, c := range []struct {
		cluster, name string
		verb          dispatch.Verb
		manifest      string // some of what is sent
	}{
		{"eu-1", "plain", dispatch.Apply, "1"},
		{"edge", "plain", dispatch.Apply, "1"},
		{"eu-1", "kept", dispatch.Apply, "1"},
		{"edge", "kept", dispatch.Apply, "1, not to be pruned"},
		{"eu-1", "held", dispatch.Hold, ""},
		{"eu-1", "gone", dispatch.Delete, ""},
		{"eu-1", "let", dispatch.Orphan, ""},
		{"eu-1", "blocked", dispatch.Apply, "remove /data/absent"},
		{"eu-1", "never", dispatch.Leave, ""},
		{"us-1", "plain", dispatch.Leave, ""},
	} {
		d := fleet.Desire(c.cluster, object.ID{Kind: "ConfigMap", Namespace: "default", Name: c.name})
		if d.Verb != c.verb || d.Verb != dispatch.Leave && d.APIVersion != "v1" {
			t.Errorf("%s on %s: %s %q, want %s", c.name, c.cluster, d.Verb, d.APIVersion, c.verb)
		}
		if d.Verb != dispatch.Apply {
			continue
		}
		manifest, err := d.Manifest()
		if err != nil {
			if !strings.Contains(err.Error(), c.manifest) {
				t.Errorf("%s on %s: %v, want %q", c.name, c.cluster, err, c.manifest)
			}
			continue
		}
		meta := manifest["metadata"].(map[string]any)
		annotations := meta["annotations"].(map[string]any)
		got, _ := manifest["data"].(map[string]any)["v"].(string)
		if annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled" && annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false" {
			got += ", not to be pruned"
		}
		if got != c.manifest {
			t.Errorf("%s on %s: %q, want %q", c.name, c.cluster, got, c.manifest)
		}
		if annotations[object.AnnotationDigest] != d.Digest.String() {
			t.Errorf("%s on %s bears the digest %s and not %s", c.name, c.cluster, annotations[object.AnnotationDigest], d.Digest)
		}
	}
	for cluster := range map[string]int{"eu-1": 0, "edge": 0} {
		n := 0
		for key, want := range fleet.Wants(cluster) {
			if d := fleet.Desire(cluster, key.Value()); d.Want != want {
				t.Errorf("%s on %s: of all it is %+v, alone %+v", key.Value(), cluster, want, d.Want)
			}
			n++
		}
		if n < 7 {
			t.Errorf("only %d objects on %s", n, cluster)
		}
	}
	kept := object.ID{Kind: "ConfigMap", Namespace: "default", Name: "kept"}
	if fleet.Desire("eu-1", kept).Digest == fleet.Desire("edge", kept).Digest {
		t.Error("with the marks it has the same digest as without")
	}
	if doc := fleet.Namespace("eu-1", "shop"); doc != nil {
		t.Errorf("a namespace that is held slips through: %v", doc)
	}
}

// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/reconcile"
)

// A NoExecute taint in git moves what runs on a cluster: the copy there goes
// when the new one is there and healthy, in whatever process that is seen.
func TestFailoverMovesAndThenRemoves(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("a fleet", failoverFleet())
	w.settle()
	w.wantConfig("eu-1", "ap-1")
	w.writes()

	w.repo.Commit("eu-1 is broken", map[string]string{"clusters/ap-1.yaml": failoverCluster("ap-1", ", taints: [{key: broken, effect: NoExecute}]")})
	w.settle()
	w.wantConfig("eu-1", "ap-1", "us-1") // ap-1 keeps its copy until us-1 has one
	w.settle()
	w.wantConfig("eu-1", "us-1")
	w.wantWrites(
		"ap-1 DELETE /api/v1/namespaces/default/configmaps/settings",
		"us-1 PATCH /api/v1/namespaces/default/configmaps/settings",
	)
	w.settle()
	w.wantWrites()
}

// A member that does not answer for long enough takes no new work, and keeps
// what it has; a lost checkpoint forgets only what was seen.
func TestFailoverAvoidsASilentMember(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("a fleet", failoverFleet())
	w.settle()
	w.members["us-1"].down()
	now := time.Now()
	opt := w.options()
	opt.Clock.Now = func() time.Time { return now }
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 { // a silent member is believed to be silent after a while
		l.Once(context.Background())
		now = now.Add(time.Minute)
	}
	w.repo.Commit("another", map[string]string{
		"other.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\n",
		"policy.yaml": failoverPolicy + "---\n" + otherPolicy,
	})
	l.Once(context.Background())
	for _, name := range []string{"ap-1", "eu-1"} {
		if w.get(name, configMaps, "default", "other") == nil {
			t.Errorf("%s has not got the new work\n%s", name, w.said())
		}
	}
	if said := w.said(); !strings.Contains(said, "2 bindings, 4 works") {
		t.Errorf("the silent us-1 was chosen too\n%s", said)
	}
	w.members["us-1"].up()
	for range 3 {
		now = now.Add(time.Minute)
		l.Once(context.Background())
	}
	if w.get("us-1", configMaps, "default", "other") == nil {
		t.Errorf("us-1 answers again and has not got the new work\n%s", w.said())
	}
}

func (w *world) wantConfig(clusters ...string) {
	w.t.Helper()
	want := map[string]bool{}
	for _, name := range clusters {
		want[name] = true
	}
	got := map[string]bool{}
	for _, name := range names {
		if w.get(name, configMaps, "default", "settings") != nil {
			got[name] = true
		}
	}
	if !maps.Equal(got, want) {
		w.t.Fatalf("settings is on %v, want %v\n%s", got, want, w.said())
	}
}

func failoverFleet() map[string]string {
	files := map[string]string{
		"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {featureGates: {Failover: true}}\n",
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {a: b}\n",
		"policy.yaml":   failoverPolicy,
	}
	for _, name := range names {
		files["clusters/"+name+".yaml"] = failoverCluster(name, "")
	}
	return files
}

func failoverCluster(name, more string) string {
	return "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: Push" + more + "}\n"
}

const failoverPolicy = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  placement:
    spreadConstraints: [{maxGroups: 2, minGroups: 2}]
`

const otherPolicy = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: other, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: other}]
`

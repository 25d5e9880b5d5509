// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
)

// moving is a fleet with one ConfigMap on some clusters.
func moving(clusters ...string) map[string]string {
	return map[string]string{
		"web.yaml": configMap("web", "1"),
		"clusters.yaml": `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: ap-1}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us-1}
spec: {syncMode: Push}
`,
		"policy.yaml": placedOn(clusters...),
	}
}

func placedOn(clusters ...string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
`, strings.Join(clusters, ", "))
}

// onClusters are the clusters that have the ConfigMap.
func (w *world) onClusters() (on []string) {
	for _, name := range names {
		if w.get(name, configMaps, "default", "web") != nil {
			on = append(on, name)
		}
	}
	return on
}

func (w *world) has(says string, want ...string) {
	w.t.Helper()
	if got := w.onClusters(); !slices.Equal(got, want) {
		w.t.Fatalf("%s: it is on %v, want %v\n%s", says, got, want, w.said())
	}
}

func (w *world) waits(says, what string) {
	w.t.Helper()
	if err := w.once(); err == nil {
		w.t.Fatalf("%s: nothing is left\n%s", says, w.said())
	}
	if said := w.said(); !strings.Contains(said, what) {
		w.t.Fatalf("%s: it does not say %q:\n%s", says, what, said)
	}
}

func (w *world) loseState() {
	w.t.Helper()
	if err := os.RemoveAll(w.state); err != nil {
		w.t.Fatal(err)
	}
}

const waitsForUS = "delete ConfigMap default/web on eu-1: waits for us-1"

// Decision 42: a move takes nothing away before the new place has it, over restarts
// and with a lost state.
func TestMoveMakesBeforeItBreaks(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.timeout = patient
	w.repo.Commit("one", moving("eu-1"))
	w.settle()
	w.has("placed", "eu-1")

	w.members["us-1"].down()
	w.repo.Commit("move", map[string]string{"policy.yaml": placedOn("us-1")})
	w.waits("it does not answer", waitsForUS)
	w.waits("another process", waitsForUS)
	w.loseState()
	w.waits("a lost state", waitsForUS)
	w.members["us-1"].up()
	w.has("nothing is deleted meanwhile", "eu-1")

	w.timeout = long
	w.writes()
	w.settle()
	w.has("moved", "us-1")
	w.wantWrites("eu-1 DELETE /api/v1/namespaces/default/configmaps/web", "us-1 PATCH /api/v1/namespaces/default/configmaps/web")
	w.loseState()
	w.settle()
	w.has("moved, and all is forgotten", "us-1")
}

const (
	patient = 1500_000_000   // 1.5 s: how long a test waits for who does not answer
	long    = 60_000_000_000 // 1 min
)

// Decision 42: what the new place refuses, or cannot be rendered for it, keeps the
// old copy where it is.
func TestMoveToWhoRefuses(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", moving("eu-1"))
	w.settle()

	theirs := dynamic.NewForConfigOrDie(w.members["us-1"].config).Resource(configMaps).Namespace("default")
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}}}
	if _, err := theirs.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("move", map[string]string{"policy.yaml": placedOn("us-1")})
	w.waits("something is in the way", waitsForUS)
	w.has("it stays", "eu-1", "us-1")
	if err := theirs.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	const broken = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: broken, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  overrideRules:
  - targetCluster: {clusterNames: [us-1]}
    overriders: {plaintext: [{path: /data/absent/deep, operator: replace, value: x}]}
`
	w.repo.Commit("blocked", map[string]string{"override.yaml": broken})
	w.waits("an override fails", waitsForUS)
	w.has("it stays", "eu-1")
	w.repo.Commit("mended", map[string]string{"override.yaml": strings.Replace(broken, "/data/absent/deep", "/data/v", 1)})
	w.settle()
	w.has("moved", "us-1")
}

// Decision 42: a move goes on before it was acknowledged, and comes back; several
// commits are folded in one round, or one by one.
func TestMovesInAChain(t *testing.T) {
	for _, each := range []bool{true, false} {
		w := newWorld(t, embeddedMembers(t))
		w.repo.Commit("one", moving("eu-1"))
		w.settle()

		w.timeout = patient
		w.members["us-1"].down()
		w.members["ap-1"].down()
		w.repo.Commit("to us-1", map[string]string{"policy.yaml": placedOn("us-1")})
		if each {
			w.waits("the first does not answer", waitsForUS)
		}
		w.repo.Commit("to ap-1", map[string]string{"policy.yaml": placedOn("ap-1")})
		w.waits("neither does the second", "delete ConfigMap default/web on eu-1: waits for ap-1")
		w.members["ap-1"].up()
		if each {
			w.loseState()
		}
		_ = w.once() // us-1 is still away
		w.members["us-1"].up()
		w.has("the second has it", "ap-1")

		w.members["us-1"].down()
		w.repo.Commit("to us-1 again", map[string]string{"policy.yaml": placedOn("us-1")})
		if each {
			w.waits("it does not answer", "delete ConfigMap default/web on ap-1: waits for us-1")
		}
		w.repo.Commit("and back", map[string]string{"policy.yaml": placedOn("ap-1"), "web.yaml": configMap("web", "2")})
		_ = w.once()
		w.members["us-1"].up()
		w.timeout = long
		w.settle()
		w.has("it is back", "ap-1")
		if v := value(w.get("ap-1", configMaps, "default", "web"), "v"); v != "2" {
			t.Errorf("it is %q", v)
		}
	}
}

// Decision 42: the new place is held before it has it, or leaves the fleet.
func TestMoveToWhoIsHeldOrLeaves(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", moving("eu-1"))
	w.settle()

	w.timeout = patient
	w.members["us-1"].down()
	w.repo.Commit("move", map[string]string{"policy.yaml": placedOn("us-1")})
	w.waits("it does not answer", waitsForUS)
	hold := placedOn("us-1") + "  suspension: {dispatchingOnClusters: {clusterNames: [us-1]}}\n"
	w.repo.Commit("hold", map[string]string{"policy.yaml": hold})
	w.members["us-1"].up()
	w.waits("it is held", waitsForUS)
	w.has("it stays", "eu-1")

	w.repo.Commit("leave", map[string]string{"clusters.yaml": strings.Split(moving()["clusters.yaml"], "---\napiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: us-1}")[0], "policy.yaml": placedOn("us-1")})
	w.waits("it left", waitsForUS)
	w.has("it stays", "eu-1")

	w.repo.Commit("return", map[string]string{"clusters.yaml": moving()["clusters.yaml"]})
	w.timeout = long
	w.settle()
	w.has("moved", "us-1")
}

// Decision 42: who is expelled does not wait.
func TestTaintDoesNotWait(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", moving("eu-1"))
	w.settle()

	w.timeout = patient
	w.members["us-1"].down()
	w.repo.Commit("move", map[string]string{"policy.yaml": placedOn("us-1")})
	w.waits("it does not answer", waitsForUS)
	tainted := strings.Replace(moving()["clusters.yaml"], "metadata: {name: eu-1}\nspec: {syncMode: Push}", "metadata: {name: eu-1}\nspec: {syncMode: Push, taints: [{key: out, effect: NoExecute}]}", 1)
	w.repo.Commit("taint", map[string]string{"clusters.yaml": tainted})
	_ = w.once()
	w.members["us-1"].up()
	w.has("it is gone")
}

// generating is a Deployment that reads a generated ConfigMap.
func generating(v, selector string) map[string]string {
	files := moving("eu-1")
	delete(files, "web.yaml")
	files["web/kustomization.yaml"] = fmt.Sprintf("namespace: default\nresources: [web.yaml]\nconfigMapGenerator: [{name: web, literals: [v=%s]}]\n", v)
	files["web/web.yaml"] = fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      containers: [{name: web, image: example.com/web:1, envFrom: [{configMapRef: {name: web}}]}]
`, selector, selector)
	files["policy.yaml"] = strings.Replace(files["policy.yaml"], "{apiVersion: v1, kind: ConfigMap}", "{apiVersion: v1, kind: ConfigMap}, {apiVersion: apps/v1, kind: Deployment}", 1)
	return files
}

// generated are the values of the ConfigMaps that a cluster has.
func (w *world) generated(cluster string) (values []string) {
	w.t.Helper()
	objects, err := push.Live(w.t.Context(), w.members[cluster].config, configMaps, "default")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		values = append(values, value(&unstructured.Unstructured{Object: o}, "v"))
	}
	slices.Sort(values)
	return values
}

// Decision 35: the old copy of a generated object stays until those who use it have
// been acknowledged with the new one.
func TestGeneratedNamesStayForTheirUsers(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", generating("1", "web"))
	w.settle()

	want := func(says string, values ...string) {
		t.Helper()
		if got := w.generated("eu-1"); !slices.Equal(got, values) {
			t.Fatalf("%s: it has %v, want %v\n%s", says, got, values, w.said())
		}
	}
	want("placed", "1")
	w.repo.Commit("two", generating("2", "web"))
	w.settle()
	want("updated", "2")

	// The server refuses another selector.
	w.repo.Commit("three", generating("3", "other"))
	w.waits("it is refused", "waits for Deployment default/web on eu-1")
	want("it is refused", "2", "3")
	w.loseState()
	w.waits("it is refused, with a lost state", "waits for Deployment default/web on eu-1")
	want("it is refused, with a lost state", "2", "3")
	w.repo.Commit("four", generating("3", "web"))
	w.settle()
	want("it is mended", "3")

	// Whoever is held runs with the old one.
	files := generating("4", "web")
	files["policy.yaml"] += "  suspension: {dispatching: true}\n"
	w.repo.Commit("five, held", files)
	_ = w.once()
	want("it is held", "3")
	files["policy.yaml"] = generating("4", "web")["policy.yaml"]
	w.repo.Commit("six", files)
	w.settle()
	want("it is released", "4")
}

// Decision 42: for a pull cluster the published commit is the acknowledgement.
func TestMoveToAndFromPublished(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	dir := t.TempDir()
	options := w.options()
	connect := options.Members
	broken := false
	options.Members = func(c *fleet.Cluster) (member.Member, error) {
		switch {
		case c.Spec.SyncMode != "Pull":
			return connect(c)
		case broken:
			return pull.Directory("/dev/null/nowhere"), nil
		}
		return pull.Directory(dir), nil
	}
	once := func() error {
		t.Helper()
		l, err := reconcile.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Once(t.Context())
	}
	published := func() bool {
		_, err := os.Stat(dir + "/default/configmap_web.yaml")
		return err == nil
	}

	files := moving("eu-1")
	files["clusters.yaml"] = strings.Replace(files["clusters.yaml"], "{name: us-1}\nspec: {syncMode: Push}", "{name: us-1}\nspec: {syncMode: Pull}", 1)
	w.repo.Commit("one", files)
	if err := once(); err != nil {
		t.Fatal(err, w.said())
	}

	broken, options.Timeout = true, patient
	w.repo.Commit("move", map[string]string{"policy.yaml": placedOn("us-1")})
	if err := once(); err == nil || !strings.Contains(w.said(), waitsForUS) {
		t.Fatal("nothing is left")
	}
	w.has("it cannot be published", "eu-1")

	broken, options.Timeout = false, long
	if err := once(); err != nil {
		t.Fatal(err, w.said())
	}
	if w.has("published"); !published() {
		t.Error("there is no file")
	}

	options.Timeout = patient
	w.members["eu-1"].down()
	w.repo.Commit("and back", map[string]string{"policy.yaml": placedOn("eu-1")})
	if err := once(); err == nil || !published() {
		t.Error("the file is gone before eu-1 has it")
	}
	w.members["eu-1"].up()
	options.Timeout = long
	if err := once(); err != nil || published() {
		t.Error(err, "the file is still there", w.said())
	}
	w.has("back", "eu-1")
}

// dividing is a Deployment with six replicas, shared by weights.
func dividing(image string, eu, us int) map[string]string {
	files := moving("eu-1")
	files["web.yaml"] = fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:%s"}]}
`, image)
	files["policy.yaml"] = fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {clusterNames: [eu-1, us-1]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [eu-1]}, weight: %d}
        - {targetCluster: {clusterNames: [us-1]}, weight: %d}
`, eu, us)
	return files
}

// Decision 42: replicas that move are added first, and taken away after.
func TestReplicasMakeBeforeTheyBreak(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	shares := func(says, want string) {
		t.Helper()
		var got []string
		for _, name := range []string{"eu-1", "us-1"} {
			web := w.get(name, deployments, "shop", "web")
			if web == nil {
				got = append(got, "none")
				continue
			}
			n, _, _ := unstructured.NestedInt64(web.Object, "spec", "replicas")
			got = append(got, fmt.Sprintf("%s x%d", w.image(name), n))
		}
		if have := strings.Join(got, ", "); have != want {
			t.Fatalf("%s: %s, want %s\n%s", says, have, want, w.said())
		}
	}
	w.repo.Commit("one", dividing("1", 2, 1))
	w.settle()
	shares("placed", "1 x4, 1 x2")

	const waits = "apply Deployment shop/web on eu-1: waits for us-1"
	w.timeout = patient
	w.members["us-1"].down()
	w.repo.Commit("shift", dividing("1", 1, 2))
	w.waits("it does not answer", waits)
	w.repo.Commit("and another image", dividing("2", 1, 2))
	w.loseState()
	w.waits("a lost state", waits)
	w.members["us-1"].up()
	shares("nothing is taken away", "1 x4, 1 x2")

	w.timeout = long
	w.settle()
	shares("shifted", "2 x2, 2 x4")

	// What was shifted once holds up nothing later.
	w.timeout = patient
	w.members["us-1"].down()
	w.repo.Commit("a third image", dividing("3", 1, 2))
	_ = w.once()
	w.members["us-1"].up()
	shares("the other goes on", "3 x2, 2 x4")
}

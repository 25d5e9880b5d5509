// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const policyFile = "policies/web.yaml"

// The main job, end to end, on three members inside the process and on three
// real API servers.
func TestMainJob(t *testing.T) {
	for kind, start := range map[string]func(testing.TB) map[string]*testMember{"embedded": embeddedMembers, "real": realMembers} {
		t.Run(kind, func(t *testing.T) {
			members := start(t)
			mainJob(t, newWorld(t, members))
		})
	}
}

func mainJob(t *testing.T, w *world) {
	base := quickstart(t)
	policy := base[policyFile]
	hold := func(clusters ...string) string {
		return policy + "  suspension:\n    dispatchingOnClusters:\n      clusterNames: [" + strings.Join(clusters, ", ") + "]\n"
	}
	release := func(tag string) string {
		return strings.ReplaceAll(base["apps/web/kustomization.yaml"], `newTag: "1.0"`, `newTag: "`+tag+`"`)
	}

	// A first release of a kustomize application.
	w.repo.Commit("first release", base)
	w.settle()
	w.wantImages("ap-1=1.0 eu-1=1.0 us-1=1.0")
	for cluster, replicas := range map[string]int64{"eu-1": 6, "us-1": 3, "ap-1": 3} {
		if n, _, _ := unstructured.NestedInt64(w.get(cluster, deployments, "shop", "web").Object, "spec", "replicas"); n != replicas {
			t.Errorf("%s runs %d replicas, want %d", cluster, n, replicas)
		}
		if w.get(cluster, services, "shop", "web") == nil || w.get(cluster, configMaps, "shop", "web") == nil {
			t.Errorf("%s lacks the Service or the ConfigMap", cluster)
		}
	}
	first := w.writes()
	if len(first) != 15 {
		t.Errorf("%d writes for 15 works:\n%s", len(first), strings.Join(first, "\n"))
	}

	// A second run, and one after a commit that touches only a README, write nothing.
	w.settle()
	w.wantWrites()
	w.repo.Commit("words", map[string]string{"README.md": "# New words\n"})
	w.settle()
	w.wantWrites()

	// An image change that two clusters hold.
	w.repo.Commit("web 2.0, eu-1 first", map[string]string{"apps/web/kustomization.yaml": release("2.0"), policyFile: hold("us-1", "ap-1")})
	w.settle()
	w.wantImages("ap-1=1.0 eu-1=2.0 us-1=1.0")
	w.wantWrites("eu-1 PATCH /apis/apps/v1/namespaces/shop/deployments/web")

	// The checkpoint is deleted while clusters are held: nothing is released.
	if err := os.RemoveAll(w.state); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.wantImages("ap-1=1.0 eu-1=2.0 us-1=1.0")
	w.wantWrites()

	// A commit that takes one off the list releases exactly that one.
	w.repo.Commit("promote us-1", map[string]string{policyFile: hold("ap-1")})
	w.settle()
	w.wantImages("ap-1=1.0 eu-1=2.0 us-1=2.0")
	w.wantWrites("us-1 PATCH /apis/apps/v1/namespaces/shop/deployments/web")

	// Removal while suspended deletes everywhere, once an earlier commit has lifted
	// the limit.
	w.repo.Commit("no limit", map[string]string{"fairlead.yaml": sourcetest.Delete})
	w.settle()
	gone := map[string]string{"apps/web": sourcetest.Delete, "fairlead.yaml": sourcetest.Delete}
	w.repo.Commit("retire web", gone)
	w.settle()
	w.wantImages("ap-1= eu-1= us-1=")

	// Back again, everywhere; then preserved.
	w.repo.Commit("web 3.0", withRelease(base, release("3.0"), policy))
	w.settle()
	w.wantImages("ap-1=3.0 eu-1=3.0 us-1=3.0")
	preserve(t, w, gone, policy)

	foreignObjects(t, w)
	memberDown(t, w)
}

func withRelease(base map[string]string, kustomization, policy string) map[string]string {
	files := maps.Clone(base)
	files["apps/web/kustomization.yaml"], files[policyFile] = kustomization, policy
	delete(files, "fairlead.yaml")
	return files
}

// preserve: the objects stay, all our marks are gone, and nothing else of the
// objects changed.
func preserve(t *testing.T, w *world, gone map[string]string, policy string) {
	t.Helper()
	for _, name := range names {
		annotate(t, w, name) // somebody else owns a field, too
	}
	before := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		before[name] = w.get(name, deployments, "shop", "web")
	}
	w.writes()
	files := maps.Clone(gone)
	files[policyFile] = policy + "  preserveResourcesOnDeletion: true\n"
	w.repo.Commit("retire web, keep it running", files)
	w.settle()
	w.wantImages("ap-1=3.0 eu-1=3.0 us-1=3.0")
	for _, name := range names {
		after := w.get(name, deployments, "shop", "web")
		want := withoutMarks(before[name])
		after.SetResourceVersion("")
		// An API server counts an edit of a Deployment's annotations as a generation.
		after.SetGeneration(want.GetGeneration())
		if got, want := asJSON(t, after.Object), asJSON(t, want.Object); got != want {
			t.Errorf("%s: after the release\n%s\nwant\n%s", name, got, want)
		}
	}
	for _, request := range w.writes() {
		if !strings.Contains(request, " PATCH ") {
			t.Errorf("a preserved removal sent %s", request)
		}
	}
	w.settle()
	w.wantWrites()
}

// withoutMarks is an object as it should stand after a release.
func withoutMarks(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetResourceVersion("")
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, object.LabelManaged)
	delete(labels, object.LabelFleet)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "fairlead.dev/") })
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	managers := o.GetManagedFields()
	o.SetManagedFields(slices.DeleteFunc(managers, func(m metaManagedFields) bool { return m.Manager == object.Manager }))
	return o
}

// foreignObjects: Abort reports an object that somebody else made, Overwrite
// adopts it.
func foreignObjects(t *testing.T, w *world) {
	t.Helper()
	create(t, w, "us-1", "theirs", map[string]any{"owner": "kubectl", "extra": "kept by nobody"})
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: theirs\n  namespace: shop\ndata:\n  owner: fleet\n"
	policy := "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: theirs, namespace: shop}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: theirs}]\n"
	w.repo.Commit("theirs", map[string]string{"apps/theirs.yaml": template, "policies/theirs.yaml": policy})
	w.said()
	if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatalf("an object that is not ours: %v", err)
	}
	if said := w.said(); !strings.Contains(said, "us-1") || !strings.Contains(said, "not ours") || strings.Count(said, "not ours") != 1 {
		t.Errorf("the conflict is told as\n%s", said)
	}
	if got := w.get("us-1", configMaps, "shop", "theirs"); got.GetLabels()[object.LabelManaged] != "" || value(got, "owner") != "kubectl" {
		t.Errorf("Abort touched it: %s", asJSON(t, got.Object))
	}
	if w.get("eu-1", configMaps, "shop", "theirs") == nil {
		t.Error("the other clusters did not get theirs")
	}
	w.repo.Commit("take it over", map[string]string{"policies/theirs.yaml": policy + "  conflictResolution: Overwrite\n"})
	w.settle()
	got := w.get("us-1", configMaps, "shop", "theirs")
	if value(got, "owner") != "fleet" || value(got, "extra") != "" || got.GetLabels()[object.LabelManaged] != "true" {
		t.Errorf("Overwrite left %s", asJSON(t, got.Object))
	}
	w.writes()
}

func value(o *unstructured.Unstructured, key string) string {
	v, _, _ := unstructured.NestedString(o.Object, "data", key)
	return v
}

// memberDown: a member that does not answer delays nobody, is told in one
// line, and catches up.
func memberDown(t *testing.T, w *world) {
	t.Helper()
	down := w.members["us-1"]
	down.down()
	w.repo.Commit("notice", map[string]string{"apps/notice/notice.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: shop}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: notice, namespace: shop}\ndata: {text: closed}\n"})
	w.said()
	w.timeout = 5 * time.Second
	if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatalf("a member is down: %v", err)
	}
	said := w.said()
	if strings.Count(said, "us-1") != 1 {
		t.Errorf("the member that is down is told as\n%s", said)
	}
	for _, name := range []string{"ap-1", "eu-1"} {
		if got := value(w.get(name, configMaps, "shop", "notice"), "text"); got != "closed" {
			t.Errorf("%s has %q while us-1 is down", name, got)
		}
	}
	down.up()
	w.timeout = time.Minute
	w.settle()
	if got := value(w.get("us-1", configMaps, "shop", "notice"), "text"); got != "closed" {
		t.Errorf("us-1 has %q after it came back", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// many adds ConfigMaps to the fleet, for a rollout that lasts.
func (h *hub) many(n int, value string) {
	h.t.Helper()
	files := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("many-%02d", i)
		files["apps/many/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {v: '" + value + "'}\n"
	}
	files["policies/many.yaml"] = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: many, namespace: shop}\n" +
		"spec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchExpressions: [{key: app.kubernetes.io/name, operator: DoesNotExist}]}}]\n"
	h.commit("many "+value, files)
}

// applied counts what the members were sent for the many, by object.
func (h *hub) applied() map[string]int {
	all := map[string]int{}
	for name, m := range h.members {
		for _, r := range m.Requests() {
			if r.Method == "PATCH" && strings.Contains(r.Path, "/many-") {
				all[name+" "+r.Path]++
			}
		}
	}
	return all
}

// slow delays the answers of all members.
func (h *hub) slow(d time.Duration) {
	for _, m := range h.members {
		m.SetLatency(d)
	}
}

// While the API server of the Fleets is away the members are served with what is known;
// what happened is told when it is back. FAIRLEAD_HUB_AWAY is how long it is away, 0 without.
func TestHubAway(t *testing.T) {
	h := newHub(t)
	h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")

	h.server.Stop(t)
	h.release("2.0")
	h.eventually("the members get 2.0 without the hub", func() string {
		if got := h.image("eu-1") + h.image("us-1") + h.image("ap-1"); got != "2.02.02.0" {
			return got + "."
		}
		return ""
	})

	if d, err := time.ParseDuration(os.Getenv("FAIRLEAD_HUB_AWAY")); err == nil {
		time.Sleep(d)
		h.release("3.0")
		h.eventually("the members get 3.0", func() string { return strings.TrimPrefix(h.image("eu-1")+h.image("us-1")+h.image("ap-1"), "3.03.03.0") })
	}
	h.server.Restart(t)
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
}

// A controller that is ended in the middle of a rollout lets the requests in flight end;
// the next one sends what is left, and nothing twice.
func TestEndedInTheMiddle(t *testing.T) {
	h := newHub(t)
	stop := h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")

	h.slow(100 * time.Millisecond)
	h.many(60, "1")
	h.eventually("the rollout is on its way", func() string {
		if n := len(h.applied()); n < 10 {
			return fmt.Sprint(n)
		}
		return ""
	})
	stop()
	sent := len(h.applied())
	h.slow(0)
	if sent == 180 {
		t.Fatal("the rollout had ended already")
	}

	h.run()
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	for object, times := range h.applied() {
		if times > 1 {
			t.Errorf("%s was sent %d times", object, times)
		}
	}
}

// A controller that loses its Lease in the middle of a rollout ends, and says why; the
// next one goes on. Whoever waits does nothing meanwhile.
func TestLeaderLost(t *testing.T) {
	h := newHub(t)
	elected := func(o *controller.Options) {
		o.LeaderElection.Enable = true
		o.LeaderElection.LeaseDuration, o.LeaderElection.RenewDeadline, o.LeaderElection.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	}
	ended := h.start(elected)
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")
	h.slow(2 * time.Second)
	h.many(60, "1")
	h.eventually("the rollout is on its way", func() string {
		if n := len(h.applied()); n < 10 {
			return fmt.Sprint(n)
		}
		return ""
	})

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fairlead-controller-leader-election"}}
	edit(h, lease, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = ptr("somebody-else")
		l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	})
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "leader election lost") || !strings.Contains(err.Error(), "nothing more is sent to any cluster") {
			t.Fatalf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on without the Lease")
	}
	sent := len(h.applied())
	h.slow(0)

	h.storage = t.TempDir() // the next one is on another node
	h.run(elected)
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	if sent == 180 {
		t.Error("the rollout had ended already")
	}
}

// Two Fleets on the same clusters never touch each other's objects: what the other one has
// is foreign, and said to be so.
func TestTwoFleets(t *testing.T) {
	h := newHub(t)
	h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")

	other := sourcetest.New(t)
	files := quickstart(t)
	files["fairlead.yaml"] = strings.ReplaceAll(files["fairlead.yaml"], "quickstart", "rival") + "# rival\n"
	files["apps/web/kustomization.yaml"] = strings.ReplaceAll(files["apps/web/kustomization.yaml"], `"1.0"`, `"9.9"`)
	other.Commit("begin", files)
	server := serveGit(t, other)
	h.create(h.fleet("rival", func(f *v1alpha1.Fleet) { f.Spec.Git.URL = server.url() }))
	h.waitFor("rival", "Ready=False ClustersNotReady: 3 of 3 clusters not ready: ")
	if got := h.status("rival"); !strings.Contains(got, "fleet") {
		t.Errorf("whose the objects are is not told:\n%s", got)
	}
	if got := h.image("eu-1"); got != "1.0" {
		t.Errorf("the rival has put %s on eu-1", got)
	}

	h.must(h.client.Delete(context.Background(), h.get("rival")))
	h.release("2.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
}

// The namespace of a Fleet is deleted, by Kubernetes' own controllers: its Secrets go first
// or last, the Fleet drains, and nothing on any member is deleted.
func TestNamespaceDeleted(t *testing.T) {
	h := newHub(t)
	h.server.WithControllers(t)
	h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	h.must(h.client.Delete(context.Background(), team))
	h.eventually("the namespace is gone", func() string {
		if err := h.client.Get(context.Background(), client.ObjectKeyFromObject(team), team); !errors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err, team.Status.Conditions)
		}
		return ""
	})
	h.deletedNothing()
}

// The CRD is upgraded while Fleets are followed: nothing is sent again, and what comes
// afterwards is done as before.
func TestKindUpgraded(t *testing.T) {
	h := newHub(t)
	h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")
	for _, m := range h.members {
		m.ResetRequests()
	}

	var crd apiextensionsv1.CustomResourceDefinition
	crd.Name = "fleets.fairlead.dev"
	edit(h, &crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
		next := crd.Spec.Versions[0].DeepCopy()
		next.Name, next.Storage = "v1", false
		spec := next.Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}}
		crd.Spec.Versions = append(crd.Spec.Versions, *next)
	})
	h.eventually("the next version is served", func() string {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("fairlead.dev/v1")
		u.SetKind("Fleet")
		if err := h.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "acme"}, u); err != nil {
			return err.Error()
		}
		return ""
	})

	h.release("2.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	for name, m := range h.members {
		for _, r := range m.Requests() {
			if r.Method != "GET" && !strings.HasSuffix(r.Path, "/deployments/web") {
				t.Errorf("%s got %s %s", name, r.Method, r.Path)
			}
		}
	}
}

// deletedNothing fails if a member was asked to delete something.
func (h *hub) deletedNothing() {
	h.t.Helper()
	for name, m := range h.members {
		for _, r := range m.Requests() {
			if r.Method == "DELETE" {
				h.t.Errorf("%s got %s %s", name, r.Method, r.Path)
			}
		}
	}
}

// A Fleet and its Secrets are deleted, in the order that hurts most.
func TestFleetAndSecretsDeleted(t *testing.T) {
	h := newHub(t)
	h.run()
	f := h.fleet("acme")
	h.create(f)
	h.waitFor("acme", "Ready=True")
	h.must(h.client.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(namespace)))
	h.must(h.client.Delete(context.Background(), f))
	h.eventually("the Fleet is gone", func() string {
		if err := h.client.Get(context.Background(), client.ObjectKeyFromObject(f), f); !errors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	h.deletedNothing()
}

// T56: whoever writes the repository names no Secret of another namespace, and so cannot
// have it sent to an address of his choice.
func TestT56SecretOfAnotherNamespace(t *testing.T) {
	h := newHub(t)
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	h.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "theirs"}, StringData: map[string]string{"token": "theirs-1234"}})
	h.commit("a cluster of ours, with a Secret of theirs", map[string]string{"clusters/new.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: new, labels: {env: production}}\n" +
		"spec: {syncMode: Push, apiEndpoint: 'https://192.0.2.1:6443', secretRef: {namespace: other, name: theirs}}\n"})
	h.server.ResetRequests()
	h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "new: spec.secretRef names Secret other/theirs: a cluster's Secret must be in the Fleet's namespace, team (clusters/new.yaml:")
	for _, r := range h.server.Requests() {
		if strings.Contains(r.Path, "/namespaces/other/secrets/") {
			t.Errorf("it was read: %s %s", r.Method, r.Path)
		}
	}
}

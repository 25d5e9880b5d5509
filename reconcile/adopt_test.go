// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// What somebody runs in a cluster is taken over as it is, and left as it is
// when its template goes again (digest §13, case 90; the seed of preserve, user story 1): on a member
// inside the process, and on a real one whose controllers are at work.
func TestAdoptAndRollBack(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		s, err := embedded.Start(embedded.Options{Name: "eu-1"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		adoptAndRollBack(t, s.Config(), false)
	})
	t.Run("real", func(t *testing.T) {
		s := kubetest.Start(t, 1)[0]
		s.WithControllers(t)
		adoptAndRollBack(t, s.Config(), true)
	})
}

// somebodys are objects of kinds of which servers and controllers fill
// something in.
const somebodys = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", team: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, selector: {app: web}, ports: [{name: a, port: 80, nodePort: 30080}, {name: b, port: 81}]}
---
apiVersion: v1
kind: Service
metadata: {name: balanced, namespace: shop}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: shop}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: shop}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: "example.com/once:1"}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: shop}
spec:
  schedule: 0 3 * * *
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: "example.com/once:1"}]}}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: headless
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.com/db:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /disk}, storageClassName: none}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: elsewhere, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
secrets: [{name: mine}]
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: shop}
spec: {serviceAccountName: web, containers: [{name: alone, image: "example.com/web:1"}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "shop:reader"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`

func adoptAndRollBack(t *testing.T, config *rest.Config, controllers bool) {
	w := newWorld(t, map[string]*testMember{"eu-1": {name: "eu-1", config: config}})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	replicaSets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	resource := func(u *unstructured.Unstructured) dynamic.ResourceInterface {
		plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		return client.Resource(plural).Namespace(u.GetNamespace())
	}
	var objects []*unstructured.Unstructured
	for _, text := range strings.Split(`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`+"\n---\n"+somebodys, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		manager := "kubectl-create"
		if u.GetAnnotations() != nil {
			manager = "kubectl-client-side-apply"
		}
		if _, err := resource(u).Create(context.Background(), u, metav1.CreateOptions{FieldManager: manager}); err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		if u.GetKind() != "Namespace" {
			objects = append(objects, u)
		}
	}
	list := func(resource schema.GroupVersionResource) []unstructured.Unstructured {
		t.Helper()
		found, err := client.Resource(resource).Namespace("shop").List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found.Items
	}
	get := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		live, err := resource(u).Get(context.Background(), u.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	if controllers {
		worked := func() bool {
			claim, _, _ := unstructured.NestedString(get(objects[8]).Object, "spec", "volumeName")
			return get(objects[0]).GetAnnotations()["deployment.kubernetes.io/revision"] == "1" && claim == "disk"
		}
		for deadline := time.Now().Add(time.Minute); !worked(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the controllers do nothing: %s", asJSON(t, get(objects[8])))
			}
		}
	}

	base := map[string]string{
		"clusters.yaml": "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu-1}, spec: {syncMode: Push}}\n",
		"base.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: base, namespace: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: base, namespace: shop}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}
`,
	}
	w.repo.Commit("before", base)
	w.settle()

	files := maps.Clone(base)
	reader, err := push.NewReader(config)
	if err != nil {
		t.Fatal(err)
	}
	before := map[int]*unstructured.Unstructured{}
	for i, u := range objects {
		live, err := reader.Read(context.Background(), member.Ref{GroupVersionKind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()})
		if err != nil || live == nil {
			t.Fatalf("%s %s: %v, %v", u.GetKind(), u.GetName(), live, err)
		}
		before[i] = &unstructured.Unstructured{Object: live}
		template, err := json.Marshal(object.TemplateOf(live))
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("adopted/%d.json", i)] = string(template)
		kind := "PropagationPolicy"
		if u.GetNamespace() == "" {
			kind = "ClusterPropagationPolicy"
		}
		files[fmt.Sprintf("adopted/%d-policy.yaml", i)] = fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: %s
metadata: {name: adopted-%d, namespace: "%s"}
spec:
  resourceSelectors: [{apiVersion: %s, kind: %s, name: "%s"}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
  conflictResolution: Overwrite
  preserveResourcesOnDeletion: true
`, kind, i, u.GetNamespace(), u.GetAPIVersion(), u.GetKind(), u.GetName())
	}
	w.repo.Commit("adopt", files)
	w.settle()

	same := func(when string, ours bool) {
		t.Helper()
		if sets := list(replicaSets); controllers && (len(sets) != 1 || sets[0].GetGeneration() != 1) {
			t.Errorf("%s: Deployment web has the ReplicaSets %s", when, asJSON(t, sets))
		}
		for i, u := range objects {
			is := get(u)
			name := when + ": " + u.GetKind() + " " + u.GetName()
			if is.GetUID() != before[i].GetUID() {
				t.Errorf("%s is another object", name)
			}
			// Of a Deployment a real server counts changes of annotations too.
			if is.GetGeneration() != before[i].GetGeneration() && !(controllers && is.GetKind() == "Deployment") {
				t.Errorf("%s is of generation %d, was %d", name, is.GetGeneration(), before[i].GetGeneration())
			}
			if got := is.GetLabels()[object.LabelManaged] == "true"; got != ours {
				t.Errorf("%s is ours: %v, want %v", name, got, ours)
			}
			if !ours && strings.Contains(asJSON(t, is.Object), "fairlead") {
				t.Errorf("%s bears a mark of ours: %s", name, asJSON(t, is.Object))
			}
			for _, key := range []string{"deployment.kubernetes.io/revision", "team", "pv.kubernetes.io/bind-completed"} {
				if got, want := is.GetAnnotations()[key], before[i].GetAnnotations()[key]; got != want {
					t.Errorf("%s has %s %q, had %q", name, key, got, want)
				}
			}
			if got, want := is.GetFinalizers(), before[i].GetFinalizers(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s has the finalizers %v, had %v", name, got, want)
			}
			for _, field := range []string{"spec", "rules", "secrets"} {
				if got, want := is.Object[field], before[i].Object[field]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s has other %s: %s, had %s", name, field, asJSON(t, got), asJSON(t, want))
				}
			}
		}
	}
	same("adopted", true)
	w.settle()
	same("again", true)

	for name := range files {
		if strings.HasPrefix(name, "adopted/") {
			delete(files, name)
		}
	}
	w.repo.Git("rm", "-q", "-r", "adopted")
	w.repo.Commit("roll back", nil)
	w.settle()
	same("rolled back", false)
}

// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/object"
)

// Live objects and the manifests that an author would have written.
func TestTemplateOf(t *testing.T) {
	for name, c := range map[string]struct{ live, want string }{
		"metadata and status": {
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, uid: u, resourceVersion: "1", generation: 2, creationTimestamp: "2026-01-01T00:00:00Z",
				selfLink: /x, generateName: a-, finalizers: [x], deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 1,
				ownerReferences: [{apiVersion: v1, kind: Secret, name: s, uid: "1"}], managedFields: [{manager: x, operation: Update}],
				labels: {fairlead.dev/managed: "true"},
				annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", fairlead.dev/digest: x, resourcebinding.karmada.io/name: x, karmada.io/managed: "true",
					resourcetemplate.karmada.io/deletion-protected: Always, example.com/notkarmada.io: x, notkarmada.io/a: x, deployment.kubernetes.io/revision: "1"}}, data: {v: "1"}, status: {x: y}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b,
				annotations: {resourcetemplate.karmada.io/deletion-protected: Always, example.com/notkarmada.io: x, notkarmada.io/a: x, deployment.kubernetes.io/revision: "1"}}, data: {v: "1"}}`,
		},
		"a Deployment keeps its pods as they are": {
			live: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}, annotations: {deployment.kubernetes.io/revision: "1"}},
				spec: {template: {metadata: {creationTimestamp: null, annotations: {kubectl.kubernetes.io/restartedAt: now}}, spec: {volumes: [{name: a, emptyDir: {}}]}}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}},
				spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}, spec: {volumes: [{name: a, emptyDir: {}}]}}}}`,
		},
		"a Service": {
			live: `{apiVersion: v1, kind: Service, metadata: {name: a, managedFields: [
					{manager: kubectl-create, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}},
					{manager: kube-controller-manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:healthCheckNodePort": {}, "f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}}]},
				spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 30001, ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, protocol: TCP, nodePort: 30081}]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, protocol: TCP}]}}`,
		},
		"a headless Service": {
			live: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"another group's Service": {
			live: `{apiVersion: serving.example.com/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
			want: `{apiVersion: serving.example.com/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
		},
		"a Job": {
			live: `{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {job-name: a, team: x}, annotations: {batch.kubernetes.io/job-tracking: ""}},
				spec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u, batch.kubernetes.io/job-name: a}}, spec: {}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {team: x}}, spec: {template: {spec: {}}}}`,
		},
		"a Job with a selector of its own": {
			live: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {job-name: u}}, template: {metadata: {labels: {job-name: u}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {job-name: u}}, template: {metadata: {labels: {job-name: u}}}}}`,
		},
		"a claim that was bound": {
			live: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/selected-node: n}}, spec: {volumeName: v}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {}}`,
		},
		"a claim of a volume that somebody named": {
			live: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, managedFields: [{manager: terraform, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:volumeName": {}}}}]}, spec: {volumeName: v}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v}}`,
		},
		"a volume": {
			live: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a, annotations: {pv.kubernetes.io/bound-by-controller: "yes"}}, spec: {claimRef: {name: b, uid: u}, capacity: {storage: 1Gi}}}`,
			want: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {capacity: {storage: 1Gi}}}`,
		},
		"a StatefulSet": {
			live: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: data, creationTimestamp: null}, status: {phase: Pending}, spec: {}}]}}`,
			want: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]}}`,
		},
		"a ServiceAccount": {
			live: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-x7z}, {name: a-other}], imagePullSecrets: [{name: a-dockercfg-1}]}`,
			want: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-other}]}`,
		},
		"a Pod": {
			live: `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n, volumes: [{name: kube-api-access-x, projected: {}}, {name: d, emptyDir: {}}],
				containers: [{name: a, volumeMounts: [{name: kube-api-access-x, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]}]}}`,
			want: `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: d, emptyDir: {}}], containers: [{name: a}]}}`,
		},
		"a Namespace": {
			live: `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`,
			want: `{apiVersion: v1, kind: Namespace, metadata: {name: a}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live, before, want := read(t, c.live), read(t, c.live), read(t, c.want)
			if got := object.TemplateOf(live); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
			if !reflect.DeepEqual(live, before) {
				t.Errorf("the live object was edited: %v", live)
			}
		})
	}
}

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", " ")))
	if err != nil {
		t.Fatal(err)
	}

	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}

	return u.Object
}

// An autoscaler is recognised by the subresource that it updates. Scaling by
// hand does not count.
func TestScalerOf(t *testing.T) {
	for managers, want := range map[string]string{
		`{manager: kube-controller-manager, operation: Update, subresource: scale, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}`: "kube-controller-manager",
		`{manager: kubectl, operation: Update, subresource: scale, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}`:                 "",
		`{manager: kube-controller-manager, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {}}}`:              "",
	} {
		o := read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, managedFields: [`+managers+`]}, spec: {replicas: 7}}`)
		if got := object.ScalerOf(o); got != want {
			t.Errorf("%s: scaled by %q, want %q", managers, got, want)
		}
		(&unstructured.Unstructured{Object: o}).SetLabels(map[string]string{"resourcetemplate.karmada.io/retain-replicas": "true"})
		if got := object.ScalerOf(o); got != "" {
			t.Errorf("replicas are left alone, and it is scaled by %q", got)
		}
	}
}

// The controller of an object, and the other tools that manage it.
func TestOthersOf(t *testing.T) {
	o := read(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {argocd.argoproj.io/instance: x, karmada.io/managed: "true"},
		ownerReferences: [{kind: Node, name: n, apiVersion: v1, uid: "1"}, {kind: ReplicaSet, name: web-1, apiVersion: apps/v1, uid: "2", controller: true}]}}`)
	if got := object.ControllerOf(o); got != "ReplicaSet web-1" {
		t.Errorf("it belongs to %q", got)
	}
	if got := strings.Join(object.Keepers(o), ", "); got != "Karmada (karmada.io/managed), Argo CD (argocd.argoproj.io/instance)" {
		t.Errorf("kept by %s", got)
	}

	o = read(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{kind: Node, name: n, apiVersion: v1, uid: "1"}]}}`)
	if owner, keepers := object.ControllerOf(o), object.Keepers(o); owner != "" || keepers != nil {
		t.Errorf("it stands for itself, and belongs to %q, kept by %v", owner, keepers)
	}
}

// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
)

// Manifests as people write them: with what a server defaults, writes in other
// words, leaves out or keeps elsewhere.
const everyday = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: everyday, namespace: NS, labels: {app: web}}
spec:
  replicas: 2
  paused: false
  selector: {matchLabels: {app: web}}
  strategy: {}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      securityContext: {}
      containers:
      - name: web
        image: example.com/web:1
        resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {cpu: "2"}}
        ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
        env: [{name: A, value: ""}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        readinessProbe: {httpGet: {path: /, port: 80}}
        volumeMounts: [{name: tmp, mountPath: /tmp}, {name: settings, mountPath: /etc/settings}]
      volumes: [{name: tmp, emptyDir: {}}, {name: settings, configMap: {name: settings}}]
      tolerations: [{key: spot, operator: Exists}]
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: everyday, namespace: NS}
spec:
  serviceName: everyday
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: example.com/db:1}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
---
apiVersion: v1
kind: Service
metadata: {name: everyday, namespace: NS}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http, name: http}, {port: 443, name: https}]}
---
apiVersion: v1
kind: Secret
metadata: {name: everyday, namespace: NS}
stringData: {password: hunter2}
data: {key: a2V5}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: everyday, namespace: NS}
spec:
  schedule: "0 3 * * *"
  suspend: false
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: job, image: example.com/job:1}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: everyday, namespace: NS}
spec:
  rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: everyday, port: {number: 80}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: everyday, namespace: NS}
spec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 80}]}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: everyday, namespace: NS}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: everyday}
  minReplicas: 1
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: everyday, namespace: NS}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: everyday, namespace: NS}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 0.5Gi}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: everyday, namespace: NS}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: everyday, namespace: NS}
data: {empty: "", text: "a\nb\n"}
`

// compared reads back what was applied, and finds no drift in what the server
// made of it; a hand edit is the one difference.
func compared(w *world) {
	w.namespace()
	var works []Work
	for text := range strings.SplitSeq(everyday, "---\n") {
		works = append(works, apply(w.object(text)))
	}
	w.must(works...)
	drift := func(o map[string]any) (lines []string) {
		u := &unstructured.Unstructured{Object: o}
		live, err := w.reader.Read(context.Background(), member.Ref{GroupVersionKind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, d := range push.Drift(live, o) {
			lines = append(lines, fmt.Sprintf("%s %s: %v => %v", u.GetKind(), d.Path, d.Before, d.After))
		}
		return lines
	}
	for _, work := range works {
		w.same("drift", drift(work.Object), []string(nil))
	}
	web := works[0].Object
	w.edit("kubectl-edit", web, func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "example.com/web:9"
		if err := unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			w.t.Fatal(err)
		}
	})
	w.same("a hand edit", drift(web), []string{"Deployment spec.template.spec.containers[name=web].image: example.com/web:9 => example.com/web:1"})
}

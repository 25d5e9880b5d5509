// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/object"
)

// R03: what a template of another project's kind asks of clusters, and what goes
// along with it.
func TestKindsOfOtherProjects(t *testing.T) {
	pod := func(config, cpu string) string {
		return fmt.Sprintf(`{spec: {nodeSelector: {disk: %s}, containers: [{name: c, image: i, envFrom: [{configMapRef: {name: %s}}], resources: {requests: {cpu: %q}}}]}}`, config, config, cpu)
	}
	a, b := pod("a", "1"), pod("b", "2")
	for _, c := range []struct{ kind, spec, demand, along string }{
		{"apps.kruise.io/v1alpha1 CloneSet", `{replicas: 4, template: ` + a + `}`, "4 of cpu 1 on a", "ConfigMap a"},
		{"apps.kruise.io/v1beta1 StatefulSet", `{template: ` + a + `}`, "1 of cpu 1 on a", "ConfigMap a"},
		{"apps.kruise.io/v1alpha1 DaemonSet", `{template: ` + a + `}`, "none", "ConfigMap a"},
		{"apps.kruise.io/v1alpha1 UnitedDeployment", `{replicas: 2, template: {statefulSetTemplate: {spec: {template: ` + a + `}}}}`, "2 of cpu 1 on a", "ConfigMap a"},
		{"apps.kruise.io/v1alpha1 UnitedDeployment", `{replicas: 2, template: ` + a + `}`, "2 of cpu 1 on a", "ConfigMap a"},
		{"apps.kruise.io/v1alpha1 BroadcastJob", `{parallelism: 3, template: ` + a + `}`, "3 of cpu 1 on a", "ConfigMap a"},
		{"apps.kruise.io/v1alpha1 AdvancedCronJob", `{template: {jobTemplate: {spec: {template: ` + a + `}}}}`, "none", "ConfigMap a"},
		{"argoproj.io/v1alpha1 Workflow", `{parallelism: 2, nodeSelector: {disk: a}, serviceAccountName: default, executor: {serviceAccountName: x}, imagePullSecrets: [{name: s}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], templates: [{name: t}]}`,
			"2 on a", "PersistentVolumeClaim c, Secret s, ServiceAccount x"},
		{"batch.volcano.sh/v1alpha1 Job", `{tasks: [{template: ` + a + `}, {template: ` + b + `}]}`, "none", "ConfigMap a, ConfigMap b"},
		{"flink.apache.org/v1beta1 FlinkDeployment", `{podTemplate: ` + a + `, jobManager: {resource: {cpu: 0.5, memory: 2048m}}, taskManager: {replicas: 2, resource: {cpu: 1, memory: 1g}}}`,
			"3 of cpu 1 memory 2Gi on a", "ConfigMap a"},
		{"sparkoperator.k8s.io/v1beta2 SparkApplication", `{driver: {cores: 1}}`, "none", ""},
		{"kubeflow.org/v1 PyTorchJob", `{pytorchReplicaSpecs: {Master: {template: ` + a + `}, Worker: {template: ` + b + `}}}`, "none", "ConfigMap a, ConfigMap b"},
		{"kubeflow.org/v1 TFJob", `{tfReplicaSpecs: {PS: {template: ` + a + `}}}`, "none", "ConfigMap a"},
		{"kubeflow.org/v2beta1 MPIJob", `{mpiReplicaSpecs: {Launcher: {template: ` + a + `}}}`, "none", "ConfigMap a"},
		{"kubeflow.org/v1 Notebook", `{template: ` + a + `}`, "1 of cpu 1 on a", "ConfigMap a"},
		{"ray.io/v1 RayCluster", `{headGroupSpec: {template: ` + a + `}}`, "none", "ConfigMap a"},
		{"ray.io/v1 RayJob", `{rayClusterSpec: {headGroupSpec: {template: ` + a + `}}, submitterPodTemplate: ` + b + `}`, "none", "ConfigMap a, ConfigMap b"},
		{"ray.io/v1 RayService", `{rayClusterConfig: {headGroupSpec: {template: ` + a + `}, workerGroupSpecs: [{replicas: 2, template: ` + b + `}]}}`, "3 of cpu 2 on a", "ConfigMap a, ConfigMap b"},
		{"source.toolkit.fluxcd.io/v1 GitRepository", `{secretRef: {name: s}}`, "none", "Secret s"},
		{"helm.toolkit.fluxcd.io/v2beta1 HelmRelease", `{valuesFrom: [{kind: ConfigMap, name: v}], serviceAccountName: a}`, "none", "ConfigMap v, ServiceAccount a"},

		{"apps.kruise.io/v1beta1 CloneSet", `{replicas: 4, template: ` + a + `}`, "none", ""}, // a version that nothing is known of
		{"apps.kruise.io/v1alpha1 CloneSet", `{replicas: 4, template: {spec: {containers: none}}}`, "4", ""},
		{"apps.kruise.io/v1alpha1 CloneSet", `text`, "1", ""},
	} {
		apiVersion, kind, _ := strings.Cut(c.kind, " ")
		raw, err := yaml.YAMLToJSON(fmt.Appendf(nil, "{apiVersion: %s, kind: %s, metadata: {name: x, namespace: shop}, spec: %s}", apiVersion, kind, c.spec))
		if err != nil {
			t.Fatal(err)
		}
		var o map[string]any
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}

		template, problems := NewTemplate(o, object.DefaultScope, Origin{}, "")
		if len(problems) > 0 {
			t.Fatalf("%s: %v", c.kind, problems)
		}
		if got := demanded(template.Demand); got != c.demand {
			t.Errorf("%s %s asks for %s, want %s", c.kind, c.spec, got, c.demand)
		}

		var along []string
		for _, id := range Dependencies(template) {
			along = append(along, id.Kind+" "+id.Name)
			if id.Namespace != "shop" || !HasDependencies(template.GroupKind()) {
				t.Errorf("%s requires %s", c.kind, id)
			}
		}
		if got := strings.Join(along, ", "); got != c.along {
			t.Errorf("%s: %s goes along, want %s", c.kind, got, c.along)
		}
	}
}

func demanded(d Demand) string {
	replicas, workload := d.Wanted()
	if !workload {
		return "none"
	}

	text := fmt.Sprint(replicas)
	r := d.Requirements
	if r == nil {
		return text
	}
	if len(r.ResourceRequest) > 0 {
		text += " of"
		if q, ok := r.ResourceRequest["cpu"]; ok {
			text += " cpu " + q.String()
		}
		if q, ok := r.ResourceRequest["memory"]; ok {
			text += " memory " + q.String()
		}
	}
	if r.NodeClaim != nil {
		text += " on " + r.NodeClaim.NodeSelector["disk"]
	}
	if r.Namespace != "shop" || len(r.ResourceRequest) > 0 && d.Needs == nil {
		text += " of an incomplete demand"
	}
	return text
}

// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/source/sourcetest"
)

// acme is a fleet as people have one: a rollout that waits for its second wave, a policy
// that is lazy, a commit that was refused, and a namespace that nobody should name so.
func acme(t testing.TB) *sourcetest.Repo {
	t.Helper()
	g := sourcetest.New(t)
	files := map[string]string{"fairlead.yaml": `apiVersion: fairlead.dev/v1alpha1
kind: FleetConfig
metadata: {name: acme}
spec:
  waves:
  - {name: canary, clusters: [dev-1]}
  - {name: wave 1, clusters: [eu-1, eu-2]}
  - {name: wave 2, clusters: [us-1, us-2]}
  - {name: wave 3, clusters: [ap-1]}
`}
	for _, name := range []string{"dev-1", "eu-1", "eu-2", "us-1", "us-2", "ap-1"} {
		files["clusters/"+name+".yaml"] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s, labels: {region: %s}}\nspec: {syncMode: Push, region: %[2]s}\n", name, strings.Split(name, "-")[0])
	}
	maps.Copy(files, map[string]string{
		"shop/web.yaml":           deployment("shop", "web", 12, "1.17.4", "512Mi"),
		"shop/web-config.yaml":    config("shop", "web-config", "rollout: slow"),
		"shop/cart.yaml":          deployment("shop", "cart", 2, "3.2.0", "256Mi"),
		"search/indexer.yaml":     deployment("search", "indexer", 8, "0.9.1", "1Gi"),
		"search/synonyms.yaml":    config("search", "synonyms", "car: auto"),
		"pay/api.yaml":            deployment("pay", "api", 3, "5.0.2", "512Mi"),
		"pay/settings.yaml":       config("pay", "settings", "currency: EUR"),
		"batch/report.yaml":       deployment("batch", "report", 1, "2.0.0", "256Mi"),
		"infra/agent.yaml":        config("infra", "agent", "level: info"),
		"infra/certificates.yaml": config("infra", "certificates", "days: 90"),
		"policies/web.yaml":       webPolicy("", ""),
		"policies/shop.yaml":      policy("shop", "rest", "cart", "[eu-1, us-1]", ""),
		"policies/search.yaml":    policy("search", "indexer", "indexer", "[eu-1, us-1]", ""),
		"policies/batch.yaml":     policy("batch", "report", "report", "[eu-1, us-1]", ""),
		"policies/infra.yaml":     clusterPolicy("infra", "infra", "[dev-1, eu-1, eu-2, us-1, us-2]", ""),
		"policies/pay.yaml":       clusterPolicy("default-apps", "pay", "[dev-1, eu-1, us-1]", "activationPreference: Lazy"),
		"overrides/us.yaml": `apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: us-registry, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [us-1, us-2]}
    overriders: {imageOverrider: [{component: Registry, operator: replace, value: us.registry.acme.io}]}
`,
	})
	write := func(author string, days int, message string, files map[string]string) {
		g.Commit(message, files)
		at := now.AddDate(0, 0, -days).Format(time.RFC3339)
		g.Git("commit", "-q", "--amend", "--no-edit", "--author", author+" <"+author+"@acme.io>", "--date", at)
	}
	write("mara", 44, "The fleet: shop, search, pay, batch, infra", files)
	write("jo", 23, "infra: certificates for 30 days", map[string]string{"infra/certificates.yaml": config("infra", "certificates", "days: 30")})
	write("mara", 9, "Hold web on eu-2 and in wave 2, until eu-1 has soaked", map[string]string{"policies/web.yaml": webPolicy("[eu-2, us-1, us-2]", "")})
	write("tim", 8, "web 1.18.0", map[string]string{"shop/web.yaml": deployment("shop", "web", 12, "1.18.0", "512Mi")})
	write("sofia", 6, "web: raise the memory limit to 768Mi", map[string]string{"shop/web.yaml": deployment("shop", "web", 12, "1.18.0", "768Mi")})
	write("jo", 4, "pay also in ap-1", map[string]string{"policies/pay.yaml": clusterPolicy("default-apps", "pay", "[dev-1, eu-1, us-1, ap-1]", "activationPreference: Lazy")})
	write("tim", 3, "search: replicas by weight", map[string]string{"policies/search.yaml": "kind: [\n"})
	write("tim", 3, "search: replicas by weight, in YAML this time", map[string]string{"policies/search.yaml": policy("search", "indexer", "indexer", "[eu-1, us-1]", "    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [eu-1]}, weight: 1}, {targetCluster: {clusterNames: [us-1]}, weight: 3}]}}\n")})
	write("tim", 2, "web 1.18.2, on 15 replicas", map[string]string{"shop/web.yaml": deployment("shop", "web", 15, "1.18.2", "768Mi")})
	return g
}

// proposal is a branch of acme as a pull request has it: a release, a resume, a removal.
func proposal(g *sourcetest.Repo) {
	g.Branch("raise-web")
	g.Commit("Raise web to 1.19.0, promote eu-2", map[string]string{
		"shop/web.yaml":       deployment("shop", "web", 18, "1.19.0", "768Mi"),
		"policies/web.yaml":   webPolicy("[us-1, us-2]", ""),
		"batch/report.yaml":   sourcetest.Delete,
		"pay/api.yaml":        deployment("pay", "api", 3, "5.0.3", "512Mi"),
		"policies/batch.yaml": sourcetest.Delete,
	})
	g.Checkout("main")
}

func deployment(namespace, name string, replicas int, version, memory string) string {
	volumes := ""
	if name == "web" {
		volumes = "\n      volumes: [{name: config, configMap: {name: web-config}}]"
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers:
      - name: %[2]s
        image: registry.acme.io/%[1]s/%[2]s:%[4]s
        resources: {limits: {memory: %[5]s}}%[6]s
`, namespace, name, replicas, version, memory, volumes)
}

func config(namespace, name, line string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {%s}\n", name, namespace, line)
}

func policy(namespace, name, of, clusters, more string) string {
	return fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %s}, {apiVersion: v1, kind: ConfigMap, name: synonyms}]
  placement:
    clusterAffinity: {clusterNames: %s}
%s`, name, namespace, of, clusters, more)
}

func clusterPolicy(name, namespace, clusters, more string) string {
	if more != "" {
		more = "  " + more + "\n"
	}
	return fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: %s}
spec:
%s  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: %s}, {apiVersion: v1, kind: ConfigMap, namespace: %[3]s}]
  placement: {clusterAffinity: {clusterNames: %[4]s}}
`, name, more, namespace, clusters)
}

// webPolicy divides web by weight, and holds it on clusters.
func webPolicy(held, more string) string {
	notes, suspension := "", ""
	if held != "" {
		suspension = "  suspension: {dispatchingOnClusters: {clusterNames: " + held + "}}\n"
		notes = "  annotations:\n    fairlead.dev/holds: |\n"
		for name := range strings.SplitSeq(strings.Trim(held, "[]"), ", ") {
			notes += "      " + name + ": {by: mara, reason: wait until eu-1 has soaked, until: 2026-01-20, ticket: CHG-1188}\n"
		}
	}
	return `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
  namespace: shop
` + notes + `spec:
  propagateDeps: true
` + suspension + more + `  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [eu-1, eu-2, us-1, us-2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [eu-1, us-1]}, weight: 2}
        - {targetCluster: {clusterNames: [eu-2, us-2]}, weight: 1}
`
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// evil would write a line of its own into the log of a pipeline, clear a terminal,
// and turn the rest of a line around.
const evil = "x\\n::set-output name=approved::true\\r\\e[2J\\u202e"

// hostileFields are places in a fleet where somebody can write what is shown later.
// %s stands for evil, in a double-quoted text of YAML.
var hostileFields = map[string]string{
	"name of a template":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"%s\", namespace: default}\n",
	"namespace of a template":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: \"%s\"}\n",
	"kind of a template":        "apiVersion: v1\nkind: \"%s\"\nmetadata: {name: a, namespace: default}\n",
	"apiVersion of a template":  "apiVersion: \"%s\"\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
	"group of a template":       "apiVersion: \"%s/v1\"\nkind: Thing\nmetadata: {name: a, namespace: default}\n",
	"label of a template":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, labels: {\"%s\": \"%s\"}}\n",
	"annotation of a template":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, annotations: {\"%s\": \"%s\"}}\n",
	"claimed by":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, labels: {resourcetemplate.karmada.io/claimed-by: \"%s\"}}\n",
	"hold of a template":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, annotations: {fairlead.dev/hold: \"%s\"}}\n",
	"data of a template":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {\"%s\": \"%s\"}\n",
	"replicas of a template":    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: default}\nspec: {replicas: \"%s\"}\n",
	"name of a cluster":         "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: \"%s\"}\nspec: {syncMode: Push}\n",
	"region of a cluster":       "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m2}\nspec: {syncMode: Pull, region: \"%s\"}\n",
	"taint of a cluster":        "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m2}\nspec: {syncMode: Pull, taints: [{key: \"%s\", value: \"%s\", effect: NoSchedule}]}\n",
	"status of a cluster":       "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m2}\nspec: {syncMode: Pull}\nstatus: {kubernetesVersion: \"%s\", conditions: [{type: Ready, status: \"False\", reason: \"%s\", message: \"%s\"}]}\n",
	"name of a policy":          "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: \"%s\"}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}\n",
	"selector of a policy":      "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: \"%s\"}]}\n",
	"kind of a selector":        "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b}\nspec: {resourceSelectors: [{apiVersion: v1, kind: \"%s\"}]}\n",
	"cluster of a policy":       "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [\"%s\"]}}}\n",
	"held cluster of a policy":  "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], suspension: {dispatchingOnClusters: {clusterNames: [\"%s\"]}}}\n",
	"conflict of a policy":      "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b}\nspec: {conflictResolution: \"%s\", resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}\n",
	"scheduler of a policy":     "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b}\nspec: {schedulerName: \"%s\", resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}\n",
	"note of a hold":            "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all, annotations: {fairlead.dev/holds: '{m1: {by: \"%s\", reason: \"%s\", until: 2020-01-01, ticket: \"%s\"}}'}}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], suspension: {dispatchingOnClusters: {clusterNames: [m1]}}}\n",
	"bad note of a hold":        "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b, annotations: {fairlead.dev/holds: \"%s\"}}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}\n",
	"waves of a policy":         "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: b, annotations: {fairlead.dev/waves: '[[\"%s\"]]'}}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}\n",
	"name of an override":       "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: \"%s\"}\nspec: {overrideRules: [{overriders: {plaintext: [{path: /none/x, operator: replace, value: 1}]}}]}\n",
	"path of an override":       "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: o}\nspec: {overrideRules: [{overriders: {plaintext: [{path: \"/%s/x\", operator: replace, value: \"%s\"}]}}]}\n",
	"operator of an override":   "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: o}\nspec: {overrideRules: [{overriders: {plaintext: [{path: /x, operator: \"%s\", value: 1}]}}]}\n",
	"script of a customization": "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: \"%s\"}\nspec:\n  target: {apiVersion: v1, kind: ConfigMap}\n  customizations:\n    dependencyInterpretation: {luaScript: \"function GetDependencies(o) error('%s') end\"}\n",
	"gate":                      "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nmetadata: {name: \"%s\"}\nspec: {featureGates: {\"%s\": true}}\n",
	"resource of kustomize":     "resources: [\"%s\"]\n",
	"patch of kustomize":        "resources: []\npatches: [{target: {kind: \"%s\"}, patch: \"%s\"}]\n",
	"a document that is none":   "\"%s\": \"%s\"\n",
	"broken YAML":               "a: [\"%s\"\n",
}

// Nothing that somebody writes into a repository comes out as a line of its own, moves
// a cursor or turns a line around, whatever command shows it (A12, decision 48).
func TestNothingInjects(t *testing.T) {
	server, err := embedded.Start(embedded.Options{Name: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "members.yaml")
	if err := push.WriteContexts(kubeconfig, map[string]*rest.Config{"m1": server.Config()}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", kubeconfig)

	for field, document := range hostileFields {
		t.Run(strings.ReplaceAll(field, " ", "-"), func(t *testing.T) {
			repo := sourcetest.New(t)
			repo.Commit("first", map[string]string{
				"clusters.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push}\n",
				"policy.yaml":   "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  propagateDeps: true\n",
				"web.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\n",
			})
			file := map[string]string{"gate": "fairlead.yaml", "resource of kustomize": "app/kustomization.yaml", "patch of kustomize": "app/kustomization.yaml", "note of a hold": "policy.yaml"}[field]
			if file == "" {
				file = "hostile.yaml"
			}
			repo.Commit(strings.NewReplacer(`\n`, "\n\n", `\r`, "\r", `\e`, "\x1b", `\u202e`, "\u202e").Replace(evil), map[string]string{file: strings.ReplaceAll(document, "%s", evil)})
			for _, command := range [][]string{
				{"validate"}, {"plan", "--base", "HEAD~1"}, {"plan", "--base", "HEAD~1", "-o", "markdown"}, {"run", "--once", "--timeout", "2s"},
				{"status"}, {"get", "clusters"}, {"get", "policies"}, {"get", "templates", "-A"}, {"get", "bindings", "-A", "-o", "wide"}, {"get", "works", "-A"}, {"get", "objects", "-A"},
				{"get", "holds"}, {"get", "clusters", "--live"}, {"get", "templates", "-A", "--show-labels"}, {"get", "templates", "-A", "-o", "custom-columns=ALL:.metadata"},
				{"get", "templates", "-A", "-o", "jsonpath={.items[*].metadata}"}, {"status", "-o", "wide"}, {"why", "cm/web", "-c", "m1"},
				{"get", "configmaps", "-A"}, {"why", "cm/web"}, {"history", "cm/web"}, {"events"}, {"diff"}, {"wait", "--for=healthy", "--timeout", "0s"}, {"suspend", "all", "--all", "--reason", "x", "--dry-run"},
			} {
				var out bytes.Buffer
				args := append([]string{command[0], "-C", repo.Dir}, command[1:]...)
				run(context.Background(), args, &out, &out)
				if wrong := injected(out.String()); wrong != "" {
					t.Errorf("%v: %s\n%q", command, wrong, out.String())
				}
				if command[0] == "run" || command[0] == "wait" {
					continue // they have no colours, and take their time
				}

				// With colours the guard behind the writer is passed by.
				out.Reset()
				run(context.Background(), append(args, "--color=always"), &out, &out)
				if wrong := injected(ours.Replace(out.String())); wrong != "" {
					t.Errorf("%v in colours: %s\n%q", command, wrong, out.String())
				}
			}
		})
	}
}

// ours are the colours that we print, and nothing else.
var ours = strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "")

// injected is what of an output is not ours.
func injected(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " >|-"), "::set-output") && !strings.HasPrefix(line, "+") {
			return fmt.Sprintf("a line of its own: %q", line)
		}
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return fmt.Sprintf("it has %U", r)
		}
	}
	return ""
}

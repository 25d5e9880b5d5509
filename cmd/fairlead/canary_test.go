// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// canary is a value of a Secret, as a name could be one too.
const canary = "c4n4ry-5e3d"

const (
	canarySecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: default}\nstringData: {password: " + canary + "}\n"
	canaryLists  = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: default}\nstringData:\n  config: |\n    {\"image\": \"" + canary + " x\"}\n"
)

// hidingPlaces are fleets in which a value of a Secret stands where some error, or some
// look, could quote it.
var hidingPlaces = map[string]map[string]string{
	"all is well":                         {"s.yaml": canarySecret},
	"last-applied-configuration in git":   {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: default\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"password\":\"" + canary + "\"}}'\ndata: {password: " + base64.StdEncoding.EncodeToString([]byte(canary)) + "}\n"},
	"an unknown field":                    {"s.yaml": canarySecret + "extra: " + canary + "\n"},
	"a key that no server takes":          {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: default}\nstringData: {\"no such key/\": " + canary + "}\n"},
	"a number":                            {"s.yaml": canarySecret + "data: {a: [" + canary + "]}\n"},
	"SOPS":                                {"s.yaml": canarySecret + "sops: {mac: " + canary + "}\n"},
	"broken YAML":                         {"s.yaml": canarySecret + "data: {a: [" + canary + "}\n"},
	"a tag that does not fit":             {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: !!int " + canary + "\n"},
	"a tag of two lines":                  {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: !!int \"a\\nline 3: " + canary + "\"\n"},
	"a value that is a tag":               {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: !" + canary + " x\n"},
	"a value that is an alias":            {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: *" + canary + "\n"},
	"a value that is a directive":         {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: %" + canary + "\n"},
	"a text that is not indented":         {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: |\n" + canary + "\n"},
	"a key that is an object":             {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  {a: " + canary + "}: x\n"},
	"a Secret as JSON":                    {"s.json": "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"db\"},\"stringData\":{\"password\":\"" + canary + "\" oops}}\n"},
	"metadata that is a text":             {"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: " + canary + "\n"},
	"a List":                              {"s.yaml": "apiVersion: v1\nkind: SecretList\nitems: " + canary + "\n"},
	"a literal without =":                 {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  literals: [" + canary + "]\n"},
	"a literal as a file":                 {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  files: [\"password=" + canary + "\"]\n"},
	"a literal as an env file":            {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  envs: [" + canary + "]\n"},
	"a bad env file":                      {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  envs: [x.env]\n", "a/x.env": "a b=" + canary + "\n"},
	"a literal twice":                     {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  literals: [a=" + canary + ", a=" + canary + "]\n"},
	"a literal that is an object":         {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  literals: [{a: " + canary + "}]\n"},
	"literals that are a text":            {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  literals: " + canary + "\n"},
	"literals in a map":                   {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  literals: {password: " + canary + "}\n"},
	"a misspelt field of a kustomization": {"a/kustomization.yaml": "secretGenerator:\n- name: db\n  literal: [a=" + canary + "]\n"},
	"replacement into a scalar":           {"a/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: c, fieldPath: data.a}\n  targets:\n  - select: {kind: Secret}\n    fieldPaths: [stringData.password.x]\n    options: {create: true}\n", "a/s.yaml": canarySecret, "a/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"},
	"replacement out of bounds":           {"a/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements:\n- source: {kind: Secret, name: db, fieldPath: stringData.password, options: {delimiter: \"-\", index: 9}}\n  targets:\n  - select: {kind: ConfigMap}\n    fieldPaths: [data.a]\n", "a/s.yaml": canarySecret, "a/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"},
	"replacement by an object":            {"a/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements:\n- source: {kind: Secret, name: db, fieldPath: stringData}\n  targets:\n  - select: {kind: ConfigMap}\n    fieldPaths: [data.a]\n    options: {delimiter: \"-\", index: 1}\n", "a/s.yaml": canarySecret, "a/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"},
	"a patch that cannot be parsed":       {"a/kustomization.yaml": "resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: |-\n    - op: replace\n      path: /stringData/password\n    " + canary + "\n", "a/s.yaml": canarySecret},
	"a patch that is none":                {"a/kustomization.yaml": "resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: |-\n    stringData: {password: " + canary + "}\n    metadata: [x]\n", "a/s.yaml": canarySecret},
	"a patch of operations that is none":  {"a/kustomization.yaml": "resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  path: p.yaml\n", "a/p.yaml": "- op: nothing\n  path: /stringData/password\n  value: " + canary + "\n", "a/s.yaml": canarySecret},
	"a patch that does not apply":         {"a/kustomization.yaml": "resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: |-\n    - op: test\n      path: /stringData/password\n      value: " + canary + "x\n", "a/s.yaml": canarySecret},
	"an old patch":                        {"a/kustomization.yaml": "resources: [s.yaml]\npatchesStrategicMerge:\n- |-\n  stringData: {password: " + canary + "}\n", "a/s.yaml": canarySecret},
	"vars of kustomize":                   {"a/kustomization.yaml": "resources: [s.yaml, c.yaml]\nvars:\n- name: X\n  objref: {kind: Secret, name: db, apiVersion: v1}\n  fieldref: {fieldpath: stringData.password}\n", "a/s.yaml": canarySecret, "a/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"},
	"a plugin":                            {"a/kustomization.yaml": "generators: [g.yaml]\n", "a/g.yaml": "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: db}\nliterals: [" + canary + "]\n"},
	"a replacement by a file":             {"a/kustomization.yaml": "resources: [s.yaml]\nreplacements: [{path: r.yaml}]\n", "a/r.yaml": "source: {kind: Secret}\ntargets: " + canary + "\n", "a/s.yaml": canarySecret},
	"predicate of an invalid image":       {"s.yaml": strings.Replace(canarySecret, canary, "\""+canary+" x\"", 1), "o.yaml": canaryOverride("imageOverrider: [{predicate: {path: /stringData/password}, component: Tag, operator: replace, value: v2}]")},
	"a field that is not JSON":            {"s.yaml": canarySecret, "o.yaml": canaryOverride("fieldOverrider: [{fieldPath: /stringData/password, json: [{subPath: /a, operator: add, value: 1}]}]")},
	"a field that is a scalar of YAML":    {"s.yaml": canarySecret, "o.yaml": canaryOverride("fieldOverrider: [{fieldPath: /stringData/password, yaml: [{subPath: /a, operator: add, value: 1}]}]")},
	"a field of JSON without the path":    {"s.yaml": canaryLists, "o.yaml": canaryOverride("fieldOverrider: [{fieldPath: /stringData/config, json: [{subPath: /image/x, operator: replace, value: 1}]}]")},
	"a path into a value":                 {"s.yaml": canarySecret, "o.yaml": canaryOverride("plaintext: [{path: /stringData/password/x, operator: add, value: " + canary + "}]")},
	"an override that gives a value":      {"s.yaml": canarySecret, "o.yaml": canaryOverride("plaintext: [{path: /none/x, operator: replace, value: " + canary + "}]")},
	"GetDependencies fails":               {"s.yaml": canarySecret, "i.yaml": canaryScript("dependencyInterpretation", "function GetDependencies(o) error(o.stringData.password) end")},
	"GetDependencies fails at a literal":  {"s.yaml": canarySecret, "i.yaml": canaryScript("dependencyInterpretation", "function GetDependencies(o) local t = {} ; local x = t[o.stringData.password].a end")},
	"GetDependencies refers":              {"s.yaml": canarySecret, "i.yaml": canaryScript("dependencyInterpretation", "function GetDependencies(o) return {{apiVersion = o.stringData.password, kind = '', namespace = 'default', name = 'x'}} end")},
	"GetDependencies formats":             {"s.yaml": canarySecret, "i.yaml": canaryScript("dependencyInterpretation", "function GetDependencies(o) return string.format('%d', o.stringData.password) end")},
	"GetReplicas fails":                   {"s.yaml": canarySecret, "i.yaml": canaryScript("replicaResource", "function GetReplicas(o) return o.stringData.password end")},
}

func canaryOverride(overriders string) string {
	return "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: o}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n  overrideRules:\n  - overriders: {" + overriders + "}\n"
}

func canaryScript(field, script string) string {
	return "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: secrets}\nspec:\n  target: {apiVersion: v1, kind: Secret}\n  customizations:\n    " + field + ":\n      luaScript: |-\n        " + script + "\n"
}

// A value of a Secret reaches its cluster, and nothing else: no command prints it, no
// library says it, and no file of the state has it (A8, decision 48).
func TestSecretsNeverLeave(t *testing.T) {
	said := libraryWords(t)
	t.Setenv("HOME", t.TempDir())
	for place, files := range hidingPlaces {
		t.Run(strings.ReplaceAll(place, " ", "-"), func(t *testing.T) {
			server, err := embedded.Start(embedded.Options{Name: "m1"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			state := t.TempDir()
			kubeconfig := filepath.Join(t.TempDir(), "members.yaml")
			if err := push.WriteContexts(kubeconfig, map[string]*rest.Config{"m1": server.Config()}); err != nil {
				t.Fatal(err)
			}
			t.Setenv("XDG_STATE_HOME", state)
			t.Setenv("XDG_CACHE_HOME", state)
			t.Setenv("KUBECONFIG", kubeconfig)

			repo := sourcetest.New(t)
			repo.Commit("first", map[string]string{
				"clusters.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push}\n",
				"policy.yaml":   "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]\n  propagateDeps: true\n",
				"web.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\n",
			})
			repo.Commit("hide", files)
			looks(t, repo.Dir)

			// The same under a hold, and in a fleet that freezes what is broken.
			repo.Commit("hold", map[string]string{"policy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]\n  suspension: {dispatching: true}\n",
				"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {onBroken: FreezeUnit}\n"})
			looks(t, repo.Dir)
			wantNoCanary(t, state)
		})
	}
	if got := said(); hasCanary(got) {
		t.Errorf("a library says\n%s", got)
	}
}

// What SOPS has encrypted is decrypted for its cluster, and for nobody else (T53).
func TestDecryptedSecretsNeverLeave(t *testing.T) {
	said := libraryWords(t)
	keys, err := filepath.Abs("../../decrypt/testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	server, err := embedded.Start(embedded.Options{Name: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	state, kubeconfig := t.TempDir(), filepath.Join(t.TempDir(), "members.yaml")
	if err := push.WriteContexts(kubeconfig, map[string]*rest.Config{"m1": server.Config()}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("XDG_CACHE_HOME", state)
	t.Setenv("KUBECONFIG", kubeconfig)

	repo := sourcetest.New(t)
	repo.Commit("first", map[string]string{
		"clusters.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push}\n",
		"policy.yaml":   "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]\n",
	})
	files := map[string]string{}
	for _, name := range []string{"canary.yaml"} {
		b, err := os.ReadFile(filepath.Join(keys, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	repo.Commit("encrypted", files)

	only := t.TempDir()
	if err := os.Symlink(filepath.Join(keys, "fleet.agekey"), filepath.Join(only, "fleet.agekey")); err != nil {
		t.Fatal(err)
	}
	looks(t, repo.Dir, "--decryption", only)
	wantNoCanary(t, state)
	secret, err := push.Live(t.Context(), server.Config(), schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "")
	if err != nil || len(secret) != 1 || !hasCanary(fmt.Sprint(secret)) {
		t.Errorf("the cluster has %d Secrets: %v", len(secret), err)
	}
	if got := said(); hasCanary(got) {
		t.Errorf("a library says\n%s", got)
	}
}

// looks runs every command that shows something. Left out is what shows values by
// contract: live Secrets with -o yaml and json, as kubectl does.
func looks(t *testing.T, repo string, running ...string) {
	t.Helper()
	for _, command := range [][]string{
		{"validate"}, {"plan", "--base", "HEAD~1"}, {"plan", "--base", "HEAD~1", "-o", "markdown"}, {"plan", "--base", "HEAD~1", "-o", "json"},
		{"run", "--once", "--timeout", "2s"}, {"run", "--once", "--timeout", "2s", "--log-encoding", "json"}, {"status"}, {"status", "-o", "json"},
		{"render"}, {"render", "-o", "json"}, {"get", "clusters", "-o", "yaml"}, {"get", "policies", "-o", "yaml"}, {"get", "templates", "-o", "yaml"}, {"get", "bindings", "-o", "yaml"},
		{"get", "works", "-o", "yaml"}, {"get", "objects", "-o", "yaml"}, {"get", "secrets"}, {"get", "configmaps", "-o", "yaml"},
		{"why", "secret/db"}, {"why", "secret/db", "-o", "json"}, {"history", "secret/db"}, {"history", "secret/db", "-o", "json"}, {"events"}, {"events", "--git"}, {"events", "-o", "json"},
		{"diff", "m1"}, {"diff", "m1", "--pending"}, {"wait", "--for=healthy", "--timeout", "0s"},
	} {
		var out bytes.Buffer
		args := append([]string{command[0], "-C", repo}, command[1:]...)
		if command[0] == "run" {
			args = append(args, running...)
		}
		if code := run(context.Background(), args, &out, &out); code == exitUsage {
			t.Errorf("%v: %s", command, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if hasCanary(line) {
				t.Errorf("%v says %s", command, line)
			}
		}
	}
}

// hasCanary looks for the value as it is, and encoded.
func hasCanary(text string) bool {
	for shift := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		if shift > 0 {
			encoded = encoded[4:]
		}
		if strings.Contains(text, encoded[:len(encoded)-4]) {
			return true
		}
	}
	return strings.Contains(text, canary)
}

// wantNoCanary looks into every file of a directory.
func wantNoCanary(t *testing.T, dir string) {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found = append(found, filepath.Base(path))
		if hasCanary(string(b)) {
			t.Errorf("it stands in %s", path)
		}
		return err
	})
	if err != nil || !slices.Contains(found, "checkpoint.db") || !slices.Contains(found, "events.jsonl") {
		t.Errorf("the state has %v: %v", found, err)
	}
}

// libraryWords makes the standard error of libraries a file, and reads it.
func libraryWords(t *testing.T) func() string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = file
	return func() string {
		os.Stderr = before
		b, err := os.ReadFile(file.Name())
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
}

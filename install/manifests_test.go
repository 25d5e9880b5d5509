// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/install"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// The program installs what kustomize makes of config/default, in the order in which it
// can be applied.
func TestManifestsAreThoseOfKustomize(t *testing.T) {
	for name, test := range map[string]struct {
		options install.Options
		overlay string // of a kustomization
	}{
		"as it is": {},
		"elsewhere": {install.Options{Namespace: "fleets"},
			"namespace: fleets\nlabels: [{pairs: {app.kubernetes.io/instance: fleets}, includeTemplates: true}]\n"},
		"of a release": {install.Options{Version: "v1.2.0"},
			"images: [{name: ghcr.io/fairlead/fairlead, newTag: v1.2.0}]\nlabels: [{pairs: {app.kubernetes.io/version: v1.2.0}, includeTemplates: true}]\n"},
		"mirrored": {install.Options{Image: "mirror.example.com/fairlead@sha256:" + strings.Repeat("a", 64)},
			"images: [{name: ghcr.io/fairlead/fairlead, newName: mirror.example.com/fairlead, digest: sha256:" + strings.Repeat("a", 64) + "}]\n"},
		"with events": {install.Options{EventsAddr: "http://notification-controller.flux-system.svc.cluster.local./"},
			"patches: [{target: {kind: StatefulSet}, patch: '[{\"op\": \"add\", \"path\": \"/spec/template/spec/containers/0/args/-\", \"value\": \"--events-addr=http://notification-controller.flux-system.svc.cluster.local./\"}]'}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			built := kubetest.NewKubectl(t, nil).Run(t, "kustomize "+overlay(t, test.overlay))
			objects, err := install.Manifests(test.options)
			if err != nil {
				t.Fatal(err)
			}

			want, got := byName(t, parse(t, built)), byName(t, objects)
			if !maps.Equal(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// Every directory of config can be applied.
func TestKustomizations(t *testing.T) {
	k := kubetest.NewKubectl(t, nil)
	for _, dir := range []string{"crd", "rbac", "manager", "default", "monitoring", "page", "sharding", "samples", "member-rbac/cluster-admin", "member-rbac/least"} {
		if len(parse(t, k.Run(t, "kustomize ../config/"+dir))) == 0 {
			t.Errorf("%s is empty", dir)
		}
	}
}

// overlay writes a kustomization over config/default.
func overlay(t *testing.T, more string) string {
	t.Helper()
	base, err := filepath.Abs("../config")
	if err != nil {
		t.Fatal(err)
	}
	// kustomize takes relative paths alone.
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [config/default]\n"+more), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Roles name every verb and every resource, and only the controller's own namespace has
// something that the controller may write besides Fleets and events.
func TestRolesAreLeast(t *testing.T) {
	objects, err := install.Manifests(install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		for _, rule := range rules {
			for field, values := range rule.(map[string]any) {
				if slices.ContainsFunc(values.([]any), func(v any) bool { return strings.Contains(v.(string), "*") }) {
					t.Errorf("%s: %s are %v", object.GetName(), field, values)
				}
			}
		}
	}
}

// What --export prints is what is applied.
func TestWrite(t *testing.T) {
	objects, err := install.Manifests(install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := install.Write(&out, objects...); err != nil {
		t.Fatal(err)
	}
	if got, want := byName(t, parse(t, out.String())), byName(t, objects); !maps.Equal(got, want) || len(got) < 15 {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func parse(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		name := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if all[name] != "" {
			t.Errorf("%s twice", name)
		}
		all[name] = string(text)
	}
	return all
}

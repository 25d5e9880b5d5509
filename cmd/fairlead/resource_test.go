// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/fairlead/fairlead/propagate"
)

// What users of kubectl type for a kind, and what they must not get by it.
func TestResourceNamesAsKubectlTakesThem(t *testing.T) {
	web := propagate.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	config := propagate.ID{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	reader := propagate.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "reader"}
	policy := propagate.ID{Group: "networking.k8s.io", Kind: "NetworkPolicy", Namespace: "shop", Name: "web"}
	widget := propagate.ID{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	k := kindNames{}
	definition, problems := propagate.NewTemplate(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgeten.example.com"},
		"spec": map[string]any{"group": "example.com", "names": map[string]any{
			"kind": "Widget", "plural": "widgeten", "singular": "widget", "shortNames": []any{"wd"},
		}},
	}, propagate.BuiltinScope, propagate.Origin{}, "")
	if problems != nil {
		t.Fatal(problems)
	}
	k.define(definition)
	for _, tt := range []struct {
		arg, namespace string
		id             propagate.ID
		want           bool
	}{
		{"deploy/web", "", web, true},
		{"deployment/web", "", web, true},
		{"Deployment/web", "", web, true},
		{"deployments/web", "shop", web, true},
		{"deployments.apps/web", "", web, true},
		{"deployment.v1.apps/web", "", web, true},
		{"Deployment.apps/web", "", web, true},
		{"deploy/shop/web", "", web, true},
		{"deploy/shop/web", "shop", web, true},
		{"deploy/web", "pay", web, false},
		{"deploy/pay/web", "", web, false},
		{"deploy/we", "", web, false},
		{"deployments.extensions/web", "", web, false},
		{"dep/web", "", web, false},
		{"cm/web", "", web, false},
		{"cm/web", "", config, true},
		{"configmaps/web", "", config, true},
		{"configmaps.v1/web", "", config, false},
		{"configmaps.v1./web", "", config, true},
		{"configmaps.apps/web", "", config, false},
		{"clusterrole/reader", "", reader, true},
		{"clusterroles.rbac.authorization.k8s.io/reader", "", reader, true},
		{"netpol/web", "", policy, true},
		{"networkpolicies/web", "", policy, true},
		{"wd/web", "", widget, true},
		{"widgeten/web", "", widget, true},
		{"Widget.example.com/web", "", widget, true},
		{"widgets.example.org/web", "", widget, false},
	} {
		r, err := parseResource([]string{tt.arg}, tt.namespace)
		if err != nil {
			t.Errorf("%s: %v", tt.arg, err)
			continue
		}
		if got := r.is(tt.id, k); got != tt.want {
			t.Errorf("%s in %q is %s: %v, want %v", tt.arg, tt.namespace, tt.id, got, tt.want)
		}
		if again, err := parseResource([]string{argument(tt.id)}, ""); err != nil || !again.is(tt.id, k) {
			t.Errorf("%s is not %s: %v", argument(tt.id), tt.id, err)
		}
	}
	for _, wrong := range []string{"web", "deploy/", "/web", "deploy/a/b/c", ""} {
		_, err := parseResource([]string{wrong}, "")
		if usage := (*usageError)(nil); !errors.As(err, &usage) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := parseResource([]string{"deploy/shop/web"}, "pay"); err == nil {
		t.Error("two namespaces are one too many")
	}
	if r, err := parseResource([]string{"deploy", "web"}, ""); err != nil || !r.is(web, k) {
		t.Errorf("two arguments: %v", err)
	}
}

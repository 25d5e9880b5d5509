// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	"github.com/fairlead/fairlead/object"
)

// What users of kubectl type for a kind, and what they must not get by it.
func TestReferencesAsKubectlTakesThem(t *testing.T) {
	web := object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	config := object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	reader := object.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "reader"}
	policy := object.ID{Group: "networking.k8s.io", Kind: "NetworkPolicy", Namespace: "shop", Name: "web"}
	widget := object.ID{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	k := object.KindNames{}
	definition := map[string]any{"spec": map[string]any{
		"group": "example.com",
		"names": map[string]any{
			"kind": "Widget", "plural": "widgeten", "singular": "widget", "shortNames": []any{"wd"},
		},
	}}
	k.Define(object.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgeten.example.com"}, definition)

	for _, tt := range []struct {
		arg, namespace string
		id             object.ID
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
		r, err := object.ParseReference([]string{tt.arg}, tt.namespace)
		if err != nil {
			t.Errorf("%s: %v", tt.arg, err)
			continue
		}
		if got := r.Matches(tt.id, k); got != tt.want {
			t.Errorf("%s in %q is %s: %v, want %v", tt.arg, tt.namespace, tt.id, got, tt.want)
		}
		if again, err := object.ParseReference([]string{object.Argument(tt.id)}, ""); err != nil || !again.Matches(tt.id, k) {
			t.Errorf("%s is not %s: %v", object.Argument(tt.id), tt.id, err)
		}
	}
	for _, wrong := range []string{"web", "deploy/", "/web", "deploy/a/b/c", ""} {
		if r, err := object.ParseReference([]string{wrong}, ""); err == nil {
			t.Errorf("%q is %s", wrong, r)
		}
	}
	if _, err := object.ParseReference([]string{"deploy/shop/web"}, "pay"); err == nil {
		t.Error("two namespaces are one too many")
	}
	if r, err := object.ParseReference([]string{"deploy", "web"}, ""); err != nil || !r.Matches(web, k) {
		t.Errorf("two arguments: %v", err)
	}
}

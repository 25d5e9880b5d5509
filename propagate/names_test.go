// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"testing"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// The names that Karmada gives (digest §3.1, §5.6; §13, case 2). A user who
// knows them finds her bindings and works under them.
func TestNames(t *testing.T) {
	for _, tt := range []struct {
		id            object.ID
		binding, work string
	}{
		{object.ID{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "nginx"}, "nginx-deployment", "nginx-687f7fb96f"},
		{object.ID{Group: "apps", Kind: "Deployment", Namespace: "prod", Name: "nginx"}, "nginx-deployment", "nginx-69f9dc9c9"},
		{object.ID{Kind: "Service", Namespace: "default", Name: "nginx"}, "nginx-service", "nginx-64b7849b5"},
		{object.ID{Kind: "ConfigMap", Namespace: "prod", Name: "app-config"}, "app-config-configmap", "app-config-56df94fb94"},
		{object.ID{Kind: "Namespace", Name: "team-a"}, "team-a-namespace", "team-a-5cc7c7959b"},
		{object.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:test:Foo"}, "system.test.foo-clusterrole", "system.test.foo-85bcbb69dc"},
	} {
		var s propagate.State
		if got := s.BindingName(tt.id); got != tt.binding {
			t.Errorf("the binding of %s is %s, want %s", tt.id, got, tt.binding)
		}
		if got := s.WorkName(tt.id); got != tt.work {
			t.Errorf("the work of %s is %s, want %s", tt.id, got, tt.work)
		}
	}
}

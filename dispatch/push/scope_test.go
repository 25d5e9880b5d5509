// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// The table of kinds agrees with what an API server says that serves every API
// it has, alpha ones included; so no cluster has to be asked for them.
func TestScopesAreThoseOfTheAPIServer(t *testing.T) {
	server := kubetest.Start(t, 1, "runtime-config=api/all=true", "feature-gates=AllAlpha=true,AllBeta=true")[0]
	client, err := discovery.NewDiscoveryClientForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}

	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}

	kinds := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, served := range list.APIResources {
			if strings.Contains(served.Name, "/") {
				continue // a subresource
			}
			kinds++
			namespaced, known := object.BuiltinScope(gv.Group, served.Kind)
			if !known || namespaced != served.Namespaced {
				t.Errorf("%s %s: namespaced %v (known %v), the API server says %v", list.GroupVersion, served.Kind, namespaced, known, served.Namespaced)
			}
		}
	}
	if kinds < 60 {
		t.Errorf("the API server lists %d kinds: it does not serve all of them", kinds)
	}
}

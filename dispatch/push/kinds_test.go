// SPDX-License-Identifier: Apache-2.0

package push

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/fairlead/fairlead/testenv/kubetest"
)

// What is known of the built-in kinds without asking is what a real server
// says of them.
func TestBuiltinKinds(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(server.Config()).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			known, ok := builtin(gv.WithKind(r.Kind))
			if !ok || virtual(r.Verbs) {
				continue
			}
			if want := (endpoint{r.Name, r.Namespaced}); known != want {
				t.Errorf("%s %s: %v is assumed, %v is served", gv, r.Kind, known, want)
			}
			checked++
		}
	}
	if checked < 50 {
		t.Errorf("only %d kinds were compared", checked)
	}
}

// virtual kinds are questions, not objects: they can only be created.
func virtual(verbs []string) bool { return len(verbs) == 1 }

// SPDX-License-Identifier: Apache-2.0

package listing_test

import (
	"testing"

	"github.com/fairlead/fairlead/look/listing"
)

// One letter more, less, other or swapped is a typo; what Kubernetes has is not.
func TestMeant(t *testing.T) {
	for word, want := range map[string]string{
		"bindngs": "bindings", "bidnings": "bindings", "bindinggs": "bindings", "Bindimgs": "bindings",
		"polices": "policies", "plicy": "policies", "clsuter": "clusters", "objets": "objects",
		"bindings": "", "works": "", "pods": "", "nodes": "", "roles": "", "jobs": "", "workers": "", "all": "", "deployments": "", "objects.example.com": "",
	} {
		if got := listing.Meant(word); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

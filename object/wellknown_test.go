// SPDX-License-Identifier: Apache-2.0

package object

import "testing"

// R05, decision 54.
func TestDefaultScope(t *testing.T) {
	for _, test := range []struct {
		group, kind       string
		namespaced, known bool
	}{
		{"apps", "Deployment", true, true},
		{"", "Namespace", false, true},
		{"kustomize.toolkit.fluxcd.io", "Kustomization", true, true},
		{"cert-manager.io", "Certificate", true, true},
		{"cert-manager.io", "ClusterIssuer", false, true},
		{"apiextensions.crossplane.io", "Composition", false, true},
		{"multicluster.x-k8s.io", "ServiceExport", true, true},
		{"example.com", "Thing", false, false},
	} {
		if namespaced, known := DefaultScope(test.group, test.kind); namespaced != test.namespaced || known != test.known {
			t.Errorf("%s %s: got %v, %v", test.group, test.kind, namespaced, known)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package interpret

// argo are kinds of Argo's projects.
var argo = []*Kind{{
	// Its spec has volumes and credentials where a pod has them, for all its pods.
	APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow",
	replicas: &scale{field: "parallelism", otherwise: 1, needs: placedLikePod},
	pods:     []string{""},
	names:    []naming{{"ServiceAccount", "spec.executor.serviceAccountName"}},
	healthy: func(o observed) bool {
		return !o.in([]string{"", "Error", "Failed"}, "status", "phase")
	},
	failed: failedIn([]string{"Error", "Failed"}, "status", "phase"),
}}

// placedLikePod is a pod that is placed as a spec says, and asks for nothing.
func placedLikePod(object map[string]any) []map[string]any {
	spec, pod := mapAt(object, "spec"), map[string]any{}
	for _, field := range []string{"affinity", "nodeSelector", "tolerations"} {
		if spec[field] != nil {
			pod[field] = spec[field]
		}
	}
	return []map[string]any{{"spec": pod}}
}

// SPDX-License-Identifier: Apache-2.0

package object

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Manager is fairlead's field manager for server-side apply.
const Manager = "fairlead"

// IsClientSide reports whether the entry belongs to a client that updates whole
// objects from outside, as opposed to a controller of the cluster.
func IsClientSide(m metav1.ManagedFieldsEntry) bool {
	return m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == "" &&
		m.Manager != Manager && !IsController(m.Manager)
}

// IsController reports whether a field manager is a controller of the cluster.
func IsController(manager string) bool {
	switch manager {
	case "kubelet", "cloud-controller-manager", "cluster-autoscaler", "cert-manager-cainjector", "endpoint-controller", "service-controller":
		return true
	}
	return strings.HasPrefix(manager, "kube-") || strings.HasPrefix(manager, "vpa-")
}

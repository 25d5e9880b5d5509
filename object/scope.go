// SPDX-License-Identifier: Apache-2.0

package object

// Scope reports whether a kind is namespaced, and whether that is known.
type Scope func(group, kind string) (namespaced, known bool)

// BuiltinScope is the Scope of the kinds that Kubernetes serves. A test
// compares it with the discovery of a real API server that serves all of its
// APIs.
func BuiltinScope(group, kind string) (namespaced, known bool) {
	if clusterScoped[group+"/"+kind] {
		return false, true
	}
	return builtinGroups[group], builtinGroups[group]
}

// builtinGroups are the groups whose remaining kinds are all namespaced.
var builtinGroups = map[string]bool{
	"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true, "extensions": true,
	"networking.k8s.io": true, "rbac.authorization.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "authorization.k8s.io": true,
	"certificates.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "resource.k8s.io": true,
}

var clusterScoped = map[string]bool{
	"/Namespace":        true,
	"/Node":             true,
	"/PersistentVolume": true,
	"/ComponentStatus":  true,

	"admissionregistration.k8s.io/MutatingAdmissionPolicy":          true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicyBinding":   true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   true,
	"apiextensions.k8s.io/CustomResourceDefinition":                 true,
	"apiregistration.k8s.io/APIService":                             true,
	"authentication.k8s.io/SelfSubjectReview":                       true,
	"authentication.k8s.io/TokenReview":                             true,
	"authorization.k8s.io/SelfSubjectAccessReview":                  true,
	"authorization.k8s.io/SelfSubjectRulesReview":                   true,
	"authorization.k8s.io/SubjectAccessReview":                      true,
	"certificates.k8s.io/CertificateSigningRequest":                 true,
	"certificates.k8s.io/ClusterTrustBundle":                        true,
	"flowcontrol.apiserver.k8s.io/FlowSchema":                       true,
	"flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration":       true,
	"internal.apiserver.k8s.io/StorageVersion":                      true,
	"networking.k8s.io/IPAddress":                                   true,
	"networking.k8s.io/IngressClass":                                true,
	"networking.k8s.io/ServiceCIDR":                                 true,
	"node.k8s.io/RuntimeClass":                                      true,
	"policy/PodSecurityPolicy":                                      true,
	"rbac.authorization.k8s.io/ClusterRole":                         true,
	"rbac.authorization.k8s.io/ClusterRoleBinding":                  true,
	"resource.k8s.io/DeviceClass":                                   true,
	"resource.k8s.io/DeviceTaintRule":                               true,
	"resource.k8s.io/ResourcePoolStatusRequest":                     true,
	"resource.k8s.io/ResourceSlice":                                 true,
	"scheduling.k8s.io/PriorityClass":                               true,
	"storage.k8s.io/CSIDriver":                                      true,
	"storage.k8s.io/CSINode":                                        true,
	"storage.k8s.io/StorageClass":                                   true,
	"storage.k8s.io/VolumeAttachment":                               true,
	"storage.k8s.io/VolumeAttributesClass":                          true,
	"storagemigration.k8s.io/StorageVersionMigration":               true,
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/interpret"
)

// Health is how an object that was read from a member does, by its kind's
// script or rule (digest §9.3). The error says why it is unknown.
func (s *State) Health(object map[string]any) (Health, error) {
	script := s.index.interpreterOf(object, interpret.InterpretHealth)
	health, err := interpret.HealthOf(script.Engine(), object)
	return health, script.Wrap(err)
}

// Progress is how far a cluster has got with the spec of an object that was read
// from it, and why it got no further. It depends on Health, and where neither a
// script nor a rule of Karmada's covers the kind, on its conditions.
func (s *State) Progress(object map[string]any, health Health) (interpret.Progress, string) {
	script := s.index.interpreterOf(object, interpret.InterpretHealth)
	return interpret.ProgressOf(script.Engine(), object, health)
}

// Reports reports whether copies of a kind have anything to report: a status, or
// what a script makes of them. Of the others the metadata is enough, and a
// Secret's content stays where it is.
func (s *State) Reports(apiVersion, kind string) bool {
	for _, function := range []string{interpret.InterpretHealth, interpret.ReflectStatus} {
		if s.index.scriptFor(apiVersion, kind, function) != nil {
			return true
		}
	}
	return !statusless[schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()]
}

// statusless are kinds of Kubernetes without a status.
var statusless = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Kind: "Endpoints"}:      true,
	{Kind: "PodTemplate"}:    true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                             true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                              true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                       true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                 true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                             true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                    true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                              true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
}

// StatusOf is what is to be known of the status of an object that was read
// from a member, nil when that is nothing (digest §9.1).
func (s *State) StatusOf(object map[string]any) (map[string]any, error) {
	script := s.index.interpreterOf(object, interpret.ReflectStatus)
	status, err := interpret.StatusOf(script.Engine(), object)
	return status, script.Wrap(err)
}

// Aggregate is a template with the status that its copies add up to (digest
// §9.4). A kind without a script or a rule stays as it is.
func (s *State) Aggregate(template map[string]any, items []interpret.Observed) (map[string]any, error) {
	script := s.index.interpreterOf(template, interpret.AggregateStatus)
	object, err := interpret.Aggregate(script.Engine(), template, items)
	return object, script.Wrap(err)
}

// interpreterOf is the script that answers for an object's kind, nil without.
func (ix *index) interpreterOf(object map[string]any, function string) *fleet.Script {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return ix.scriptFor(apiVersion, kind, function)
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/fairlead/fairlead/api/config/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
)

// alternatives are what a fleet uses instead of the Karmada kinds that are not
// part of propagation (digest §10.6). A repository with such documents can
// still be rendered: their effect is missing, but nothing goes to the wrong
// place.
var alternatives = map[schema.GroupKind]string{
	{Group: "policy.karmada.io", Kind: "ClusterTaintPolicy"}:     "set taints in spec.taints of the Cluster documents",
	{Group: "policy.karmada.io", Kind: "FederatedResourceQuota"}: "a ResourceQuota can be propagated like any template, with an OverridePolicy for what differs between clusters",

	{Group: "config.karmada.io", Kind: "KarmadaInitConfig"}: "fairlead has no control plane to install",

	{Group: "networking.karmada.io", Kind: "MultiClusterIngress"}: "an Ingress can be propagated like any template",
	{Group: "networking.karmada.io", Kind: "MultiClusterService"}: "a Service can be propagated like any template; fairlead does not connect the clusters' networks",

	{Group: "autoscaling.karmada.io", Kind: "FederatedHPA"}:     "a HorizontalPodAutoscaler can be propagated like any template, and keeps the replicas that it sets",
	{Group: "autoscaling.karmada.io", Kind: "CronFederatedHPA"}: "change replicas by commit, or use a HorizontalPodAutoscaler in each cluster",

	{Group: "remedy.karmada.io", Kind: "Remedy"}:           "remove the cluster from the placement by commit",
	{Group: "search.karmada.io", Kind: "ResourceRegistry"}: "fairlead does not cache the objects of its members",
	{Group: "operator.karmada.io", Kind: "Karmada"}:        "fairlead has no control plane to install",
}

// classifyKarmada handles the remaining kinds of the groups that decide what
// goes where. An unknown kind in the group of a known one is an error: a policy
// with a misspelt kind would place nothing.
func classifyKarmada(d *document, gv schema.GroupVersion, kind string, known fleet.Kinds) (*item, []fleet.Problem) {
	if gv.Group == workGroup {
		return notPropagated(d, gv.Group, "Karmada computes it, and so does fairlead")
	}
	if why, has := alternatives[schema.GroupKind{Group: gv.Group, Kind: kind}]; has {
		return noEffect(d, gv.Group, why)
	}

	kinds := known.In(gv.Group)
	steers := len(kinds) > 0
	switch {
	case kind == "ResourceInterpreterWebhookConfiguration" && steers:
		return nil, []fleet.Problem{d.problem("kind", "%s calls a server, but a fleet depends on git alone: "+
			"use a %s, or list this file in .fairleadignore", kind, configv1alpha1.KindResourceInterpreterCustomization)}
	case slices.Contains(kinds, kind):
		return nil, []fleet.Problem{d.problem("apiVersion", "%s of %s is unknown; the supported version is %s", kind, gv, known.Version(gv.Group, kind))}
	case steers:
		return nil, []fleet.Problem{d.problem("kind", "%s has no kind %s; supported kinds: %s", gv.Group, kind, strings.Join(kinds, ", "))}
	}

	return noEffect(d, gv.Group, "it does not take part in propagation")
}

const workGroup = "work.karmada.io"

// noEffect returns a caution: the author of the document expects an effect.
func noEffect(d *document, group, why string) (*item, []fleet.Problem) {
	id := idOf(d, group)
	return &item{findings: []*fleet.Finding{{
		Code: fleet.FindingNoEffect, Severity: fleet.SeverityCaution, Object: id, Origin: d.origin,
		Message: fmt.Sprintf("%s has no effect: %s", id, why),
	}}}, nil
}

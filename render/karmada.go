// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/fairlead/fairlead/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	configv1alpha1 "github.com/fairlead/fairlead/api/config/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
)

// instead says of the kinds of Karmada that are no part of propagation
// (digest §10.6) what a fleet has in their place. A repository that has them
// is read all the same: what they would do is lacking, and nothing goes where
// it should not.
var instead = map[schema.GroupKind]string{
	{Group: "policy.karmada.io", Kind: "ClusterTaintPolicy"}:     "taints stand in spec.taints of the Cluster documents",
	{Group: "policy.karmada.io", Kind: "FederatedResourceQuota"}: "a ResourceQuota can be propagated like any template, with an OverridePolicy for what differs between clusters",

	{Group: "config.karmada.io", Kind: "KarmadaInitConfig"}: "there is no control plane to install",

	{Group: "networking.karmada.io", Kind: "MultiClusterIngress"}: "an Ingress can be propagated like any template",
	{Group: "networking.karmada.io", Kind: "MultiClusterService"}: "a Service can be propagated like any template; joining the clusters' networks is not fairlead's",

	{Group: "autoscaling.karmada.io", Kind: "FederatedHPA"}:     "a HorizontalPodAutoscaler can be propagated like any template, and keeps the replicas that it sets",
	{Group: "autoscaling.karmada.io", Kind: "CronFederatedHPA"}: "a commit changes replicas, or a HorizontalPodAutoscaler in each cluster does",

	{Group: "remedy.karmada.io", Kind: "Remedy"}:           "a commit takes a cluster out of the placement",
	{Group: "search.karmada.io", Kind: "ResourceRegistry"}: "there is no cache of what members have",
	{Group: "operator.karmada.io", Kind: "Karmada"}:        "there is no control plane to install",
}

// steering are the groups whose kinds say what goes where. An unknown one
// among them is a mistake that must not pass: a policy with a misspelt kind
// would place nothing.
var steering = map[string][]string{
	"apps.karmada.io":    {appsv1alpha1.KindWorkloadRebalancer},
	"cluster.karmada.io": {clusterv1alpha1.KindCluster},
	"config.karmada.io":  {configv1alpha1.KindResourceInterpreterCustomization},
	"policy.karmada.io": {policyv1alpha1.KindPropagationPolicy, policyv1alpha1.KindClusterPropagationPolicy,
		policyv1alpha1.KindOverridePolicy, policyv1alpha1.KindClusterOverridePolicy},
}

// sortKarmadas takes the other kinds of Karmada's groups.
func sortKarmadas(d *document, gv schema.GroupVersion, kind string) (*item, []propagate.Problem) {
	if gv.Group == workGroup {
		return notPropagated(d, gv.Group, "Karmada computes it, and so do we")
	}
	if why, known := instead[schema.GroupKind{Group: gv.Group, Kind: kind}]; known {
		return withoutEffect(d, gv.Group, why)
	}
	kinds, steers := steering[gv.Group]
	switch {
	case kind == "ResourceInterpreterWebhookConfiguration" && steers:
		return nil, []propagate.Problem{d.problem("kind", "%s asks a server what a kind wants, but a fleet follows from git alone: "+
			"let a %s say it, or name this file in .fairleadignore", kind, configv1alpha1.KindResourceInterpreterCustomization)}
	case slices.Contains(kinds, kind):
		return nil, []propagate.Problem{d.problem("apiVersion", "%s of %s is unknown: its version is v1alpha1", kind, gv)}
	case steers:
		return nil, []propagate.Problem{d.problem("kind", "%s has no kind %s; those that count are %s", gv.Group, kind, strings.Join(kinds, ", "))}
	}
	return withoutEffect(d, gv.Group, "it is no part of propagation")
}

const workGroup = "work.karmada.io"

// withoutEffect is for a document that its author expects something of.
func withoutEffect(d *document, group, why string) (*item, []propagate.Problem) {
	id := idOf(d, group)
	return &item{findings: []*propagate.Finding{{
		Code: propagate.FindingNoEffect, Level: propagate.LevelCaution, Object: id, Origin: d.origin,
		Message: fmt.Sprintf("%s has no effect: %s", id, why),
	}}}, nil
}

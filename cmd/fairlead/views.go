// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

func (v *view) clusters() list {
	works, held, deferred := map[string]int{}, map[string]int{}, map[string]int{}
	for b := range v.state.Bindings.Values() {
		for _, w := range b.Works {
			works[w.Cluster]++
			if w.Held {
				held[w.Cluster]++
			}
		}
		for _, waits := range v.state.Waiting(b) {
			deferred[waits.Cluster]++
		}
	}

	names := []string{"NAME", "VERSION", "MODE", "READY", "WORKS", "HELD", "DEFERRED"}
	if v.live != nil {
		names = append(names, "FAILED", "AT")
	}
	found := list{columns: columns(append(names, "+", "ZONES", "REGION", "PROVIDER", "API-ENDPOINT")...)}
	for c := range v.state.Snapshot.Clusters.Values() {
		if !v.shows("", c.Name, c.Labels) || !v.showsCluster(c.Name) {
			continue
		}
		doc := c.Cluster
		if v.live != nil {
			doc = v.live.Observed(doc)
		}
		row := []any{c.Name, c.Status.KubernetesVersion, string(c.Spec.SyncMode), readiness(doc), works[c.Name], held[c.Name], deferred[c.Name]}
		if v.live != nil {
			row = append(row, v.live.Failed(c.Name), source.Short(v.live.Reached(c.Name)))
		}
		found.items = append(found.items, item{doc, append(row, strings.Join(c.Spec.Zones, ","), c.Spec.Region, c.Spec.Provider, c.Spec.APIEndpoint)})
	}

	return found
}

// readiness is the status of a Cluster's condition Ready, and whether it is cordoned,
// as kubectl says it of a node.
func readiness(c *clusterv1alpha1.Cluster) string {
	ready := string(metav1.ConditionUnknown)
	for _, condition := range c.Status.Conditions {
		if condition.Type == clusterv1alpha1.ConditionReady {
			ready = string(condition.Status)
		}
	}
	for _, taint := range c.Spec.Taints {
		if taint.Key == clusterv1alpha1.TaintUnschedulable {
			return ready + ",SchedulingDisabled"
		}
	}
	return ready
}

func (v *view) policies() list {
	claims := map[string]int{}
	for b := range v.state.Bindings.Values() {
		if b.Claim != nil {
			claims[b.Claim.Key()]++
		}
	}

	found := list{columns: columns("NAMESPACE", "NAME", "CONFLICT-RESOLUTION", "PRIORITY", "CLAIMS", "SUSPENDED", "PRESERVE", "+", "FILE")}
	for p := range v.state.Snapshot.Policies.Values() {
		if !v.shows(p.Ref.Namespace, p.Ref.Name, p.Labels) {
			continue
		}
		priority := int32(0)
		if p.Spec.Priority != nil {
			priority = *p.Spec.Priority
		}
		preserve := p.Spec.PreserveResourcesOnDeletion != nil && *p.Spec.PreserveResourcesOnDeletion
		found.items = append(found.items, item{v.policy(p), []any{
			p.Ref.Namespace, p.Ref.Name, string(p.Spec.ConflictResolution), priority, claims[p.Ref.Key()], suspended(p.Spec.Suspension), preserve, p.Origin.String(),
		}})
	}

	return found
}

// policy is the document of a policy, defaulted.
func (*view) policy(p *fleet.Policy) any {
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: p.Ref.Kind()},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Ref.Namespace, Name: p.Ref.Name, Labels: p.Labels, Annotations: p.Annotations},
		Spec:       p.Spec,
	}
}

// holds lists what is held, and why.
func (v *view) holds() list {
	found := list{columns: columns("HOLDER", "CLUSTER", "BY", "REASON", "UNTIL", "TICKET", "WORKS", "WAITING", "+", "FILE")}
	for _, h := range report.NewHolds(v.state) {
		if !v.shows(h.Namespace, h.Name, nil) || h.Cluster != fleetv1alpha1.AllClusters && !v.showsCluster(h.Cluster) {
			continue
		}
		by, _, _ := strings.Cut(h.Note.By, " <")
		at := fleet.Origin{File: h.File, Line: h.Line}
		found.items = append(found.items, item{&h, []any{h.Holder, h.Cluster, by, h.Note.Reason, h.Note.Until, h.Note.Ticket, h.Works, h.Waiting, at.String()}})
	}
	return found
}

// suspended reads "all", or the names of the suspended clusters.
func suspended(s *policyv1alpha1.Suspension) string {
	switch {
	case s == nil:
		return ""
	case s.Dispatching != nil && *s.Dispatching:
		return "all"
	case s.DispatchingOnClusters == nil:
		return ""
	}

	return strings.Join(s.DispatchingOnClusters.ClusterNames, ",")
}

func (v *view) templates() list {
	found := list{columns: columns("NAMESPACE", "KIND", "NAME", "POLICY", "CLUSTERS", "PENDING", "+", "FILE")}
	for t := range v.state.Snapshot.Templates.Values() {
		if !v.shows(t.Namespace, t.Name, t.Labels) {
			continue
		}
		policy, clusters, pending := "", 0, ""
		if b := v.state.Bindings.At(t.Key()); b != nil {
			clusters = len(b.Works)
			if b.Claim != nil {
				policy = b.Claim.Name
			}
			if b.Pending != nil {
				pending = b.Pending.Reason
			}
		}
		found.items = append(found.items, item{t.Object, []any{t.Namespace, t.Kind, t.Name, policy, clusters, pending, t.Origin.String()}})
	}

	return found
}

func (v *view) bindings() list {
	found := list{columns: columns("NAMESPACE", "NAME", "POLICY", "SCHEDULED", "CLUSTERS", "HELD", "PENDING", "+", "REPLICAS")}
	for b := range v.state.Bindings.Values() {
		rb := v.state.ResourceBinding(b)
		if !v.shows(b.Namespace, rb.Name, b.TemplateLabels(v.state)) || !v.touches(b) {
			continue
		}
		policy, pending := "", ""
		if b.Claim != nil {
			policy = b.Claim.Name
		}
		if b.Pending != nil {
			pending = b.Pending.Reason
		}
		var targets, held []string
		for _, w := range b.Works {
			target := w.Cluster
			if w.Want.Replicas > 0 {
				target = fmt.Sprintf("%s:%d", w.Cluster, w.Want.Replicas)
			}
			targets = append(targets, target)
			if w.Held {
				held = append(held, w.Cluster)
			}
		}
		scheduled := "" // what goes along with others is not scheduled
		switch b.Scheduled.Reason {
		case "":
		case workv1alpha2.ReasonSuccess:
			scheduled = "True"
		default:
			scheduled = "False"
		}
		found.items = append(found.items, item{rb, []any{
			b.Namespace, rb.Name, policy, scheduled, strings.Join(targets, ","), strings.Join(held, ","), pending, rb.Spec.Replicas,
		}})
	}

	return found
}

// touches reports whether a binding has a work on one of the selected clusters.
func (v *view) touches(b *propagate.Binding) bool {
	if len(v.onlyClusters) == 0 {
		return true
	}

	for _, w := range b.Works {
		if v.showsCluster(w.Cluster) {
			return true
		}
	}

	return false
}

func (v *view) works() list {
	found := list{columns: columns("NAMESPACE", "NAME", "WORKLOAD-KIND", "DISPATCHING", "PRESERVE", "+", "BINDING", "REVISION")}
	for b := range v.state.Bindings.Values() {
		for i := range b.Works {
			w := &b.Works[i]
			work := v.state.Work(b, w)
			if !v.showsCluster(w.Cluster) || !v.shows(work.Namespace, work.Name, b.TemplateLabels(v.state)) {
				continue
			}
			found.items = append(found.items, item{work, []any{
				work.Namespace, work.Name, b.Kind, string(work.Status.Conditions[0].Status), w.Preserve, v.state.BindingName(b.ID), source.Short(w.Want.Revision),
			}})
		}
	}

	return found
}

// annotationCluster names the cluster of an object in a list over several.
const annotationCluster = "fairlead.dev/cluster"

func (v *view) objects() list {
	found := list{columns: columns("CLUSTER", "NAMESPACE", "KIND", "NAME", "REVISION", "STATE")}
	for b := range v.state.Bindings.Values() {
		if !v.shows(b.Namespace, b.Name, b.TemplateLabels(v.state)) {
			continue
		}
		for i := range b.Works {
			w := &b.Works[i]
			if w.Released == nil || !v.showsCluster(w.Cluster) {
				continue
			}
			object := v.state.Manifest(b.ID, w.Released)
			if len(v.onlyClusters) != 1 {
				annotate(object, annotationCluster, w.Cluster)
			}
			state := "current"
			switch {
			case w.Held && w.Released.Digest != w.Want.Digest:
				state = "held, " + source.Short(w.Want.Revision) + " waits"
			case w.Held:
				state = "held"
			}
			found.items = append(found.items, item{object, []any{w.Cluster, b.Namespace, b.Kind, b.Name, source.Short(w.Released.Revision), state}})
		}
	}

	return found
}

// annotate adds an annotation to an object that has our marks.
func annotate(manifest map[string]any, key, value string) {
	annotations := manifest["metadata"].(map[string]any)["annotations"].(map[string]any)
	if annotations[object.AnnotationRevision] != nil {
		annotations[key] = value
	}
}

// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

func (v *View) clusters() output.List {
	works, held, deferred := map[string]int{}, map[string]int{}, map[string]int{}
	for b := range v.State.Bindings.Values() {
		for _, w := range b.Works {
			works[w.Cluster]++
			if w.Held {
				held[w.Cluster]++
			}
		}
		for _, waits := range v.State.Waiting(b) {
			deferred[waits.Cluster]++
		}
	}

	names := []string{"NAME", "VERSION", "MODE", "READY", "WORKS", "HELD", "DEFERRED"}
	if v.Live != nil {
		names = append(names, "FAILED", "AT")
	}
	found := output.List{Columns: output.NewColumns(append(names, "+", "ZONES", "REGION", "PROVIDER", "API-ENDPOINT")...).States("READY")}
	for c := range v.State.Snapshot.Clusters.Values() {
		if !v.shows("", c.Name, c.Labels) || !v.showsCluster(c.Name) {
			continue
		}
		doc := c.Cluster
		if v.Live != nil {
			doc = v.Live.Observed(doc)
		}
		row := []any{c.Name, c.Status.KubernetesVersion, string(c.Spec.SyncMode), readiness(doc), works[c.Name], held[c.Name], deferred[c.Name]}
		if v.Live != nil {
			row = append(row, v.Live.Failed(c.Name), source.Short(v.Live.Reached(c.Name)))
		}
		found.Items = append(found.Items, output.Item{Object: doc, Row: append(row, strings.Join(c.Spec.Zones, ","), c.Spec.Region, c.Spec.Provider, c.Spec.APIEndpoint)})
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

func (v *View) policies() output.List {
	claims := map[string]int{}
	for b := range v.State.Bindings.Values() {
		if b.Claim != nil {
			claims[b.Claim.Key()]++
		}
	}

	found := output.List{Columns: output.NewColumns("NAMESPACE", "NAME", "CONFLICT-RESOLUTION", "PRIORITY", "CLAIMS", "SUSPENDED", "PRESERVE", "+", "FILE")}
	for p := range v.State.Snapshot.Policies.Values() {
		if !v.shows(p.Ref.Namespace, p.Ref.Name, p.Labels) {
			continue
		}
		priority := int32(0)
		if p.Spec.Priority != nil {
			priority = *p.Spec.Priority
		}
		preserve := p.Spec.PreserveResourcesOnDeletion != nil && *p.Spec.PreserveResourcesOnDeletion
		found.Items = append(found.Items, output.Item{Object: policy(p), Row: []any{
			p.Ref.Namespace, p.Ref.Name, string(p.Spec.ConflictResolution), priority, claims[p.Ref.Key()], suspended(p.Spec.Suspension), preserve, p.Origin.String(),
		}})
	}

	return found
}

// policy is the document of a policy, defaulted.
func policy(p *fleet.Policy) any {
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: p.Ref.Kind()},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Ref.Namespace, Name: p.Ref.Name, Labels: p.Labels, Annotations: p.Annotations},
		Spec:       p.Spec,
	}
}

// holds lists what is held, and why.
func (v *View) holds() output.List {
	found := output.List{Columns: output.NewColumns("HOLDER", "CLUSTER", "BY", "REASON", "UNTIL", "TICKET", "WORKS", "WAITING", "+", "FILE").Text("REASON", "HOLDER")}
	for _, h := range report.NewHolds(v.State) {
		if !v.shows(h.Namespace, h.Name, nil) || h.Cluster != fleetv1alpha1.AllClusters && !v.showsCluster(h.Cluster) {
			continue
		}
		by, _, _ := strings.Cut(h.Note.By, " <")
		at := fleet.Origin{File: h.File, Line: h.Line}
		found.Items = append(found.Items, output.Item{Object: &h, Row: []any{h.Holder, h.Cluster, by, h.Note.Reason, h.Note.Until, h.Note.Ticket, h.Works, h.Waiting, at.String()}})
	}
	return found
}

// suspended reads "all", or the names of the suspended clusters.
func suspended(s *policyv1alpha1.Suspension) any {
	switch {
	case s == nil:
		return nil
	case s.Dispatching != nil && *s.Dispatching:
		return "all"
	case s.DispatchingOnClusters == nil:
		return nil
	}

	return output.Names{All: s.DispatchingOnClusters.ClusterNames}
}

func (v *View) templates() output.List {
	found := output.List{Columns: output.NewColumns("NAMESPACE", "KIND", "NAME", "POLICY", "CLUSTERS", "PENDING", "+", "FILE").Text("PENDING")}
	for t := range v.State.Snapshot.Templates.Values() {
		if !v.shows(t.Namespace, t.Name, t.Labels) {
			continue
		}
		policy, clusters, pending := "", 0, ""
		if b := v.State.Bindings.At(t.Key()); b != nil {
			clusters = len(b.Works)
			if b.Claim != nil {
				policy = b.Claim.Name
			}
			if b.Pending != nil {
				pending = b.Pending.Reason
			}
		}
		found.Items = append(found.Items, output.Item{ID: t.ID, Object: t, Row: []any{t.Namespace, t.Kind, t.Name, policy, clusters, pending, t.Origin.String()}})
	}

	return found
}

func (v *View) bindings() output.List {
	found := output.List{Columns: output.NewColumns("NAMESPACE", "NAME", "POLICY", "SCHEDULED", "CLUSTERS", "HELD", "PENDING", "+", "REPLICAS").Text("PENDING").States("SCHEDULED")}
	for b := range v.State.Bindings.Values() {
		name := v.State.BindingName(b.ID)
		if !v.shows(b.Namespace, name, b.TemplateLabels(v.State)) || !v.touches(b) {
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
		found.Items = append(found.Items, output.Item{Object: output.Made(func() any { return v.State.ResourceBinding(b) }), Row: []any{
			b.Namespace, name, policy, scheduled, output.Names{All: targets}, output.Names{All: held}, pending, b.Replicas(),
		}})
	}

	return found
}

// touches reports whether a binding has a work on one of the selected clusters.
func (v *View) touches(b *propagate.Binding) bool {
	if len(v.Clusters) == 0 {
		return true
	}

	for _, w := range b.Works {
		if v.showsCluster(w.Cluster) {
			return true
		}
	}

	return false
}

func (v *View) works() output.List {
	found := output.List{Columns: output.NewColumns("NAMESPACE", "NAME", "WORKLOAD-KIND", "DISPATCHING", "PRESERVE", "+", "BINDING", "REVISION").States("DISPATCHING")}
	for b := range v.State.Bindings.Values() {
		name, binding, set := v.State.WorkName(b.ID), v.State.BindingName(b.ID), b.TemplateLabels(v.State)
		ofBinding := v.shows(b.Namespace, name, set)
		for i := range b.Works {
			w := &b.Works[i]
			namespace := propagate.ExecutionNamespace(w.Cluster)
			if !v.showsCluster(w.Cluster) || !ofBinding && !v.shows(namespace, name, set) {
				continue
			}
			found.Items = append(found.Items, output.Item{
				ID:      object.ID{Group: workv1alpha1.GroupVersion.Group, Kind: workv1alpha1.KindWork, Namespace: namespace, Name: name},
				Object:  output.Made(func() any { return v.State.Work(b, w) }),
				Cluster: w.Cluster,
				Row:     []any{namespace, name, b.Kind, string(b.Dispatching(w).Status), w.Preserve, binding, source.Short(w.Want.Revision)},
			})
		}
	}

	return found
}

func (v *View) objects() output.List {
	found := output.List{Columns: output.NewColumns("CLUSTER", "NAMESPACE", "KIND", "NAME", "REVISION", "STATE").Text("STATE").States("STATE")}
	for b := range v.State.Bindings.Values() {
		if !v.shows(b.Namespace, b.Name, b.TemplateLabels(v.State)) {
			continue
		}
		for i := range b.Works {
			w := &b.Works[i]
			if w.Released == nil || !v.showsCluster(w.Cluster) {
				continue
			}
			state := "current"
			switch {
			case w.Held && w.Released.Digest != w.Want.Digest:
				state = "held, " + source.Short(w.Want.Revision) + " waits"
			case w.Held:
				state = "held"
			}
			object := output.Made(func() any {
				object := v.State.Manifest(b.ID, w.Released)
				if len(v.Clusters) != 1 {
					annotate(object, AnnotationCluster, w.Cluster)
				}
				return object
			})
			found.Items = append(found.Items, output.Item{ID: b.ID, Object: object, Cluster: w.Cluster, Row: []any{w.Cluster, b.Namespace, b.Kind, b.Name, source.Short(w.Released.Revision), state}})
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

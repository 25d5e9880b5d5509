// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// AnnotationActivePolicy on a binding names the policy and the commit whose
// delayed fields are in effect.
const AnnotationActivePolicy = "fairlead.dev/active-policy"

// Annotations that name the policy which claims a template, on its binding.
const (
	AnnotationPolicyNamespace   = "propagationpolicy.karmada.io/namespace"
	AnnotationPolicyName        = "propagationpolicy.karmada.io/name"
	AnnotationClusterPolicyName = "clusterpropagationpolicy.karmada.io/name"
)

// ResourceBinding shows a binding in Karmada's terms.
func (s *State) ResourceBinding(b *Binding) *workv1alpha2.ResourceBinding {
	rb := &workv1alpha2.ResourceBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1alpha2.GroupVersion.String(), Kind: bindingKind(b.ID)},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   b.Namespace,
			Name:        s.BindingName(b.ID),
			Annotations: map[string]string{},
		},
	}
	annotateClaim(rb.Annotations, b.Claim)
	rb.Spec.Resource = workv1alpha2.ObjectReference{Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}
	rb.Status.Conditions = append(rb.Status.Conditions, b.activated())

	immediate := b.inForce()
	if immediate.Suspension != nil {
		rb.Spec.Suspension = &workv1alpha2.Suspension{Suspension: *immediate.Suspension}
	}
	rb.Spec.PreserveResourcesOnDeletion = immediate.Preserve
	if b.Active == nil {
		return rb
	}

	rb.Spec.Replicas = int32(b.Replicas())
	rb.Spec.Resource.APIVersion = b.Active.Template.APIVersion
	rb.Spec.ConflictResolution = b.Active.Policy.Spec.ConflictResolution
	s.requiredBy(rb, b.ID)
	if !b.attached() {
		b.showPolicy(rb)
	}
	return rb
}

// Replicas are those that the binding's template wants; 0 for kinds without.
func (b *Binding) Replicas() int64 {
	if b.Active == nil {
		return 0
	}
	wanted, _ := b.replicas()
	return wanted
}

// showPolicy shows what the policy of a binding made of it.
func (b *Binding) showPolicy(rb *workv1alpha2.ResourceBinding) {
	policy := b.Active.Policy
	rb.Annotations[AnnotationActivePolicy] = fmt.Sprintf("%s@%s", policy.Ref, b.Active.PolicyCommit)
	rb.Spec.ReplicaRequirements = b.demand().Requirements
	rb.Spec.Placement = &policy.Spec.Placement
	rb.Spec.PropagateDeps = policy.Spec.PropagateDeps

	for _, t := range b.Targets {
		rb.Spec.Clusters = append(rb.Spec.Clusters, workv1alpha2.TargetCluster{Name: t.Name, Replicas: int32(t.Count)})
	}

	for _, e := range b.Evictions {
		rb.Spec.GracefulEvictionTasks = append(rb.Spec.GracefulEvictionTasks, e.task())
	}

	rb.Status.SchedulerObservingAffinityName = b.AffinityName
	if b.Scheduled.Reason != "" {
		rb.Status.Conditions = append(rb.Status.Conditions, workv1alpha1.Condition{
			Type:    workv1alpha2.Scheduled,
			Status:  status(b.Scheduled.Reason == workv1alpha2.ReasonSuccess),
			Reason:  b.Scheduled.Reason,
			Message: b.Scheduled.Message,
		})
	}
}

// requiredBy lists the owners that take a template along, and where to.
func (s *State) requiredBy(rb *workv1alpha2.ResourceBinding, id object.ID) {
	for owner := range s.index.owners(id) {
		b := s.Bindings.At(owner.Key())
		if !slices.Contains(b.Requires, id) {
			continue
		}

		entry := workv1alpha2.BindingSnapshot{Namespace: b.Namespace, Name: s.BindingName(b.ID)}
		for _, t := range b.Targets {
			entry.Clusters = append(entry.Clusters, workv1alpha2.TargetCluster{Name: t.Name, Replicas: int32(t.Count)})
		}
		rb.Spec.RequiredBy = append(rb.Spec.RequiredBy, entry)
	}
}

func annotateClaim(annotations map[string]string, claim *fleet.PolicyRef) {
	switch {
	case claim == nil:
	case claim.Kind() == policyv1alpha1.KindClusterPropagationPolicy:
		annotations[AnnotationClusterPolicyName] = claim.Name
	default:
		annotations[AnnotationPolicyNamespace] = claim.Namespace
		annotations[AnnotationPolicyName] = claim.Name
	}
}

// activated is the condition that shows what waits, and since when.
func (b *Binding) activated() workv1alpha1.Condition {
	c := workv1alpha1.Condition{
		Type:    workv1alpha2.Activated,
		Status:  metav1.ConditionTrue,
		Reason:  workv1alpha2.ReasonActivated,
		Message: "The policy and the template are in effect as they stand in git.",
	}

	switch {
	case b.Pending != nil && b.Claim == nil && b.Pending.Reason == workv1alpha2.ReasonStaticPolicyPending:
		c.Message = fmt.Sprintf("Nobody claims the template until it changes; it stays as %s activated it since %s.", b.Active.Policy.Ref, short(b.Pending.Since))
	case b.Pending != nil && b.Claim == nil:
		c.Message = fmt.Sprintf("No policy matches the template; it stays as %s activated it, and its changes wait since %s.", b.Active.Policy.Ref, short(b.Pending.Since))
	case b.Pending != nil:
		c.Message = fmt.Sprintf("Changes of %s wait since %s.", b.Pending.Policy, short(b.Pending.Since))
	default:
		return c
	}

	c.Status, c.Reason = metav1.ConditionFalse, b.Pending.Reason
	return c
}

// Work shows one work in Karmada's terms. Its manifest is what the fold wants
// on the cluster, which a held work has not got yet.
func (s *State) Work(b *Binding, w *Work) *workv1alpha1.Work {
	view := &workv1alpha1.Work{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1alpha1.GroupVersion.String(), Kind: workv1alpha1.KindWork},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   ExecutionNamespace(w.Cluster),
			Name:        s.WorkName(b.ID),
			Annotations: map[string]string{"work.karmada.io/conflict-resolution": "abort"},
		},
		Spec:   workv1alpha1.WorkSpec{SuspendDispatching: &w.Held, PreserveResourcesOnDeletion: &w.Preserve},
		Status: workv1alpha1.WorkStatus{Conditions: []workv1alpha1.Condition{b.Dispatching(w)}},
	}
	if b.Overwrites(w.Want) {
		view.Annotations["work.karmada.io/conflict-resolution"] = "overwrite"
	}
	if b.Namespace != "" {
		view.Annotations["resourcebinding.karmada.io/namespace"] = b.Namespace
		view.Annotations["resourcebinding.karmada.io/name"] = s.BindingName(b.ID)
	} else {
		view.Annotations["clusterresourcebinding.karmada.io/name"] = s.BindingName(b.ID)
	}
	content := w.Want
	if w.Blocked != "" {
		content = w.Released
	}
	if content == nil || content.Template == nil {
		return view // it is blocked, and nothing was ever released
	}

	annotateOverrides(view.Annotations, content.Rules)
	view.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: rawJSON(object.Masked(s.Manifest(b.ID, content)))}}}
	return view
}

// Dispatching is the condition of a work: whether it is held or blocked.
func (b *Binding) Dispatching(w *Work) workv1alpha1.Condition {
	c := workv1alpha1.Condition{
		Type:    workv1alpha1.WorkDispatching,
		Status:  metav1.ConditionTrue,
		Reason:  "Dispatching",
		Message: "Work is being dispatched to member clusters.",
	}
	switch {
	case w.Blocked != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "OverrideFailed", w.Blocked
	case w.Held && b.evicts(w.Cluster):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Evicting", "The workload is being moved to other clusters; nothing is sent until that is over."
	case w.Held:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "SuspendDispatching", "Work dispatching is in a suspended state."
	}
	return c
}

// Annotations of a work that list the override rules that made its manifest,
// as Karmada's audit does.
const (
	AnnotationAppliedClusterOverrides = "policy.karmada.io/applied-cluster-overrides"
	AnnotationAppliedOverrides        = "policy.karmada.io/applied-overrides"
)

type appliedRule struct {
	PolicyName string                     `json:"policyName"`
	Overriders *policyv1alpha1.Overriders `json:"overriders"`
}

func annotateOverrides(annotations map[string]string, rules []*fleet.Rule) {
	applied := map[string][]appliedRule{}
	for _, r := range rules {
		key := AnnotationAppliedOverrides
		if r.Override.Namespace == "" {
			key = AnnotationAppliedClusterOverrides
		}
		applied[key] = append(applied[key], appliedRule{r.Override.Name, r.Overriders})
	}

	for key, list := range applied {
		slices.SortStableFunc(list, func(a, b appliedRule) int { return strings.Compare(a.PolicyName, b.PolicyName) })
		annotations[key] = string(rawJSON(list))
	}
}

// rawJSON is only called on what has a JSON.
func rawJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("propagate: %T has no JSON: %v", v, err))
	}
	return raw
}

func status(ok bool) metav1.ConditionStatus {
	if ok {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// short is a commit's hash as people write it.
func short(commit string) string { return commit[:min(len(commit), 7)] }

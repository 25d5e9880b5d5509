// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/interpret"
)

// Copy is what is known of a binding's copy on one cluster.
type Copy struct {
	interpret.Observed
	Message string // why it is not applied
	Runs    string // the commit whose content it has
}

// MemberStatus shows a binding in Karmada's terms, with what its copies were seen
// to be (digest §9.2). A copy that does not acknowledge what was released to
// its cluster shows nothing about it: neither health nor status.
func (s *State) MemberStatus(b *Binding, copies []Copy) *workv1alpha2.ResourceBinding {
	rb := s.ResourceBinding(b)

	applied := map[string]bool{}
	for _, c := range known(copies) {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: c.Cluster, Applied: c.Applied, Revision: c.Runs, Health: workv1alpha2.ResourceHealth(c.Health)}
		if !c.Applied {
			item.AppliedMessage = c.Message
		}
		if c.Status != nil {
			item.Status = &runtime.RawExtension{Raw: rawJSON(c.Status)}
		}

		applied[c.Cluster] = c.Applied
		rb.Status.AggregatedStatus = append(rb.Status.AggregatedStatus, item)
	}

	rb.Status.Conditions = append(rb.Status.Conditions, b.fullyApplied(applied))
	return rb
}

// Aggregated is a binding's template with nothing but its name and the status that
// the copies add up to (digest §9.4); nil where the kind adds nothing up.
func (s *State) Aggregated(b *Binding, copies []Copy) (map[string]any, error) {
	if b.Active == nil {
		return nil, nil
	}
	template := maps.Clone(b.Active.Template.Object())
	delete(template, "status")

	var items []interpret.Observed
	for _, c := range known(copies) {
		items = append(items, c.Observed)
	}

	whole, err := s.Aggregate(template, items)
	if err != nil || whole["status"] == nil {
		return nil, err
	}

	metadata := map[string]any{"name": b.Name}
	if b.Namespace != "" {
		metadata["namespace"] = b.Namespace
	}
	return map[string]any{"apiVersion": template["apiVersion"], "kind": template["kind"], "metadata": metadata, "status": whole["status"]}, nil
}

// known are copies, by cluster, with only what is known of them.
func known(copies []Copy) []Copy {
	copies = slices.Clone(copies)
	slices.SortFunc(copies, func(a, b Copy) int { return strings.Compare(a.Cluster, b.Cluster) })
	for i := range copies {
		if !copies[i].Applied || copies[i].Health == "" {
			copies[i].Health = UnknownHealth
		}
		if !copies[i].Applied {
			copies[i].Status = nil
		}
	}
	return copies
}

// fullyApplied is true when every cluster that the binding is to be on, and no
// other, acknowledges it. Where it is purged from it has no work any more.
func (b *Binding) fullyApplied(applied map[string]bool) workv1alpha1.Condition {
	all := len(b.Works) > 0 && len(b.Works) == len(applied)
	for i := range b.Works {
		all = all && applied[b.Works[i].Cluster]
	}

	c := workv1alpha1.Condition{Type: workv1alpha2.FullyApplied, Status: status(all),
		Reason: workv1alpha2.ReasonFullyAppliedSuccess, Message: workv1alpha2.MessageFullyAppliedSuccess}
	if !all {
		c.Reason, c.Message = workv1alpha2.ReasonFullyAppliedFailed, workv1alpha2.MessageFullyAppliedFailed
	}
	return c
}

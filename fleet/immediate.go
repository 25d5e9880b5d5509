// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Immediate are the fields of a policy that suspend a work or keep it running
// (fold rule 12). They are not part of the placement: they take effect in the
// step that edits them, also under a lazy policy.
type Immediate struct {
	Suspension *policyv1alpha1.Suspension `json:"suspension,omitempty"`
	Preserve   *bool                      `json:"preserve,omitempty"`
}

// ImmediateOf returns the immediate fields of a policy. They share the policy's values.
func ImmediateOf(p *Policy) *Immediate {
	return &Immediate{p.Spec.Suspension, p.Spec.PreserveResourcesOnDeletion}
}

// Hold reports whether nothing may be sent to cluster (digest §7): the policy
// suspends every cluster, or names this one.
func (b *Immediate) Hold(cluster string) bool {
	if b == nil {
		return false
	}

	switch s := b.Suspension; {
	case s == nil:
		return false
	case s.Dispatching != nil && *s.Dispatching:
		return true
	case s.DispatchingOnClusters == nil:
		return false
	default:
		return slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
	}
}

// Keeps reports whether an object that is no longer wanted is left running.
func (b *Immediate) Keeps() bool { return b != nil && b.Preserve != nil && *b.Preserve }

// With combines two sets of fields: it holds what either holds, and keeps what
// either keeps.
func (b *Immediate) With(o *Immediate) *Immediate {
	if o == nil {
		return b
	}
	both := &Immediate{Suspension: b.Suspension, Preserve: b.Preserve}
	if o.Keeps() {
		both.Preserve = o.Preserve
	}

	switch {
	case o.Suspension == nil:
	case b.Suspension == nil, o.all():
		both.Suspension = o.Suspension
	case !b.all():
		names := append(b.names(), o.names()...)
		slices.Sort(names)
		both.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: slices.Compact(names)}}
	}

	return both
}

func (b *Immediate) all() bool {
	return b.Suspension != nil && b.Suspension.Dispatching != nil && *b.Suspension.Dispatching
}

func (b *Immediate) names() []string {
	if b.Suspension == nil || b.Suspension.DispatchingOnClusters == nil {
		return nil
	}
	return slices.Clone(b.Suspension.DispatchingOnClusters.ClusterNames)
}

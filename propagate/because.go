// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/fairlead/fairlead/fleet"
)

// why finds the documents that explain a difference between two states.
type why struct {
	base, head *State

	// The last answer of clustersLeft, and for which binding it is.
	leftOf *Binding
	left   []Because
}

// clustersLeft points at the clusters of a binding that are not in the fleet any
// more. Each of its cells names them, so the last answer is kept.
func (w *why) clustersLeft(b *Binding) []Because {
	switch b {
	case nil:
		return nil
	case w.leftOf:
		return w.left
	}

	w.leftOf, w.left = b, nil
	for _, target := range b.Targets {
		if _, stays := w.head.snapshot().Clusters.Get(target.Name); !stays {
			w.left = append(w.left, Because{"cluster-left", w.base.snapshot().Clusters.At(target.Name).Origin})
		}
	}
	return w.left
}

// removed points at what takes a work from its cluster.
func (w *why) removed(before, after *Binding, cluster string) Because {
	switch {
	case before.attached():
		return w.owner(w.base, before)
	case after == nil || w.head.snapshot().Templates.At(before.Key()) == nil:
		return Because{"template-removed", origin(before, w.base)}
	case before.Active.samePolicy(after.Active) && before.Active.Template.Digest != after.Active.Template.Digest:
		return Because{"template", origin(after, w.head)}
	}

	if after.Evicts(cluster) {
		return w.evicted(after, cluster)
	}
	return Because{"placement", w.policy(after).At("spec.placement")}
}

// evicted points at the cluster that an eviction takes the binding from.
func (w *why) evicted(b *Binding, cluster string) Because {
	for _, e := range b.Evictions {
		if c := w.head.snapshot().Clusters.At(e.Cluster); c != nil && (e.Cluster == cluster || e.blocks()) {
			return Because{"eviction", c.Origin}
		}
	}
	return Because{Code: "eviction"}
}

// suspended points at what holds a cluster: the template's own annotation, or the
// policy.
func (w *why) suspended(b *Binding, cluster string) Because {
	if b.Own.Hold(cluster) {
		return Because{"suspension", origin(b, w.head)}
	}
	return Because{"suspension", w.policy(b).At("spec.suspension")}
}

// keeps points at what has a work preserved from here on, or no longer.
func (w *why) keeps(before, after *Binding, is *Work) Because {
	if after.Own.Keeps() || before != nil && before.Own.Keeps() && !is.Preserve {
		return Because{"preserve", origin(after, w.head)}
	}
	return Because{"preserve", w.policy(after).At("spec.preserveResourcesOnDeletion")}
}

// preserved points at what leaves a copy running: the template's own annotation, or
// the policy.
func (w *why) preserved(b *Binding) Because {
	if b.Own.Keeps() {
		return Because{"preserve", origin(b, w.base)}
	}
	return Because{"preserve", w.policy(b).At("spec.preserveResourcesOnDeletion")}
}

// changed points at the documents that this change edits.
func (w *why) changed(before, after *Binding, was, is *Work) []Because {
	var because []Because
	if before == nil || before.Active.Template.Digest != after.Active.Template.Digest {
		because = append(because, Because{"template", origin(after, w.head)})
	}

	switch {
	case after.attached():
		because = append(because, w.owner(w.head, after))
	case before == nil || !before.Active.samePolicy(after.Active):
		because = append(because, Because{"policy", w.policy(after).Origin})
	case w.joined(is.Cluster):
		because = append(because, Because{"cluster", w.head.snapshot().Clusters.At(is.Cluster).Origin})
	case was == nil && w.base.Snapshot != w.head.Snapshot:
		because = append(because, Because{"placement", w.policy(after).At("spec.placement")})
	}

	if was != nil && is.Blocked == "" {
		because = append(because, overridden(was.Want.Rules, is.Want.Rules)...)
	}
	if script := interpreted(before, after, was, is); script != nil {
		because = append(because, Because{"interpreter", script.Origin})
	}

	because = append(because, w.clustersLeft(before)...)
	if before != nil && !after.evicts(is.Cluster) {
		for _, e := range after.Evictions {
			if c := w.head.snapshot().Clusters.At(e.Cluster); !before.Evicts(e.Cluster) && c != nil {
				because = append(because, Because{"eviction", c.Origin})
			}
		}
	}

	if len(because) == 0 && (after.Observed || w.base.Snapshot == w.head.Snapshot) {
		// Nothing but what was observed of the clusters is different.
		because = append(because, Because{Code: "observations"})
	}
	return because
}

// interpreted is the script that came or changed for a work that was there.
func interpreted(before, after *Binding, was, is *Work) *fleet.Script {
	switch s := is.Want.reviser; {
	case was == nil || is.Blocked != "":
		return nil
	case s != nil && s.Digest() != was.Want.reviser.Digest():
		return s
	case after.answers != nil && (before.answers == nil || before.answers.by != after.answers.by):
		return after.answers.script
	}
	return nil
}

// blocked points at the rule that fails.
func (w *why) blocked(is *Work) Because {
	because := Because{Code: "override"}
	if r, _ := failingRule(w.head.snapshot(), is); r != nil {
		because.Origin = r.Origin
	}
	return because
}

// overridden points at the rules that are new, and if there are none at those
// that were removed.
func overridden(before, after []*fleet.Rule) (because []Because) {
	missing := func(from, rules []*fleet.Rule) {
		for _, r := range rules {
			if !slices.ContainsFunc(from, func(o *fleet.Rule) bool { return o.Key() == r.Key() }) {
				because = append(because, Because{"override", r.Origin})
			}
		}
	}
	missing(before, after)
	if len(because) == 0 {
		missing(after, before)
	}
	return because
}

// owner points at the template that takes an attached one along.
func (w *why) owner(s *State, b *Binding) Because {
	for id := range s.index.owners(b.ID) {
		return Because{"dependency", origin(s.Bindings.At(id.Key()), s)}
	}
	return Because{Code: "dependency"}
}

// origin is where a binding's template is in git, or was when it became active.
func origin(b *Binding, s *State) fleet.Origin {
	if t := s.snapshot().Templates.At(b.Key()); t != nil {
		return t.Origin
	}
	return b.Active.Template.Origin
}

// joined reports whether the cluster is not in the base's fleet.
func (w *why) joined(cluster string) bool {
	_, was := w.base.snapshot().Clusters.Get(cluster)
	return !was
}

// policy is the binding's policy as it is in git, for its lines; or the
// one that was last active when it is removed.
func (w *why) policy(b *Binding) *fleet.Policy {
	for _, ref := range []*fleet.PolicyRef{b.Claim, &b.Active.Policy.Ref} {
		if ref == nil {
			continue
		}
		for _, s := range []*State{w.head, w.base} {
			if policy, ok := s.snapshot().Policies.Get(ref.Key()); ok {
				return policy
			}
		}
	}
	return b.Active.Policy
}

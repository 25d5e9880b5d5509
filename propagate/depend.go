// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"iter"
	"slices"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// require finds the objects that the binding requires on its clusters.
func (d *decision) require() {
	b := d.b

	switch {
	case b.Namespace == "" || len(b.Targets) == 0 || !b.Active.Policy.Spec.PropagateDeps:
	case b.answers == nil || !b.answers.interprets:
		b.Requires = fleet.Dependencies(b.Active.Template)
	case b.answers.noRefs == "":
		found, selects := d.after.index.named(b.answers, b.ID)
		b.Requires = object.SortedIDs(found)
		if len(selects) > 0 {
			b.Selects = object.SortedIDs(selects)
		}
	case d.old != nil:
		// The script failed: what was required stays.
		b.Requires, b.Selects = d.old.Requires, d.old.Selects
	}
}

// selected are the kinds that a binding selects of.
func (b *Binding) selected() []object.ID {
	if b == nil {
		return nil
	}
	return b.Selects
}

// canRequire reports whether a template can require others, or required them
// before.
func (in *inputs) canRequire(id object.ID) bool {
	if fleet.HasDependencies(id.GroupKind()) || len(in.before.Bindings.At(id.Key()).references()) > 0 {
		return true
	}
	t := in.after.snapshot().Templates.At(id.Key())
	return t != nil && in.after.index.script(t, interpret.GetDependencies) != nil
}

// references are all objects that must be beside a binding's works: what
// its template requires, and where it is held also what its released manifest
// does (fold rule 16).
func (b *Binding) references() []object.ID {
	if b == nil {
		return nil
	}
	all := map[object.ID]bool{}
	for _, id := range b.Requires {
		all[id] = true
	}

	for i := range b.Works {
		for _, id := range b.Works[i].lingering() {
			all[id] = true
		}
	}
	return object.SortedIDs(all)
}

// lingering is what a held work's released manifest references.
func (w *Work) lingering() []object.ID {
	if w.Released == nil || !w.Held && w.Blocked == "" {
		return nil
	}
	return w.Released.Requires
}

// attachment is how a template is needed on a cluster by others.
type attachment struct {
	// held says that every one that needs it there is held there (decision 16).
	held bool
	// runs says that one of them is held there and runs with it (fold rule 16).
	runs bool
}

// need is how owners need a template, and what they merge to for it.
type need struct {
	on map[string]attachment // by cluster; nil without owners
	// policy overwrites if that of any owner does, and preserve is set if any
	// owner preserves (decision 17, digest §8.4).
	policy   *fleet.Policy
	preserve bool
}

// needOf merges what owners need of a template.
func needOf(id object.ID, owners iter.Seq[*Binding]) need {
	n := need{policy: attachedAbort}
	for b := range owners {
		for i := range b.Works {
			n.add(id, b, &b.Works[i])
		}
		n.preserve = n.preserve || b.inForce().Keeps()
		if b.Active.Policy.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			n.policy = attachedOverwrite
		}
	}
	return n
}

// add merges what one work of an owner needs.
func (n *need) add(id object.ID, owner *Binding, w *Work) {
	if owner.answers != nil && !owner.targets(w.Cluster) {
		return // it is there for others itself, and that is not followed
	}
	runs := slices.Contains(w.lingering(), id)
	if !runs && !slices.Contains(owner.Requires, id) {
		return
	}

	if n.on == nil {
		n.on = map[string]attachment{}
	}
	was, seen := n.on[w.Cluster]
	held := w.Held || w.Blocked != ""
	n.on[w.Cluster] = attachment{held: held && (!seen || was.held), runs: runs || was.runs}
}

// owners yields the bindings that need id beside them.
func (s *State) owners(id object.ID) iter.Seq[*Binding] {
	return func(yield func(*Binding) bool) {
		for owner := range s.index.owners(id) {
			if !yield(s.Bindings.At(owner.Key())) {
				return
			}
		}
	}
}

// What is attached to others has no policy of its own; these take its place.
var (
	attachedAbort     = attachedPolicy(policyv1alpha1.ConflictAbort)
	attachedOverwrite = attachedPolicy(policyv1alpha1.ConflictOverwrite)
)

func attachedPolicy(c policyv1alpha1.ConflictResolution) *fleet.Policy {
	p := &fleet.Policy{Spec: policyv1alpha1.PropagationSpec{ConflictResolution: c}}
	p.Placement = schedule.NewPlacement(&p.Spec.Placement)
	p.Delayed = object.DigestJSON(p.Spec)
	return p
}

// attached reports whether a binding exists for its owners alone.
func (b *Binding) attached() bool {
	return b != nil && b.Active.Policy.Ref == fleet.PolicyRef{}
}

// attach makes the binding of a template that was never active on its own. It
// goes where its owners need it, with its current content in every step (fold
// rule 13).
func (d *decision) attach() {
	policy, preserve := d.verdict.policy, d.needed.preserve
	d.b = &Binding{ID: d.template.ID, Immediate: &fleet.Immediate{Preserve: &preserve}, Own: d.template.Immediate}
	d.b.Active = d.active(d.old, d.template, d.needed.policy)
	if policy == nil {
		return
	}

	// The policy that claims it counts as one of those that need it.
	own := fleet.ImmediateOf(policy)
	d.b.Claim = d.verdict.ref()
	d.b.Immediate = d.b.Immediate.With(own)
	d.pending()
	for cluster, a := range d.needed.on {
		d.needed.on[cluster] = attachment{held: a.held && own.Hold(cluster)}
	}
}

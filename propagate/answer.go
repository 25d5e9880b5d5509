// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// interpreter brings the index forward.
func (ix *index) interpreter(before, after *fleet.Interpreter) {
	if before != nil {
		ix.interpreters = ix.interpreters.Without(join(before.APIVersion, before.Kind, before.Name))
	}
	if after != nil {
		ix.interpreters = ix.interpreters.With(join(after.APIVersion, after.Kind, after.Name), after)
	}
}

// script is the one that answers for a template's kind, nil without.
func (ix *index) script(t *fleet.Template, function string) *fleet.Script {
	return ix.scriptFor(t.APIVersion, t.Kind, function)
}

func (ix *index) scriptFor(apiVersion, kind, function string) *fleet.Script {
	if ix.interpreters.Len() == 0 {
		return nil
	}
	for in := range under(ix.interpreters, apiVersion, kind) {
		if s := in.Scripts[function]; s != nil {
			return s
		}
	}
	return nil
}

// answers are the results of the scripts of a kind for one template. They are
// kept with the binding as long as the template and the scripts stay the same.
type answers struct {
	template, by object.Digest

	wants      *fleet.Demand // nil where the kind's own rule holds
	noReplicas string        // why there are none
	refs       []interpret.Reference
	interprets bool          // whether refs stand for the kind's own rule
	noRefs     string        // why there are none
	script     *fleet.Script // the first that ran
}

// answer runs the scripts of a template's kind; nil where there are none.
func (ix *index) answer(t *fleet.Template, had *answers, spent *int) *answers {
	replicas, refs := ix.script(t, interpret.GetReplicas), ix.script(t, interpret.GetDependencies)
	if replicas == nil && refs == nil {
		return nil
	}

	by := object.DigestJSON([]object.Digest{replicas.Digest(), refs.Digest()})
	if had != nil && had.template == t.Digest && had.by == by {
		return had
	}

	a := &answers{template: t.Digest, by: by, interprets: refs != nil, script: cmp.Or(replicas, refs)}
	if replicas != nil {
		n, needs, err := replicas.Metered(spent).Replicas(t.Object())
		if err != nil {
			a.noReplicas = replicas.Wrap(err).Error()
		}
		a.wants = &fleet.Demand{Replicas: n}
		if needs != nil {
			needs.Namespace = t.Namespace
			a.wants.Requirements, a.wants.Needs = needs, schedule.NewNeeds(needs.ResourceRequest)
		}
	}

	if refs != nil {
		all, err := refs.Metered(spent).Dependencies(t.Object())
		for i := range all {
			if err == nil && all[i].Namespace != "" && all[i].Namespace != t.Namespace {
				err = fmt.Errorf("reference %d is in another namespace", i+1)
			}
		}
		if err != nil {
			a.noRefs, all = refs.Wrap(err).Error(), nil
		}
		a.refs = all
	}
	return a
}

// interpret runs the scripts of the template's kind, if it has any.
func (d *decision) interpret() { d.b.answers = d.answersOf(d.b.Active.Template, d.old.answered()) }

// answersOf are the answers for a template. The scripts run once in a step.
func (in *inputs) answersOf(t *fleet.Template, had *answers) *answers {
	a, ok := in.answers[t]
	if !ok {
		a = in.after.index.answer(t, had, &in.cost.scripted)
		in.answers[t] = a
	}
	return a
}

// demand is what the binding's template needs of the clusters.
func (b *Binding) demand() fleet.Demand {
	if b.answers != nil && b.answers.wants != nil {
		return *b.answers.wants
	}
	return b.Active.Template.Demand
}

// replicas are those that the binding's template wants (digest §3.3).
func (b *Binding) replicas() (wanted int64, workload bool) { return b.demand().Wanted() }

// named are the objects that scripts name for a template, and the kinds that
// they select of.
func (ix *index) named(a *answers, owner object.ID) (found, selects map[object.ID]bool) {
	found, selects = map[object.ID]bool{}, map[object.ID]bool{}
	for _, r := range a.refs {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			continue // no object can be meant
		}

		id := object.ID{Group: gv.Group, Kind: r.Kind, Namespace: owner.Namespace, Name: r.Name}
		if r.LabelSelector == nil {
			found[id] = true
			continue
		}

		selects[id] = true
		selector, err := metav1.LabelSelectorAsSelector(r.LabelSelector)
		if err != nil {
			continue // a script's answer is checked for that
		}
		for t := range under(ix.templates, r.APIVersion, r.Kind, owner.Namespace) {
			if selector.Matches(labels.Set(t.Labels)) {
				found[t.ID] = true
			}
		}
	}

	delete(found, owner)
	return found, selects
}

// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/fairlead/fairlead/api/config/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/propagate/interpret"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Interpreter is a ResourceInterpreterCustomization: what scripts say of one
// kind. Where it has one, the kind's own rule does not count.
type Interpreter struct {
	Name             string
	APIVersion, Kind string // of its target
	Origin           Origin
	// Digest is of the target and the scripts.
	Digest Digest

	scripts map[string]*script // by the function they define
	idle    []idle
}

// idle is a script that is compiled and asked by nobody.
type idle struct {
	field, why string
	origin     Origin
}

// script is one function of an interpreter.
type script struct {
	interpret.Interpreter
	from   string // names the document
	origin Origin
	digest Digest
}

// NewInterpreter compiles the scripts of a customization. lines are as for
// NewPolicy.
func NewInterpreter(doc *configv1alpha1.ResourceInterpreterCustomization, origin Origin, lines map[string]int) (*Interpreter, []Problem) {
	c := &check{origin: origin, lines: lines}
	target, rules := doc.Spec.Target, &doc.Spec.Customizations
	in := &Interpreter{Name: doc.Name, APIVersion: target.APIVersion, Kind: target.Kind, Origin: origin, Digest: digestJSON(doc.Spec), scripts: map[string]*script{}}
	if doc.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", configv1alpha1.KindResourceInterpreterCustomization)
	}
	if target.APIVersion == "" || target.Kind == "" {
		c.at("spec.target", "spec.target needs apiVersion and kind")
	}
	const at = "spec.customizations."
	// What has no effect is compiled too, so that a mistake in it is found.
	for _, r := range []struct {
		field, function string
		script          *configv1alpha1.Script
		idle            *idle // why nothing asks it, nil where something does
	}{
		{"replicaResource", interpret.GetReplicas, rules.ReplicaResource, nil},
		{"replicaRevision", interpret.ReviseReplica, rules.ReplicaRevision, nil},
		{"dependencyInterpretation", interpret.GetDependencies, rules.DependencyInterpretation, nil},
		{"healthInterpretation", interpret.InterpretHealth, rules.HealthInterpretation, nil},
		{"statusReflection", interpret.ReflectStatus, rules.StatusReflection, nil},
		{"statusAggregation", interpret.AggregateStatus, rules.StatusAggregation, nil},
		{"retention", interpret.Retain, rules.Retention, &idle{why: "server-side apply leaves alone what the template does not set"}},
		{"componentResource", interpret.GetComponents, rules.ComponentResource, &idle{why: "Karmada's gate MultiplePodTemplatesScheduling for it is off, and there is none here"}},
	} {
		if r.script == nil {
			continue
		}
		compiled, err := interpret.Compile(r.function, r.script.LuaScript, pods)
		if err != nil {
			c.at(at+r.field+".luaScript", "%s%s: %v", at, r.field, err)
			continue
		}
		in.scripts[r.function] = &script{
			Interpreter: compiled,
			from:        fmt.Sprintf("%s %s", configv1alpha1.KindResourceInterpreterCustomization, doc.Name),
			origin:      Origin{origin.File, c.line(at + r.field)},
			digest:      digestJSON(r.script),
		}
		if r.idle != nil {
			r.idle.field, r.idle.origin = at+r.field, in.scripts[r.function].origin
			in.idle = append(in.idle, *r.idle)
		}
	}
	if len(in.scripts) == 0 && len(c.problems) == 0 {
		c.at("spec.customizations", "spec.customizations has no script")
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return in, nil
}

// idleScripts names the scripts that nothing asks.
func (in *Interpreter) idleScripts() (found []Finding) {
	id := ID{Group: configv1alpha1.GroupVersion.Group, Kind: configv1alpha1.KindResourceInterpreterCustomization, Name: in.Name}
	for _, script := range in.idle {
		found = append(found, Finding{Code: FindingNoEffect, Level: LevelNotice, Object: id, Origin: script.origin,
			Message: fmt.Sprintf("%s: %s has no effect: %s", id, script.field, script.why)})
	}
	return found
}

// pods are the rules that scripts can ask for a pod in a custom kind.
var pods = interpret.Native{
	Requirements: func(podTemplate map[string]any) *workv1alpha2.ReplicaRequirements {
		return requirements(podTemplate, []string{"spec"})
	},
	Dependencies: func(podTemplate map[string]any, namespace string) []interpret.Reference {
		t := &Template{ID: ID{Kind: pod.Kind, Namespace: namespace}, Object: podTemplate}
		var all []interpret.Reference
		for _, id := range dependencies(t) {
			all = append(all, interpret.Reference{APIVersion: "v1", Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		}
		return all
	},
}

// Answers yields the functions that it has, each by a name that no other
// interpreter may bear.
func (in *Interpreter) Answers() iter.Seq[string] {
	return func(yield func(string) bool) {
		for function := range in.scripts {
			if !yield(fmt.Sprintf("%s of %s %s", function, in.APIVersion, in.Kind)) {
				return
			}
		}
	}
}

// builtin is whether it answers for a kind of Kubernetes.
func (in *Interpreter) builtin() bool {
	gv, err := schema.ParseGroupVersion(in.APIVersion)
	if err != nil {
		return false
	}
	_, known := BuiltinScope(gv.Group, in.Kind)
	return known
}

func (s *script) wrap(err error) error {
	if err == nil || s == nil {
		return err
	}
	return fmt.Errorf("%s (%s): %w", s.from, s.origin, err)
}

// interpreter brings the index forward.
func (ix *index) interpreter(before, after *Interpreter) {
	if before != nil {
		ix.interpreters = ix.interpreters.Without(join(before.APIVersion, before.Kind, before.Name))
	}
	if after != nil {
		ix.interpreters = ix.interpreters.With(join(after.APIVersion, after.Kind, after.Name), after)
	}
}

// script is the one that answers for a template's kind, nil without.
func (ix *index) script(t *Template, function string) *script {
	return ix.scriptFor(t.APIVersion, t.Kind, function)
}

func (ix *index) scriptFor(apiVersion, kind, function string) *script {
	if ix.interpreters.Len() == 0 {
		return nil
	}
	for in := range under(ix.interpreters, apiVersion, kind) {
		if s := in.scripts[function]; s != nil {
			return s
		}
	}
	return nil
}

// interpreters has looked at what is of a kind whose interpreter changed
// (fold rule 15: it acts at once).
func (st *step) interpreters() {
	changed := map[string]bool{}
	for d := range ordered.Diff(st.prev.snapshot().Interpreters, st.next.Snapshot.Interpreters) {
		st.next.index.interpreter(d.Before, d.After)
		if d.Had && d.Has && d.Before.Digest == d.After.Digest {
			continue // it moved
		}
		for _, in := range []*Interpreter{d.Before, d.After} {
			if in != nil {
				changed[join(in.APIVersion, in.Kind)] = true
			}
		}
	}
	if len(changed) == 0 {
		return
	}
	for key, b := range st.prev.Bindings.All() {
		t := b.Active.Template
		if now := st.next.Snapshot.Templates.At(key); now != nil && changed[join(now.APIVersion, now.Kind)] || changed[join(t.APIVersion, t.Kind)] {
			st.dirty[key] = true
		}
	}
}

// answers are what scripts say of a template. They are asked once: what is
// kept with a binding holds as long as the template and the scripts do.
type answers struct {
	template, by Digest

	asks       *asks  // nil where the kind's own rule holds
	unasked    string // why there are none
	refs       []interpret.Reference
	interprets bool    // whether refs stand for the kind's own rule
	unread     string  // why there are no refs
	script     *script // the first that was asked
}

// answer asks the scripts of a template's kind; nil where there are none.
func (ix *index) answer(t *Template, had *answers) *answers {
	replicas, refs := ix.script(t, interpret.GetReplicas), ix.script(t, interpret.GetDependencies)
	if replicas == nil && refs == nil {
		return nil
	}
	by := digestJSON([]Digest{replicas.id(), refs.id()})
	if had != nil && had.template == t.Digest && had.by == by {
		return had
	}
	a := &answers{template: t.Digest, by: by, interprets: refs != nil, script: cmp.Or(replicas, refs)}
	if replicas != nil {
		n, needs, err := replicas.Replicas(t.Object)
		if err != nil {
			a.unasked = replicas.wrap(err).Error()
		}
		a.asks = &asks{replicas: n}
		if needs != nil {
			needs.Namespace = t.Namespace
			a.asks.requirements, a.asks.needs = needs, schedule.NewNeeds(needs.ResourceRequest)
		}
	}
	if refs != nil {
		all, err := refs.Dependencies(t.Object)
		for i := range all {
			if err == nil && all[i].Namespace != "" && all[i].Namespace != t.Namespace {
				err = fmt.Errorf("reference %d is in another namespace", i+1)
			}
		}
		if err != nil {
			a.unread, all = refs.wrap(err).Error(), nil
		}
		a.refs = all
	}
	return a
}

// answer asks the scripts of a kind once in a step.
func (st *step) answer(t *Template, had *answers) *answers {
	a, ok := st.asked[t]
	if !ok {
		if st.asked == nil {
			st.asked = map[*Template]*answers{}
		}
		a = st.next.index.answer(t, had)
		st.asked[t] = a
	}
	return a
}

func (s *script) id() Digest {
	if s == nil {
		return Digest{}
	}
	return digestJSON(s.from + s.origin.String() + s.digest.String())
}

// asks is what the binding's template asks of the clusters.
func (b *Binding) asks() asks {
	if b.answers != nil && b.answers.asks != nil {
		return *b.answers.asks
	}
	return b.Active.Template.asks
}

// replicas is what the binding's template asks for (digest §3.3).
func (b *Binding) replicas() (wanted int64, workload bool) { return b.asks().wanted() }

// interpretedRequires finds the objects that scripts name.
func (st *step) interpretedRequires(b, old *Binding) {
	if b.answers.unread != "" {
		if old != nil {
			b.Requires, b.Selects = old.Requires, old.Selects
		}
		return
	}
	found, selects := st.named(b.answers, b.ID)
	b.Requires, b.Selects = sortedIDs(found), nil
	if len(selects) > 0 {
		b.Selects = sortedIDs(selects)
	}
}

// named are the objects that scripts name for a template, and the kinds that
// they select of.
func (st *step) named(a *answers, owner ID) (found, selects map[ID]bool) {
	found, selects = map[ID]bool{}, map[ID]bool{}
	for _, r := range a.refs {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			continue // no object can be meant
		}
		id := ID{Group: gv.Group, Kind: r.Kind, Namespace: owner.Namespace, Name: r.Name}
		if r.LabelSelector == nil {
			found[id] = true
			continue
		}
		selects[id] = true
		selector, err := metav1.LabelSelectorAsSelector(r.LabelSelector)
		if err != nil {
			continue // a script's answer is checked for that
		}
		for t := range under(st.next.index.templates, r.APIVersion, r.Kind, owner.Namespace) {
			if selector.Matches(labels.Set(t.Labels)) {
				found[t.ID] = true
			}
		}
	}
	delete(found, owner)
	return found, selects
}

// revised is the template with a cluster's share of its replicas, by script.
func (s *script) revised(t *Template, replicas int64) (map[string]any, error) {
	object, err := s.Revise(t.Object, replicas)
	if err == nil {
		err = sameIdentity(t.Object, object)
	}
	if err != nil {
		return nil, fmt.Errorf("%s (%s): %s", s.from, s.origin, strings.TrimSpace(err.Error()))
	}
	return object, nil
}

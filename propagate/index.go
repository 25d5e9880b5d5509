// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"iter"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/schedule"
)

// index finds which templates a policy may match, and which policies a template,
// without comparing each with each. It follows from a snapshot and its bindings,
// and each step brings it forward by what changed.
type index struct {
	templates    ordered.Map[*fleet.Template]    // by apiVersion, kind, namespace, name
	policies     ordered.Map[*fleet.Policy]      // by namespace of the policy, apiVersion, kind and name of each selector, ref
	overrides    ordered.Map[*fleet.Override]    // by namespace of the override, apiVersion and kind of each selector, ref
	interpreters ordered.Map[*fleet.Interpreter] // by apiVersion and kind of the target, name
	claimed      ordered.Map[object.ID]          // by policy, template
	requires     ordered.Map[object.ID]          // by what is required, what requires it
	selects      ordered.Map[object.ID]          // by the selected kind, what selects
	names        ordered.Map[object.ID]          // by namespace, binding name, group
	clusters     []*schedule.Cluster
}

// documents brings the index forward to the documents of a snapshot.
func (ix *index) documents(before, after *fleet.Snapshot) {
	for d := range ordered.Diff(before.Policies, after.Policies) {
		ix.policy(d.Before, d.After)
	}

	for d := range ordered.Diff(before.Templates, after.Templates) {
		ix.template(d.Before, d.After)
	}

	for d := range ordered.Diff(before.Overrides, after.Overrides) {
		ix.override(d.Before, d.After)
	}

	for d := range ordered.Diff(before.Interpreters, after.Interpreters) {
		ix.interpreter(d.Before, d.After)
	}
}

// join makes an index key of parts, none of which holds a NUL.
func join(parts ...string) string { return strings.Join(parts, "\x00") }

func (ix *index) template(before, after *fleet.Template) {
	if before != nil {
		ix.templates = ix.templates.Without(templateKey(before))
	}
	if after != nil {
		ix.templates = ix.templates.With(templateKey(after), after)
	}
}

func templateKey(t *fleet.Template) string { return join(t.APIVersion, t.Kind, t.Namespace, t.Name) }

func (ix *index) policy(before, after *fleet.Policy) {
	if before != nil {
		for _, s := range before.Selectors {
			ix.policies = ix.policies.Without(policyKey(before, s))
		}
	}
	if after != nil {
		for _, s := range after.Selectors {
			ix.policies = ix.policies.With(policyKey(after, s), after)
		}
	}
}

func policyKey(p *fleet.Policy, s fleet.Selector) string {
	return join(p.Ref.Namespace, s.APIVersion, s.Kind, s.Name, p.Ref.Key())
}

func (ix *index) binding(before, after *Binding) {
	if before != nil && before.Claim != nil {
		ix.claimed = ix.claimed.Without(join(before.Claim.Key(), before.Key()))
	}
	if after != nil && after.Claim != nil {
		ix.claimed = ix.claimed.With(join(after.Claim.Key(), after.Key()), after.ID)
	}

	for _, id := range before.selected() {
		ix.selects = ix.selects.Without(join(id.Key(), before.Key()))
	}

	for _, id := range after.selected() {
		ix.selects = ix.selects.With(join(id.Key(), after.Key()), after.ID)
	}

	for _, id := range before.references() {
		ix.requires = ix.requires.Without(join(id.Key(), before.Key()))
	}

	for _, id := range after.references() {
		ix.requires = ix.requires.With(join(id.Key(), after.Key()), after.ID)
	}

	if before != nil && after == nil {
		ix.names = ix.names.Without(nameKey(before.ID))
	}
	if before == nil && after != nil {
		ix.names = ix.names.With(nameKey(after.ID), after.ID)
	}
}

// under yields the entries whose key begins with these parts and goes on.
func under[V comparable](m ordered.Map[V], parts ...string) iter.Seq[V] {
	prefix := join(parts...) + "\x00"
	return func(yield func(V) bool) {
		for key, v := range m.From(prefix) {
			if !strings.HasPrefix(key, prefix) || !yield(v) {
				return
			}
		}
	}
}

// owners yields the templates that require id.
func (ix *index) owners(id object.ID) iter.Seq[object.ID] { return under(ix.requires, id.Key()) }

// claimedBy yields the templates that a policy has.
func (ix *index) claimedBy(r fleet.PolicyRef) iter.Seq[object.ID] { return under(ix.claimed, r.Key()) }

// candidates yields the policies of one scope that may match t: those with a
// selector of its name, then those with one of its kind.
func (ix *index) candidates(scope string, t *fleet.Template) iter.Seq[*fleet.Policy] {
	return func(yield func(*fleet.Policy) bool) {
		for p := range under(ix.policies, scope, t.APIVersion, t.Kind, t.Name) {
			if !yield(p) {
				return
			}
		}
		for p := range under(ix.policies, scope, t.APIVersion, t.Kind, "") {
			if !yield(p) {
				return
			}
		}
	}
}

// reach yields the templates that one of the policy's selectors may match.
func (ix *index) reach(p *fleet.Policy) iter.Seq[*fleet.Template] {
	return func(yield func(*fleet.Template) bool) {
		for _, s := range p.Selectors {
			for t := range ix.selected(s) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

func (ix *index) selected(s fleet.Selector) iter.Seq[*fleet.Template] {
	switch {
	case s.Namespace != "" && s.Name != "":
		return func(yield func(*fleet.Template) bool) {
			if t, ok := ix.templates.Get(join(s.APIVersion, s.Kind, s.Namespace, s.Name)); ok {
				yield(t)
			}
		}
	case s.Namespace != "":
		return under(ix.templates, s.APIVersion, s.Kind, s.Namespace)
	}
	return under(ix.templates, s.APIVersion, s.Kind)
}

// newIndex makes the index of a whole snapshot, without its bindings and
// clusters.
func newIndex(s *fleet.Snapshot) index {
	var ix index
	templates := make(map[string]*fleet.Template, s.Templates.Len())
	for t := range s.Templates.Values() {
		templates[templateKey(t)] = t
	}
	ix.templates = ordered.Of(templates)

	policies := map[string]*fleet.Policy{}
	for p := range s.Policies.Values() {
		for _, selector := range p.Selectors {
			policies[policyKey(p, selector)] = p
		}
	}
	ix.policies = ordered.Of(policies)

	for o := range s.Overrides.Values() {
		ix.override(nil, o)
	}

	for in := range s.Interpreters.Values() {
		ix.interpreter(nil, in)
	}
	return ix
}

// bindings adds all bindings to an index that has none.
func (ix *index) bindings(all map[string]*Binding) {
	claimed, names := make(map[string]object.ID, len(all)), make(map[string]object.ID, len(all))
	requires, selects := map[string]object.ID{}, map[string]object.ID{}
	for key, b := range all {
		if b.Claim != nil {
			claimed[join(b.Claim.Key(), key)] = b.ID
		}
		for _, id := range b.selected() {
			selects[join(id.Key(), key)] = b.ID
		}
		for _, id := range b.references() {
			requires[join(id.Key(), key)] = b.ID
		}
		names[nameKey(b.ID)] = b.ID
	}

	ix.claimed, ix.names = ordered.Of(claimed), ordered.Of(names)
	ix.requires, ix.selects = ordered.Of(requires), ordered.Of(selects)
}

// newContentIndex is the part of a snapshot's index that contents are made
// with.
func newContentIndex(s *fleet.Snapshot) *index {
	ix := &index{}
	for o := range s.Overrides.Values() {
		ix.override(nil, o)
	}
	for in := range s.Interpreters.Values() {
		ix.interpreter(nil, in)
	}
	return ix
}

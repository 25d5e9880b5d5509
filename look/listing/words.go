// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Words are what a command line can name in a state, for completion. They are sorted.
type Words struct {
	State     *propagate.State
	Namespace string // "" is all
}

// Clusters are the names of the clusters, and wave=N for each wave of a policy.
func (w Words) Clusters() (all []string) {
	waves := 0
	for c := range w.State.Snapshot.Clusters.Values() {
		all = append(all, c.Name)
	}
	for p := range w.State.Snapshot.Policies.Values() {
		waves = max(waves, len(p.Waves))
	}
	for n := range waves {
		all = append(all, fmt.Sprintf("wave=%d", n+1))
	}
	return all
}

// Policies are the names of the policies.
func (w Words) Policies() []string {
	all := map[string]bool{}
	for p := range w.State.Snapshot.Policies.Values() {
		if w.shows(p.Ref.Namespace) {
			all[p.Ref.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Namespaces are those of the templates and policies.
func (w Words) Namespaces() []string {
	all := map[string]bool{}
	for t := range w.State.Snapshot.Templates.Values() {
		all[t.Namespace] = true
	}
	for p := range w.State.Snapshot.Policies.Values() {
		all[p.Ref.Namespace] = true
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}

// Objects are the templates as a command about one object takes them: deploy/shop/web,
// or deploy/web if a namespace is selected.
func (w Words) Objects() []string {
	all := map[string]bool{}
	for t := range w.State.Snapshot.Templates.Values() {
		id := t.ID
		if !w.shows(id.Namespace) {
			continue
		}
		if w.Namespace != "" {
			id.Namespace = ""
		}
		all[object.ShortName(id)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Resources are the nouns of the fleet and the kinds of its templates, as get takes
// them.
func (w Words) Resources() []string {
	all := map[string]bool{"all": true}
	for t := range w.State.Snapshot.Templates.Values() {
		kind, _, _ := strings.Cut(object.ShortName(t.ID), "/")
		all[kind] = true
	}
	return slices.Concat(Nouns, slices.Sorted(maps.Keys(all)))
}

// Names are the names of what a noun, or the templates of what another resource, lists.
func (w Words) Names(resource string) []string {
	all := map[string]bool{}
	switch resource {
	case "cluster", "clusters":
		for c := range w.State.Snapshot.Clusters.Values() {
			all[c.Name] = true
		}
	case "policy", "policies":
		return w.Policies()
	case "binding", "bindings", "rb", "crb", "work", "works", "wk":
		for b := range w.State.Bindings.Values() {
			if name := w.State.BindingName(b.ID); w.shows(b.Namespace) {
				all[name] = true
			}
		}
	default:
		kinds := w.State.Snapshot.KindNames()
		kind, group, _ := strings.Cut(strings.ToLower(resource), ".")
		for t := range w.State.Snapshot.Templates.Values() {
			asked := object.Reference{Kind: kind, Group: group, Namespace: w.Namespace, Name: t.Name}
			if IsNoun(resource) && w.shows(t.Namespace) || asked.Matches(t.ID, kinds) {
				all[t.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (w Words) shows(namespace string) bool { return w.Namespace == "" || w.Namespace == namespace }

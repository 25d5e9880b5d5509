// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
	"sort"
)

// matches is how well selectors fit a template: 0 not at all, 1 by kind, 2 by
// labels, 3 by name (digest §2.2).
func matches(selectors []any, t *template) int {
	best := 0
	for _, s := range selectors {
		s := s.(object)
		if text(s, "apiVersion") != t.apiVersion || text(s, "kind") != t.kind {
			continue
		}
		if ns := text(s, "namespace"); ns != "" && ns != t.namespace {
			continue
		}
		switch name := text(s, "name"); {
		case name == t.name:
			best = max(best, 3)
		case name != "":
		case s["labelSelector"] == nil:
			best = max(best, 1)
		case labelled(s["labelSelector"], t.labels):
			best = max(best, 2)
		}
	}
	return best
}

// labelled reports whether labels are as a selector wants them. Selectors here have
// matchLabels only.
func labelled(selector any, labels map[string]string) bool {
	for k, v := range at(selector.(object), "matchLabels") {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// matches is 0 also where the template is in another namespace.
func (p *policy) matches(t *template) int {
	if p.namespace != "" && p.namespace != t.namespace {
		return 0
	}
	return matches(p.selectors, t)
}

// best orders policies as §2.3 does: those of a namespace before those of the
// cluster, then by priority, by how well they fit, by name.
func best(t *template, all []*policy) *policy {
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if (a.namespace != "") != (b.namespace != "") {
			return a.namespace != ""
		}
		if a.priority != b.priority {
			return a.priority > b.priority
		}
		if m, n := a.matches(t), b.matches(t); m != n {
			return m > n
		}
		return a.name < b.name
	})
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// winner is the policy that would have an unclaimed template.
func (f *fleet) winner(t *template) *policy {
	var all []*policy
	for _, p := range f.policies {
		if p.matches(t) > 0 {
			all = append(all, p)
		}
	}
	return best(t, all)
}

// preemptor is the policy that takes a template from the one that claims it,
// or nil (§2.8).
func (f *fleet) preemptor(t *template, claimer *policy) *policy {
	var all []*policy
	for _, p := range f.policies {
		if p == claimer || !p.preempts || p.matches(t) == 0 {
			continue
		}
		switch {
		case p.namespace != "" && claimer.namespace == "":
			all = append(all, p)
		case (p.namespace == "") == (claimer.namespace == "") && p.priority > claimer.priority:
			all = append(all, p)
		}
	}
	return best(t, all)
}

// selected reports whether a cluster affinity selects a cluster (§4.1).
func selected(affinity object, cluster object) bool {
	name := text(cluster, "metadata", "name")
	if slices.Contains(names(affinity["exclude"]), name) {
		return false
	}
	if s := affinity["labelSelector"]; s != nil {
		labels := map[string]string{}
		for k, v := range at(cluster, "metadata", "labels") {
			labels[k] = fmt.Sprint(v)
		}
		if !labelled(s, labels) {
			return false
		}
	}
	wanted := names(affinity["clusterNames"])
	return len(wanted) == 0 || slices.Contains(wanted, name)
}

// tolerated reports whether nothing of a cluster's taints keeps new works away.
func tolerated(tolerations []any, cluster object) bool {
	for _, t := range list(at(cluster, "spec")["taints"]) {
		taint, ok := t.(object), false
		for _, tol := range tolerations {
			tol := tol.(object)
			ok = ok || (text(tol, "effect") == "" || text(tol, "effect") == text(taint, "effect")) &&
				(text(tol, "key") == "" || text(tol, "key") == text(taint, "key")) &&
				(text(tol, "operator") == "Exists" || text(tol, "value") == text(taint, "value"))
		}
		if !ok {
			return false
		}
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"sort"
	"strings"
)

// manifest is what a cluster gets of a template: its share of replicas, then
// the overrides of the cluster, then those of its namespace (digest §5.3). Replicas
// that the template does not have go only where a division or an override sets them
// (decision 53).
func (f *fleet) manifest(t *template, share int64, divided bool, cluster string) (object, error) {
	o := copied(t.object).(object)
	_, set := at(o, "spec")["replicas"]
	set = set || divided
	if _, workload := t.replicas(); workload {
		o["spec"].(object)["replicas"] = float64(share)
	}
	for _, namespace := range []string{"", t.namespace} {
		seen := newTemplate(o)
		type match struct {
			*override
			how int
		}
		var all []match
		for _, ov := range f.overrides {
			how := 1
			if ov.selectors != nil {
				how = matches(ov.selectors, seen)
			}
			if ov.namespace == namespace && how > 0 {
				all = append(all, match{ov, how})
			}
		}
		sort.Slice(all, func(i, j int) bool {
			if all[i].how != all[j].how {
				return all[i].how < all[j].how
			}
			return all[i].name < all[j].name
		})
		for _, m := range all {
			for _, rule := range m.rules {
				rule := rule.(object)
				if !selected(at(rule, "targetCluster"), f.clusters[cluster]) {
					continue
				}
				if err := apply(at(rule, "overriders"), o); err != nil {
					return nil, err
				}
				for _, p := range list(at(rule, "overriders")["plaintext"]) {
					set = set || text(p.(object), "path") == "/spec/replicas"
				}
			}
		}
		if t.namespace == "" {
			break // there are none of its namespace
		}
	}
	if t.runsPods() && !set {
		delete(at(o, "spec"), "replicas")
	}
	meta := at(o, "metadata")
	for _, own := range []string{"fairlead.dev/hold", "fairlead.dev/preserve"} {
		delete(at(meta, "annotations"), own) // they are for us
	}
	for _, field := range []string{"labels", "annotations"} {
		if len(at(meta, field)) == 0 {
			delete(meta, field)
		}
	}
	return o, nil
}

func apply(overriders object, o object) error {
	for _, l := range list(overriders["labelsOverrider"]) {
		l := l.(object)
		meta := o["metadata"].(object)
		if meta["labels"] == nil {
			meta["labels"] = object{}
		}
		labels := meta["labels"].(object)
		for k, value := range at(l, "value") {
			v := fmt.Sprint(value)
			_, has := labels[k]
			switch text(l, "operator") {
			case "add":
				labels[k] = v
			case "replace":
				if has {
					labels[k] = v
				}
			case "remove":
				delete(labels, k)
			}
		}
	}
	for _, p := range list(overriders["plaintext"]) {
		p := p.(object)
		path := strings.Split(strings.TrimPrefix(text(p, "path"), "/"), "/")
		parent, last := o, path[len(path)-1]
		for _, step := range path[:len(path)-1] {
			next, ok := parent[step].(object)
			if !ok {
				return fmt.Errorf("%s has no parent", text(p, "path"))
			}
			parent = next
		}
		_, has := parent[last]
		switch op := text(p, "operator"); {
		case op == "add", op == "replace" && has:
			parent[last] = p["value"]
		case op == "remove" && has:
			delete(parent, last)
		default:
			return fmt.Errorf("%s is missing", text(p, "path"))
		}
	}
	return nil
}

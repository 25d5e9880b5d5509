// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/schedule"
)

// share is what makes the contents of one template on two clusters differ, besides
// their overrides.
type share struct {
	replicas, completions int64

	// bare leaves out the fields that nobody sets (decision 53).
	bare bool
}

// whole is the share of a cluster that gets a template as it is.
func whole(replicas int64) share { return share{replicas: replicas, completions: -1} }

func (c *Content) share() share { return share{c.Replicas, c.Completions, c.Bare} }

// shares returns the share of each target.
func (b *Binding) shares() func(schedule.Share) share {
	completions := b.completions()
	unset, divided := len(b.Active.Template.Unset) > 0, b.Active.Policy.Placement.Divided()

	return func(target schedule.Share) share {
		s := whole(target.Count)
		s.bare = unset && !(divided && b.targets(target.Name))
		if n, ok := completions[target.Name]; ok {
			s.completions = n
		}
		return s
	}
}

// completions shares a divided Job's completions in proportion to its
// parallelism (digest §5.4); nil when there is nothing to share.
func (b *Binding) completions() map[string]int64 {
	if b.GroupKind() != fleet.Job || !b.Active.Policy.Placement.Divided() {
		return nil
	}

	spec, _ := b.Active.Template.Object()["spec"].(map[string]any)
	total, ok := spec["completions"].(int64)
	if !ok {
		return nil
	}

	shares := map[string]int64{}
	for _, s := range schedule.Webster(b.Targets, total) {
		shares[s.Name] = s.Count
	}
	return shares
}

// shared is the template with a cluster's share of its replicas. It shares
// with the template what it leaves as it is.
func shared(t *fleet.Template, s share, reviser *fleet.Script) (map[string]any, error) {
	if reviser != nil && s.replicas > 0 {
		return reviser.Revised(t, s.replicas)
	}

	object := maps.Clone(t.Object())
	if _, workload := t.Demand.Wanted(); workload && reviser == nil {
		object = t.Share(s.replicas)
	}

	if s.completions >= 0 {
		setSpec(object, "completions", s.completions)
	}
	return object, nil
}

// sent is a rendered object without the fields that nobody set: neither its
// template, nor a division, nor an override. Who scales it in the cluster keeps it
// (decision 53). It shares with obj what it leaves as it is.
func sent(t *fleet.Template, s share, rules []*fleet.Rule, obj map[string]any) map[string]any {
	spec, ok := obj["spec"].(map[string]any)
	if !ok || !s.bare {
		return obj
	}

	spec = maps.Clone(spec)
	for _, field := range t.Unset {
		if !slices.ContainsFunc(rules, func(r *fleet.Rule) bool { return r.Writes("/spec/" + field) }) {
			delete(spec, field)
		}
	}

	obj = maps.Clone(obj)
	obj["spec"] = spec
	return obj
}

// setSpec writes over a field of the spec that is there.
func setSpec(object map[string]any, field string, value int64) {
	spec, _ := object["spec"].(map[string]any)
	if spec[field] == nil {
		return
	}

	spec = maps.Clone(spec)
	spec[field] = value
	object["spec"] = spec
}

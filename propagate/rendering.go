// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate/override"
)

// rendered is an object that some rules have made, or why they could not.
type rendered struct {
	object map[string]any
	err    error
}

// render is the template's content for one cluster: first what its share of
// replicas makes of it, then the cluster overrides, then those of its
// namespace, which edit what the former made and so prevail (digest
// §5.3, §5.5), without what nobody set. It returns the rules that were applied, and a key for them and
// the share.
func (r *rendering) render(t *fleet.Template, s share, cluster *fleet.Cluster) (obj map[string]any, key string, applied []*fleet.Rule, err error) {
	key = fmt.Sprint(s)
	at, ok := r.memo[key]
	if !ok {
		at.object, at.err = shared(t, s, r.reviser.Metered(&r.cost.scripted))
		if r.reviser != nil {
			r.keep(key, at)
		} else {
			r.memo[key] = at // most of it is the template's
		}
	}
	if at.err != nil {
		return nil, key, nil, at.err
	}

	for _, scope := range scopesOf(t) {
		rules := r.index.rulesFor(scope, t, at.object, cluster.Cluster)
		for _, rule := range rules {
			key += "\x00" + rule.Key()
			next, ok := r.memo[key]
			if !ok {
				next = applyRule(rule, at.object)
				r.keep(key, next)
			}
			if next.err != nil {
				return nil, key, nil, next.err
			}
			at = next
		}

		applied = append(applied, rules...)
	}

	return sent(t, s, applied, at.object), key, applied, nil
}

// keep keeps what a rule made for the next cluster that gets the same. With rules of
// their own for thousands of clusters, the objects would not fit into memory.
func (r *rendering) keep(key string, made rendered) {
	size := object.SizeOf(made.object)
	r.cost.rendered += size
	if r.kept += size; r.kept > maxKept {
		clear(r.memo)
		r.kept = size
	}
	r.memo[key] = made
}

// applyRule is the object after one rule.
func applyRule(r *fleet.Rule, obj map[string]any) rendered {
	next, err := override.Apply(obj, r.Overriders)
	if err == nil {
		err = object.SameIdentity(obj, next)
	}
	if err != nil {
		return rendered{err: fmt.Errorf("%s: %w", r.Where(), err)}
	}
	return rendered{object: next}
}

// sameRules reports whether two lists of rules do the same.
func sameRules(a, b []*fleet.Rule) bool {
	return slices.EqualFunc(a, b, func(x, y *fleet.Rule) bool { return x == y || x.Key() == y.Key() })
}

// scopesOf are the namespaces whose overrides edit a template, in their order.
func scopesOf(t *fleet.Template) []string {
	if t.Namespace == "" {
		return []string{""}
	}
	return []string{"", t.Namespace}
}

// rulesFor are the rules of one scope for the object as it stands when the
// scope is applied: the least specific first, then by name, so that the
// most specific one prevails.
func (ix *index) rulesFor(scope string, t *fleet.Template, object map[string]any, cluster *clusterv1alpha1.Cluster) []*fleet.Rule {
	type matched struct {
		*fleet.Override
		priority int
	}
	if ix.overrides.Len() == 0 {
		return nil
	}

	seen := *t
	seen.Labels = labelsOf(object)
	found := map[*fleet.Override]int{}
	for o := range ix.overridesFor(scope, t) {
		if m := o.Match(&seen); m > fleet.NoMatch {
			found[o] = m
		}
	}

	if len(found) == 0 {
		return nil
	}

	var all []matched
	for o, m := range found {
		all = append(all, matched{o, m})
	}

	slices.SortFunc(all, func(a, b matched) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.Ref.Name, b.Ref.Name))
	})

	var rules []*fleet.Rule
	for _, o := range all {
		for _, r := range o.Rules {
			if r.Clusters.Match(cluster) {
				rules = append(rules, r)
			}
		}
	}

	return rules
}

func labelsOf(object map[string]any) map[string]string {
	meta, _ := object["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	set := make(map[string]string, len(labels))
	for key, value := range labels {
		set[key], _ = value.(string)
	}
	return set
}

// override brings the index forward.
func (ix *index) override(before, after *fleet.Override) {
	if before != nil {
		for key := range overrideKeys(before) {
			ix.overrides = ix.overrides.Without(key)
		}
	}
	if after != nil {
		for key := range overrideKeys(after) {
			ix.overrides = ix.overrides.With(key, after)
		}
	}
}

// overrideKeys are where the index has an override: under each kind that it selects,
// or under none when it selects everything.
func overrideKeys(o *fleet.Override) iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(o.Selectors) == 0 {
			yield(join(o.Ref.Namespace, "", "", o.Ref.Key()))
			return
		}
		for _, s := range o.Selectors {
			if !yield(join(o.Ref.Namespace, s.APIVersion, s.Kind, o.Ref.Key())) {
				return
			}
		}
	}
}

// overridesFor yields the overrides of one scope that may match t.
func (ix *index) overridesFor(scope string, t *fleet.Template) iter.Seq[*fleet.Override] {
	return func(yield func(*fleet.Override) bool) {
		for o := range under(ix.overrides, scope, "", "") {
			if !yield(o) {
				return
			}
		}
		for o := range under(ix.overrides, scope, t.APIVersion, t.Kind) {
			if !yield(o) {
				return
			}
		}
	}
}

// touched yields the templates that an override may edit.
func (ix *index) touched(o *fleet.Override) iter.Seq[*fleet.Template] {
	return func(yield func(*fleet.Template) bool) {
		if len(o.Selectors) > 0 {
			for _, s := range o.Selectors {
				for t := range ix.selected(s) {
					if !yield(t) {
						return
					}
				}
			}
			return
		}
		for t := range ix.templates.Values() {
			if (o.Ref.Namespace == "" || o.Ref.Namespace == t.Namespace) && !yield(t) {
				return
			}
		}
	}
}

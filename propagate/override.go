// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/override"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Override is an OverridePolicy or ClusterOverridePolicy, defaulted and valid.
type Override struct {
	Ref    OverrideRef
	Spec   policyv1alpha1.OverrideSpec
	Origin Origin
	Lines  map[string]int

	selectors []selector // none matches everything
	rules     []*Rule
}

// OverrideRef names an override. Namespace is empty for a
// ClusterOverridePolicy.
type OverrideRef struct {
	Namespace, Name string
}

// Key is the ref as a map key: cluster overrides first, then by namespace.
func (r OverrideRef) Key() string { return r.Namespace + "/" + r.Name }

// Kind is the override's kind, which follows from its scope.
func (r OverrideRef) Kind() string {
	if r.Namespace == "" {
		return policyv1alpha1.KindClusterOverridePolicy
	}
	return policyv1alpha1.KindOverridePolicy
}

// String reads "OverridePolicy shop/web".
func (r OverrideRef) String() string {
	if r.Namespace == "" {
		return r.Kind() + " " + r.Name
	}
	return r.Kind() + " " + r.Namespace + "/" + r.Name
}

// Rule is one rule of an override: what it edits, and where.
type Rule struct {
	Override   OverrideRef
	Overriders *policyv1alpha1.Overriders
	Origin     Origin

	clusters *schedule.Affinity // nil is every cluster
	digest   Digest
}

// NewOverride defaults and validates an override (digest §1.3). lines are as
// for NewPolicy.
func NewOverride(kind string, meta metav1.ObjectMeta, spec policyv1alpha1.OverrideSpec, origin Origin, lines map[string]int) (*Override, []Problem) {
	c := &check{origin: origin, lines: lines}
	o := &Override{Ref: OverrideRef{meta.Namespace, meta.Name}, Spec: *spec.DeepCopy(), Origin: origin, Lines: lines}
	switch {
	case kind == policyv1alpha1.KindClusterOverridePolicy:
		o.Ref.Namespace = ""
	case meta.Namespace == "":
		o.Ref.Namespace = metav1.NamespaceDefault
	}
	if meta.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", kind)
	}
	for i := range o.Spec.ResourceSelectors {
		r := &o.Spec.ResourceSelectors[i]
		if r.Namespace == "" {
			r.Namespace = o.Ref.Namespace
		}
		o.selectors = append(o.selectors, checkSelector(c, fmt.Sprintf("spec.resourceSelectors[%d]", i), *r, o.Ref.Namespace))
	}
	if len(o.Spec.OverrideRules) > 0 && (o.Spec.TargetCluster != nil || !isEmpty(&o.Spec.Overriders)) {
		c.at("spec.overrideRules", "spec.overrideRules cannot stand beside the deprecated spec.targetCluster and spec.overriders")
	}
	for i := range o.Spec.OverrideRules {
		r := &o.Spec.OverrideRules[i]
		o.rule(c, fmt.Sprintf("spec.overrideRules[%d]", i), r.TargetCluster, &r.Overriders)
	}
	if len(o.Spec.OverrideRules) == 0 && !isEmpty(&o.Spec.Overriders) {
		o.rule(c, "spec", o.Spec.TargetCluster, &o.Spec.Overriders)
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return o, nil
}

func (o *Override) rule(c *check, path string, target *policyv1alpha1.ClusterAffinity, overriders *policyv1alpha1.Overriders) {
	checkAffinity(c, path+".targetCluster", target)
	checkOverriders(c, path+".overriders", overriders)
	o.rules = append(o.rules, &Rule{
		Override:   o.Ref,
		Overriders: overriders,
		Origin:     Origin{o.Origin.File, c.line(path)},
		clusters:   schedule.NewAffinity(target),
		digest:     digestJSON(overriders),
	})
}

func isEmpty(o *policyv1alpha1.Overriders) bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+
		len(o.LabelsOverrider)+len(o.AnnotationsOverrider)+len(o.FieldOverrider) == 0
}

func checkOverriders(c *check, path string, o *policyv1alpha1.Overriders) {
	for i, p := range o.Plaintext {
		at := fmt.Sprintf("%s.plaintext[%d]", path, i)
		checkOperator(c, at, p.Operator)
		checkPointer(c, at+".path", p.Path)
	}
	for i, p := range o.ImageOverrider {
		at := fmt.Sprintf("%s.imageOverrider[%d]", path, i)
		checkOperator(c, at, p.Operator)
		oneOf(c, at+".component", p.Component, policyv1alpha1.ImageRegistry, policyv1alpha1.ImageRepository, policyv1alpha1.ImageTag)
		if p.Predicate != nil {
			checkPointer(c, at+".predicate.path", p.Predicate.Path)
		}
	}
	for field, list := range map[string][]policyv1alpha1.CommandArgsOverrider{"commandOverrider": o.CommandOverrider, "argsOverrider": o.ArgsOverrider} {
		for i, p := range list {
			at := fmt.Sprintf("%s.%s[%d]", path, field, i)
			oneOf(c, at+".operator", p.Operator, policyv1alpha1.OverriderAdd, policyv1alpha1.OverriderRemove)
			if p.ContainerName == "" {
				c.at(at, "%s.containerName is required", at)
			}
		}
	}
	checkPairs(c, path+".labelsOverrider", o.LabelsOverrider, validation.IsValidLabelValue)
	checkPairs(c, path+".annotationsOverrider", o.AnnotationsOverrider, func(string) []string { return nil })
	for i := range o.FieldOverrider {
		checkFieldOverrider(c, fmt.Sprintf("%s.fieldOverrider[%d]", path, i), &o.FieldOverrider[i])
	}
}

func checkPairs(c *check, path string, list []policyv1alpha1.LabelAnnotationOverrider, value func(string) []string) {
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		checkOperator(c, at, p.Operator)
		for key, v := range p.Value {
			for _, msg := range append(validation.IsQualifiedName(key), value(v)...) {
				c.at(at+".value."+key, "%s.value %q: %s", at, key, msg)
			}
		}
	}
}

func checkFieldOverrider(c *check, path string, f *policyv1alpha1.FieldOverrider) {
	checkPointer(c, path+".fieldPath", f.FieldPath)
	if (len(f.JSON) == 0) == (len(f.YAML) == 0) {
		c.at(path, "%s must have either json or yaml", path)
	}
	check := func(at, subPath string, op policyv1alpha1.OverriderOperator, hasValue bool) {
		checkOperator(c, at, op)
		checkPointer(c, at+".subPath", subPath)
		switch {
		case op == policyv1alpha1.OverriderRemove && hasValue:
			c.at(at+".value", "%s: remove takes no value", at)
		case op != policyv1alpha1.OverriderRemove && !hasValue:
			c.at(at, "%s: %s needs a value", at, op)
		}
	}
	for i, p := range f.JSON {
		check(fmt.Sprintf("%s.json[%d]", path, i), p.SubPath, p.Operator, len(p.Value.Raw) > 0)
	}
	for i, p := range f.YAML {
		check(fmt.Sprintf("%s.yaml[%d]", path, i), p.SubPath, p.Operator, len(p.Value.Raw) > 0)
	}
}

func checkOperator(c *check, path string, op policyv1alpha1.OverriderOperator) {
	oneOf(c, path+".operator", op, policyv1alpha1.OverriderAdd, policyv1alpha1.OverriderRemove, policyv1alpha1.OverriderReplace)
}

func checkPointer(c *check, path, pointer string) {
	if !strings.HasPrefix(pointer, "/") {
		c.at(path, "%s is %q, must be a JSON pointer such as \"/spec/replicas\"", path, pointer)
	}
}

// match is the override's implicit priority for a template: no selectors
// count as one that matches everything.
func (o *Override) match(t *Template) int {
	if len(o.selectors) == 0 {
		return matchedAll
	}
	best := missed
	for i := range o.selectors {
		best = max(best, o.selectors[i].match(t))
	}
	return best
}

// rendered is an object that some rules have made, or why they could not.
type rendered struct {
	object map[string]any
	err    error
}

// render is the template's content for one cluster: first what its share of
// replicas makes of it, then the cluster overrides, then those of its
// namespace, which see what the former did and so have the last word (digest
// §5.3, §5.5). It returns the rules that were applied, and under which key the
// memo has the object.
func (r *rendering) render(t *Template, s share, cluster *Cluster) (key string, applied []*Rule, err error) {
	key = fmt.Sprint(s)
	at, ok := r.memo[key]
	if !ok {
		at.object, at.err = shared(t, s, r.reviser)
		r.memo[key] = at
	}
	if at.err != nil {
		return key, nil, at.err
	}
	for _, scope := range scopesOf(t) {
		rules := r.index.rulesFor(scope, t, at.object, cluster.Cluster)
		for _, rule := range rules {
			key += "\x00" + rule.id()
			next, ok := r.memo[key]
			if !ok {
				next = rule.apply(at.object)
				r.memo[key] = next
			}
			if next.err != nil {
				return key, nil, next.err
			}
			at = next
		}
		applied = append(applied, rules...)
	}
	return key, applied, nil
}

// apply is the object after one rule.
func (r *Rule) apply(object map[string]any) rendered {
	next, err := override.Apply(object, r.Overriders)
	if err == nil {
		err = sameIdentity(object, next)
	}
	if err != nil {
		return rendered{err: fmt.Errorf("%s: %w", r.where(), err)}
	}
	return rendered{object: next}
}

// where names the rule and its place.
func (r *Rule) where() string { return fmt.Sprintf("%s (%s)", r.Override, r.Origin) }

// id tells rules apart by what they do and whose they are.
func (r *Rule) id() string { return r.Override.Key() + "\x00" + string(r.digest[:]) }

// sameRules is whether two lists of rules do the same.
func sameRules(a, b []*Rule) bool {
	return slices.EqualFunc(a, b, func(x, y *Rule) bool { return x == y || x.id() == y.id() })
}

// scopesOf are the namespaces whose overrides see a template, in their order.
func scopesOf(t *Template) []string {
	if t.Namespace == "" {
		return []string{""}
	}
	return []string{"", t.Namespace}
}

// rulesFor are the rules of one scope for the object as it stands when the
// scope has its turn: the least specific first, then by name, so that the
// last word is the most specific one's.
func (ix *index) rulesFor(scope string, t *Template, object map[string]any, cluster *clusterv1alpha1.Cluster) []*Rule {
	type matched struct {
		*Override
		priority int
	}
	if ix.overrides.Len() == 0 {
		return nil
	}
	seen := *t
	seen.Labels = labelsOf(object)
	found := map[*Override]int{}
	for o := range ix.overridesFor(scope, t) {
		if m := o.match(&seen); m > missed {
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
	var rules []*Rule
	for _, o := range all {
		for _, r := range o.rules {
			if r.clusters.Match(cluster) {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// sameIdentity refuses an override that would make another object (T42).
func sameIdentity(before, after map[string]any) error {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if was, is := textAt(before, path), textAt(after, path); was != is {
			return fmt.Errorf("it makes another object: %s %q becomes %q", strings.Join(path, "."), was, is)
		}
	}
	return nil
}

func textAt(object map[string]any, path []string) string {
	for _, field := range path[:len(path)-1] {
		object, _ = object[field].(map[string]any)
	}
	text, _ := object[path[len(path)-1]].(string)
	return text
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
func (ix *index) override(before, after *Override) {
	if before != nil {
		for key := range before.keys() {
			ix.overrides = ix.overrides.Without(key)
		}
	}
	if after != nil {
		for key := range after.keys() {
			ix.overrides = ix.overrides.With(key, after)
		}
	}
}

// keys are where the index has an override: under each kind that it selects,
// or under none when it selects everything.
func (o *Override) keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(o.selectors) == 0 {
			yield(join(o.Ref.Namespace, "", "", o.Ref.Key()))
			return
		}
		for _, s := range o.selectors {
			if !yield(join(o.Ref.Namespace, s.APIVersion, s.Kind, o.Ref.Key())) {
				return
			}
		}
	}
}

// overridesFor yields the overrides of one scope that may match t.
func (ix *index) overridesFor(scope string, t *Template) iter.Seq[*Override] {
	return func(yield func(*Override) bool) {
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
func (ix *index) touched(o *Override) iter.Seq[*Template] {
	return func(yield func(*Template) bool) {
		if len(o.selectors) > 0 {
			for _, s := range o.selectors {
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

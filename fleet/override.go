// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/schedule"
)

// Override is an OverridePolicy or ClusterOverridePolicy, defaulted and valid.
type Override struct {
	Ref    OverrideRef
	Spec   policyv1alpha1.OverrideSpec
	Origin Origin
	Lines  map[string]int

	Selectors []Selector // an override without any matches everything
	Rules     []*Rule
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
		return printable.Line(r.Kind() + " " + r.Name)
	}
	return printable.Line(r.Kind() + " " + r.Namespace + "/" + r.Name)
}

// Rule is one rule of an override: what it edits, and on which clusters.
type Rule struct {
	Override   OverrideRef
	Overriders *policyv1alpha1.Overriders
	Origin     Origin

	Clusters *schedule.Affinity // nil means every cluster
	digest   object.Digest
}

// Writes reports whether the rule writes to a field of the object, given as a JSON
// pointer, or to what the field is in.
func (r *Rule) Writes(pointer string) bool {
	return slices.ContainsFunc(r.Overriders.Plaintext, func(o policyv1alpha1.PlaintextOverrider) bool {
		return pointer == o.Path || strings.HasPrefix(pointer, o.Path+"/")
	})
}

// NewOverride defaults and validates an override (digest §1.3). lines is as in
// NewPolicy.
func NewOverride(kind string, meta metav1.ObjectMeta, spec policyv1alpha1.OverrideSpec, origin Origin, lines map[string]int) (*Override, []Problem) {
	doc := &policyv1alpha1.OverridePolicy{ObjectMeta: meta, Spec: *spec.DeepCopy()}
	doc.Kind = kind
	return build(overrides{}, doc, &check{origin: origin, lines: lines})
}

// overrides are the kinds OverridePolicy and ClusterOverridePolicy, which have
// the same shape.
type overrides struct{}

func (overrides) Names() Names {
	return Names{policyv1alpha1.GroupVersion, []string{policyv1alpha1.KindOverridePolicy, policyv1alpha1.KindClusterOverridePolicy}}
}

func (overrides) ID(o *Override) object.ID  { return o.Ref.ID() }
func (overrides) Key(o *Override) string    { return o.Ref.Key() }
func (overrides) Origin(o *Override) Origin { return o.Origin }
func (overrides) Equal(a, b *Override) bool { return reflect.DeepEqual(a, b) }

// Same implements told.
func (overrides) Same(a, b *Override) bool { return reflect.DeepEqual(a.Spec, b.Spec) }

func (overrides) Load(s *Snapshot) ordered.Map[*Override]       { return s.Overrides }
func (overrides) Store(s *Snapshot, all ordered.Map[*Override]) { s.Overrides = all }

func (overrides) Default(doc *policyv1alpha1.OverridePolicy, _ *check) {
	doc.Namespace = ownNamespace(doc.Kind, doc.Namespace)
	for i := range doc.Spec.ResourceSelectors {
		if r := &doc.Spec.ResourceSelectors[i]; r.Namespace == "" {
			r.Namespace = doc.Namespace
		}
	}
}

func (overrides) Validate(doc *policyv1alpha1.OverridePolicy, c *check) *Override {
	o := &Override{Ref: OverrideRef{doc.Namespace, doc.Name}, Spec: doc.Spec, Origin: c.origin, Lines: c.lines}
	if doc.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", doc.Kind)
	}

	for i, r := range o.Spec.ResourceSelectors {
		o.Selectors = append(o.Selectors, checkSelector(c, fmt.Sprintf("spec.resourceSelectors[%d]", i), r, o.Ref.Namespace))
	}

	if len(o.Spec.OverrideRules) > 0 && (o.Spec.TargetCluster != nil || !isEmpty(&o.Spec.Overriders)) {
		c.at("spec.overrideRules", "spec.overrideRules cannot be combined with the deprecated spec.targetCluster and spec.overriders")
	}

	for i := range o.Spec.OverrideRules {
		r := &o.Spec.OverrideRules[i]
		o.rule(c, fmt.Sprintf("spec.overrideRules[%d]", i), r.TargetCluster, &r.Overriders)
	}

	if len(o.Spec.OverrideRules) == 0 && !isEmpty(&o.Spec.Overriders) {
		o.rule(c, "spec", o.Spec.TargetCluster, &o.Spec.Overriders)
	}

	return o
}

func (o *Override) rule(c *check, path string, target *policyv1alpha1.ClusterAffinity, overriders *policyv1alpha1.Overriders) {
	checkAffinity(c, path+".targetCluster", target)
	checkOverriders(c, path+".overriders", overriders)
	o.Rules = append(o.Rules, &Rule{
		Override:   o.Ref,
		Overriders: overriders,
		Origin:     Origin{o.Origin.File, c.line(path)},
		Clusters:   schedule.NewAffinity(target),
		digest:     object.DigestJSON(overriders),
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
		c.at(path, "%s must set either json or yaml", path)
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

// Match is the override's implicit priority for a template. An override without
// selectors counts as one that matches everything.
func (o *Override) Match(t *Template) int {
	if len(o.Selectors) == 0 {
		return MatchAll
	}
	best := NoMatch
	for i := range o.Selectors {
		best = max(best, o.Selectors[i].match(t))
	}
	return best
}

// Where names the rule and its position.
func (r *Rule) Where() string { return fmt.Sprintf("%s (%s)", r.Override, r.Origin) }

// Digest covers what the rule does, and where.
func (r *Rule) Digest() object.Digest { return r.digest }

// Key identifies a rule by its override and its content.
func (r *Rule) Key() string { return r.Override.Key() + "\x00" + string(r.digest[:]) }

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/fairlead/fairlead/api/config/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// Interpreter is a ResourceInterpreterCustomization: scripts for one kind. A
// script replaces the built-in rule of the kind.
type Interpreter struct {
	Name             string
	APIVersion, Kind string // of its target
	Origin           Origin
	// Digest covers the target and the scripts.
	Digest object.Digest

	Scripts map[string]*Script // by the function they define
	idle    []idleScript
}

// idleScript is a script that compiles but is never called.
type idleScript struct {
	field, why string
	origin     Origin
}

// Script is one function of an interpreter.
type Script struct {
	interpret.Interpreter
	from   string // names the document
	Origin Origin
	digest object.Digest
}

// NewInterpreter compiles the scripts of a customization. lines is as in
// NewPolicy.
func NewInterpreter(doc *configv1alpha1.ResourceInterpreterCustomization, origin Origin, lines map[string]int) (*Interpreter, []Problem) {
	return build(interpreters{}, doc, &check{origin: origin, lines: lines})
}

// interpreters is the kind ResourceInterpreterCustomization.
type interpreters struct{}

func (interpreters) Names() Names {
	return Names{configv1alpha1.GroupVersion, []string{configv1alpha1.KindResourceInterpreterCustomization}}
}

func (interpreters) ID(in *Interpreter) object.ID {
	return object.ID{Group: configv1alpha1.GroupVersion.Group, Kind: configv1alpha1.KindResourceInterpreterCustomization, Name: in.Name}
}

func (interpreters) Key(in *Interpreter) string    { return in.Name }
func (interpreters) Origin(in *Interpreter) Origin { return in.Origin }

// Equal does not compare the compiled scripts: the digest covers them.
func (interpreters) Equal(a, b *Interpreter) bool {
	return a == b || a.Digest == b.Digest && a.Name == b.Name && a.Origin == b.Origin
}

func (interpreters) Load(s *Snapshot) ordered.Map[*Interpreter]       { return s.Interpreters }
func (interpreters) Store(s *Snapshot, all ordered.Map[*Interpreter]) { s.Interpreters = all }

// Compare refuses two interpreters for the same function of a kind.
func (interpreters) Compare(all ordered.Map[*Interpreter], clash clash) {
	first := map[string]*Interpreter{}
	for in := range all.Values() {
		for answer := range in.Answers() {
			if other := first[answer]; other != nil {
				clash(answer+" (by "+other.Name+" and "+in.Name+")", other.Origin, in.Origin)
			} else {
				first[answer] = in
			}
		}
	}
}

func (interpreters) Default(*configv1alpha1.ResourceInterpreterCustomization, *check) {}

func (interpreters) Validate(doc *configv1alpha1.ResourceInterpreterCustomization, c *check) *Interpreter {
	target := doc.Spec.Target
	in := &Interpreter{Name: doc.Name, APIVersion: target.APIVersion, Kind: target.Kind, Origin: c.origin, Digest: object.DigestJSON(doc.Spec), Scripts: map[string]*Script{}}

	if doc.Name == "" {
		c.at("metadata.name", "%s has no metadata.name", configv1alpha1.KindResourceInterpreterCustomization)
	}
	if target.APIVersion == "" || target.Kind == "" {
		c.at("spec.target", "spec.target.apiVersion and spec.target.kind are required")
	}

	in.compile(c, &doc.Spec.Customizations)
	if len(in.Scripts) == 0 && len(c.problems) == 0 {
		c.at("spec.customizations", "spec.customizations needs at least one script")
	}

	return in
}

// compile compiles the scripts. Those without effect are compiled too, so that
// their mistakes are found.
func (in *Interpreter) compile(c *check, rules *configv1alpha1.CustomizationRules) {
	const at = "spec.customizations."
	for _, r := range []struct {
		field, function string
		script          *configv1alpha1.Script
		idle            *idleScript // why it is never called; nil if it is
	}{
		{"replicaResource", interpret.GetReplicas, rules.ReplicaResource, nil},
		{"replicaRevision", interpret.ReviseReplica, rules.ReplicaRevision, nil},
		{"dependencyInterpretation", interpret.GetDependencies, rules.DependencyInterpretation, nil},
		{"healthInterpretation", interpret.InterpretHealth, rules.HealthInterpretation, nil},
		{"statusReflection", interpret.ReflectStatus, rules.StatusReflection, nil},
		{"statusAggregation", interpret.AggregateStatus, rules.StatusAggregation, nil},
		{"retention", interpret.Retain, rules.Retention, &idleScript{why: "server-side apply keeps fields that the template does not set"}},
		{"componentResource", interpret.GetComponents, rules.ComponentResource, &idleScript{why: "it needs Karmada's feature gate MultiplePodTemplatesScheduling, which fairlead does not have"}},
	} {
		if r.script == nil {
			continue
		}

		compiled, err := interpret.Compile(r.function, r.script.LuaScript, pods)
		if err != nil {
			c.at(at+r.field+".luaScript", "%s%s: %v", at, r.field, err)
			continue
		}

		in.Scripts[r.function] = &Script{
			Interpreter: compiled,
			from:        fmt.Sprintf("%s %s", configv1alpha1.KindResourceInterpreterCustomization, in.Name),
			Origin:      Origin{c.origin.File, c.line(at + r.field)},
			digest:      object.DigestJSON(r.script),
		}

		if r.idle != nil {
			r.idle.field, r.idle.origin = at+r.field, in.Scripts[r.function].Origin
			in.idle = append(in.idle, *r.idle)
		}
	}
}

// IdleScripts returns a finding for each script that is never called.
func (in *Interpreter) IdleScripts() (found []Finding) {
	id := interpreters{}.ID(in)
	for _, script := range in.idle {
		found = append(found, Finding{Code: FindingNoEffect, Severity: SeverityNotice, Object: id, Origin: script.origin,
			Message: fmt.Sprintf("%s: %s has no effect: %s", id, script.field, script.why)})
	}
	return found
}

// pods are the built-in rules for pods that a script of a custom kind can call.
var pods = interpret.Native{
	Requirements: func(podTemplate map[string]any) *workv1alpha2.ReplicaRequirements {
		return requirements(podTemplate, []string{"spec"})
	},
	Dependencies: func(podTemplate map[string]any, namespace string) []interpret.Reference {
		t := &Template{ID: object.ID{Kind: pod.Kind, Namespace: namespace}, manifest: &manifest{object: podTemplate}}
		var all []interpret.Reference
		for _, id := range Dependencies(t) {
			all = append(all, interpret.Reference{APIVersion: "v1", Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		}
		return all
	},
}

// Answers yields the functions that the interpreter implements, each under a
// name that only one interpreter may have.
func (in *Interpreter) Answers() iter.Seq[string] {
	return func(yield func(string) bool) {
		for function := range in.Scripts {
			if !yield(fmt.Sprintf("%s of %s %s", function, in.APIVersion, in.Kind)) {
				return
			}
		}
	}
}

// Builtin reports whether the interpreter is for a kind that Kubernetes serves, or
// that has rules without it.
func (in *Interpreter) Builtin() bool {
	gv, err := schema.ParseGroupVersion(in.APIVersion)
	if err != nil {
		return false
	}
	_, served := object.BuiltinScope(gv.Group, in.Kind)
	return served || interpret.KindRequires(schema.GroupKind{Group: gv.Group, Kind: in.Kind})
}

// Wrap prefixes an error with the document and the line of the script. It
// returns err unchanged if err or s is nil.
func (s *Script) Wrap(err error) error {
	if err == nil || s == nil {
		return err
	}
	return fmt.Errorf("%s (%s): %w", s.from, s.Origin, err)
}

// Metered returns the script with the steps that it takes added to spent; nil for nil.
func (s *Script) Metered(spent *int) *Script {
	if s == nil {
		return nil
	}
	metered := *s
	if engine, ok := s.Interpreter.(*interpret.Script); ok {
		metered.Interpreter = engine.Metered(spent)
	}
	return &metered
}

// Digest covers the script's content, its document and its line; zero for nil.
func (s *Script) Digest() object.Digest {
	if s == nil {
		return object.Digest{}
	}
	return object.DigestJSON(s.from + s.Origin.String() + s.digest.String())
}

// Revised returns the template with a cluster's share of its replicas, as
// computed by the script. The script must not change the object's identity.
func (s *Script) Revised(t *Template, replicas int64) (map[string]any, error) {
	obj, err := s.Revise(t.Object(), replicas)
	if err == nil {
		err = object.SameIdentity(t.Object(), obj)
	}
	if err != nil {
		return nil, fmt.Errorf("%s (%s): %s", s.from, s.Origin, strings.TrimSpace(err.Error()))
	}
	return obj, nil
}

// Engine returns the compiled script; nil for a nil Script.
func (s *Script) Engine() interpret.Interpreter {
	if s == nil {
		return nil
	}
	return s.Interpreter
}

// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Interpreter answers questions about objects of one kind. It never modifies
// the object. An error names the function and the line, and does not quote the
// object, which may be a Secret.
type Interpreter interface {
	// Replicas is the desired number of replicas, and what one of them needs; nil
	// if nothing.
	Replicas(object map[string]any) (int64, *workv1alpha2.ReplicaRequirements, error)
	// Revise returns the object with another number of replicas.
	Revise(object map[string]any, replicas int64) (map[string]any, error)
	// Dependencies are the objects that this one needs.
	Dependencies(object map[string]any) ([]Reference, error)
	// Healthy reports whether an observed object works.
	Healthy(object map[string]any) (bool, error)
	// Reflect is the part of an observed object's status to report.
	Reflect(object map[string]any) (map[string]any, error)
	// Aggregate is a template's status, computed from those of its copies.
	Aggregate(template map[string]any, items []Observed) (map[string]any, error)
	// Retain returns the desired object with the fields to keep from the observed
	// one.
	Retain(desired, observed map[string]any) (map[string]any, error)
}

// Reference names an object, or all objects of a kind with certain labels.
type Reference struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace,omitempty"`
	Name          string                `json:"name,omitempty"`
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// The functions that scripts can define.
const (
	GetReplicas     = "GetReplicas"
	ReviseReplica   = "ReviseReplica"
	GetDependencies = "GetDependencies"
	InterpretHealth = "InterpretHealth"
	ReflectStatus   = "ReflectStatus"
	AggregateStatus = "AggregateStatus"
	Retain          = "Retain"
	GetComponents   = "GetComponents"
)

// Native are the built-in rules for pods, which the kube library offers to
// scripts.
type Native struct {
	Requirements func(podTemplate map[string]any) *workv1alpha2.ReplicaRequirements
	Dependencies func(podTemplate map[string]any, namespace string) []Reference
}

// Script is an Interpreter in Lua for the one function it was compiled for. It
// is immutable and safe for concurrent use.
type Script struct {
	function string
	proto    *lua.FunctionProto
	literals map[string]bool
	native   Native
	spent    *int // steps of its calls; nil where nobody counts
}

// Metered returns the script with its steps added to spent, which only one goroutine
// may use.
func (s *Script) Metered(spent *int) *Script {
	metered := *s
	metered.spent = spent
	return &metered
}

var _ Interpreter = (*Script)(nil)

// Compile compiles a script and checks that it defines function.
func Compile(function, source string, native Native) (*Script, error) {
	proto, literals, err := compile(function, source)
	if err != nil {
		return nil, err
	}

	s := &Script{function: function, proto: proto, literals: literals, native: native}
	// Its top-level code must run, too.
	if _, err := s.call(func(*run) []lua.LValue { return nil }, 0); err != nil {
		return nil, err
	}

	return s, nil
}

// Replicas calls GetReplicas(obj).
func (s *Script) Replicas(object map[string]any) (int64, *workv1alpha2.ReplicaRequirements, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.argument(object)} }, 2)
	if err != nil {
		return 0, nil, err
	}

	n, ok := r.results[0].(lua.LNumber)
	if !ok || n < 0 || n > maxReplicas || n != lua.LNumber(int64(n)) {
		return 0, nil, s.error("the first result is not a valid number of replicas")
	}

	if r.results[1] == lua.LNil {
		return int64(n), nil, nil
	}

	needs := &workv1alpha2.ReplicaRequirements{}
	if err := r.decode(r.results[1], needs, "resourceRequest"); err != nil {
		return 0, nil, s.error("the second result is not a valid replica requirement")
	}

	return int64(n), needs, nil
}

const maxReplicas = 1<<31 - 1

// Revise calls ReviseReplica(obj, desiredReplica). Values that the script
// leaves alone are kept as they are: Lua has only one kind of number, and no
// null.
func (s *Script) Revise(object map[string]any, replicas int64) (map[string]any, error) {
	return s.object(object, func(r *run) []lua.LValue { return []lua.LValue{r.argument(object), lua.LNumber(replicas)} })
}

// Dependencies calls GetDependencies(obj).
func (s *Script) Dependencies(object map[string]any) ([]Reference, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.argument(object)} }, 1)
	if err != nil || r.results[0] == lua.LNil {
		return nil, err
	}

	var all []Reference
	if err := r.decode(r.results[0], &all, ""); err != nil {
		return nil, s.error("the result is not a list of references")
	}

	for i, ref := range all {
		switch {
		case ref.APIVersion == "" || ref.Kind == "":
			return nil, s.error("reference %d has no apiVersion or kind", i+1)
		case (ref.Name == "") == (ref.LabelSelector == nil):
			return nil, s.error("reference %d needs either name or labelSelector", i+1)
		case ref.LabelSelector != nil:
			if _, err := metav1.LabelSelectorAsSelector(ref.LabelSelector); err != nil {
				return nil, s.error("reference %d has an invalid labelSelector", i+1)
			}
		}
	}

	return all, nil
}

// Healthy calls InterpretHealth(observedObj).
func (s *Script) Healthy(object map[string]any) (bool, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.argument(object)} }, 1)
	if err != nil {
		return false, err
	}

	healthy, ok := r.results[0].(lua.LBool)
	if !ok {
		return false, s.error("the result is not a boolean")
	}

	return bool(healthy), nil
}

// Reflect calls ReflectStatus(observedObj).
func (s *Script) Reflect(object map[string]any) (map[string]any, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.argument(object)} }, 1)
	if err != nil || r.results[0] == lua.LNil {
		return nil, err
	}
	was, _ := object["status"].(map[string]any)
	status, err := r.object(was)
	maps.DeleteFunc(status, func(_ string, value any) bool { return value == nil }) // nulls that the script dropped
	return status, err
}

// Aggregate calls AggregateStatus(desiredObj, statusItems). Only the status of
// the returned object is used.
func (s *Script) Aggregate(template map[string]any, items []Observed) (map[string]any, error) {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item.plain()
	}

	o, err := s.object(template, func(r *run) []lua.LValue { return []lua.LValue{r.argument(template), r.toLua(list)} })
	if err != nil {
		return nil, err
	}

	status, ok := o["status"].(map[string]any)
	if !ok && o["status"] != nil {
		return nil, s.error("the status is not an object")
	}

	return status, nil
}

// Retain calls Retain(desiredObj, observedObj).
func (s *Script) Retain(desired, observed map[string]any) (map[string]any, error) {
	return s.object(desired, func(r *run) []lua.LValue { return []lua.LValue{r.argument(desired), r.argument(observed)} })
}

// object calls a function that returns an object. Unchanged values are kept as
// they are.
func (s *Script) object(was map[string]any, args func(*run) []lua.LValue) (map[string]any, error) {
	r, err := s.call(args, 1)
	if err != nil {
		return nil, err
	}
	return r.object(was)
}

func (r *run) object(was map[string]any) (map[string]any, error) {
	v, err := r.fromLua(r.results[0], was)
	if err != nil {
		return nil, r.script.error("the result is not a valid object: %v", err)
	}

	if list, ok := v.([]any); ok && len(list) == 0 {
		return map[string]any{}, nil // an empty table
	}

	o, ok := v.(map[string]any)
	if !ok {
		return nil, r.script.error("the result is not an object")
	}

	return o, nil
}

func (s *Script) error(format string, args ...any) error {
	return fmt.Errorf(s.function+": "+format, args...)
}

// decode decodes a script's result into one of our types. quantities is the
// field with amounts of resources.
func (r *run) decode(v lua.LValue, into any, quantities string) error {
	value, err := r.fromLua(v, nil)
	if err != nil {
		return err
	}

	if m, ok := value.(map[string]any); ok {
		amounts, _ := m[quantities].(map[string]any)
		for _, amount := range amounts {
			if text, ok := amount.(string); ok && !IsQuantity(text) {
				return errors.New("contains a value that is not a usable quantity")
			}
		}
	}

	if list, ok := value.([]any); ok && len(list) == 0 {
		return nil // an empty table can be an empty list or map
	}

	text, err := json.Marshal(value)
	if err != nil {
		return errors.New("not valid JSON")
	}

	return json.Unmarshal(text, into)
}

// call runs the script in a state of its own, then calls its function unless
// args returns nil.
func (s *Script) call(args func(*run) []lua.LValue, results int) (r *run, err error) {
	r = newRun(s)
	defer r.l.Close()
	if s.spent != nil {
		defer func() { *s.spent += r.steps }()
	}

	defer func() {
		if v := recover(); v != nil {
			// A bug of the engine is reported as the script's error.
			err = s.error("the script crashed the Lua engine")
		}
	}()

	chunk := r.l.NewFunctionFromProto(s.proto)
	if err := r.l.CallByParam(lua.P{Fn: chunk, Protect: true}, r.hidden()...); err != nil {
		return r, r.explain(err)
	}

	fn, ok := r.l.GetGlobal(s.function).(*lua.LFunction)
	if !ok {
		return r, s.error("the script does not define this function")
	}

	if results == 0 {
		return r, nil
	}

	values := args(r)
	if r.stopped != "" {
		return r, s.error("%s", r.stopped)
	}
	if err := r.l.CallByParam(lua.P{Fn: fn, NRet: results, Protect: true}, values...); err != nil {
		return r, r.explain(err)
	}
	if r.stopped != "" {
		return r, s.error("%s", r.stopped) // and the script caught that error
	}

	for i := range results {
		r.results = append(r.results, r.l.Get(i-results))
	}

	return r, nil
}

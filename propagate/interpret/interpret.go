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

// Interpreter answers what has to be known about an object of one kind. It
// never alters the object. An error names the function and the line, and does
// not quote the object, which may be a secret.
type Interpreter interface {
	// Replicas is how many there are to be and what one of them needs, nil
	// when that is nothing.
	Replicas(object map[string]any) (int64, *workv1alpha2.ReplicaRequirements, error)
	// Revise is the object with another number of replicas.
	Revise(object map[string]any, replicas int64) (map[string]any, error)
	// Dependencies are what the object needs beside it.
	Dependencies(object map[string]any) ([]Reference, error)
	// Healthy is whether an observed object does what it is for.
	Healthy(object map[string]any) (bool, error)
	// Reflect is what is to be known of an observed object's status.
	Reflect(object map[string]any) (map[string]any, error)
	// Aggregate is the status of a template, from what its copies have.
	Aggregate(template map[string]any, items []Observed) (map[string]any, error)
	// Retain is the object that is desired, with what the one that is observed
	// is to keep.
	Retain(desired, observed map[string]any) (map[string]any, error)
}

// Reference names an object, or all of a kind that bear some labels.
type Reference struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace,omitempty"`
	Name          string                `json:"name,omitempty"`
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// The functions that scripts define.
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

// Native is what the kube library offers to scripts: the rules for pods that
// hold for the kinds of Kubernetes.
type Native struct {
	Requirements func(podTemplate map[string]any) *workv1alpha2.ReplicaRequirements
	Dependencies func(podTemplate map[string]any, namespace string) []Reference
}

// Script is an Interpreter in Lua. It answers for the one function it was
// compiled for. It is not altered, so any number may run it at once.
type Script struct {
	function string
	proto    *lua.FunctionProto
	literals map[string]bool
	native   Native
}

var _ Interpreter = (*Script)(nil)

// Compile reads a script that defines a function.
func Compile(function, source string, native Native) (*Script, error) {
	proto, literals, err := compile(function, source)
	if err != nil {
		return nil, err
	}
	s := &Script{function: function, proto: proto, literals: literals, native: native}
	// What it does before anything is asked must work too.
	if _, err := s.call(func(*run) []lua.LValue { return nil }, 0); err != nil {
		return nil, err
	}
	return s, nil
}

// Replicas asks GetReplicas(obj).
func (s *Script) Replicas(object map[string]any) (int64, *workv1alpha2.ReplicaRequirements, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.toLua(object)} }, 2)
	if err != nil {
		return 0, nil, err
	}
	n, ok := r.results[0].(lua.LNumber)
	if !ok || n < 0 || n > maxReplicas || n != lua.LNumber(int64(n)) {
		return 0, nil, s.error("the first result is no number of replicas")
	}
	if r.results[1] == lua.LNil {
		return int64(n), nil, nil
	}
	needs := &workv1alpha2.ReplicaRequirements{}
	if err := r.decode(r.results[1], needs, "resourceRequest"); err != nil {
		return 0, nil, s.error("the second result is no replica requirement")
	}
	return int64(n), needs, nil
}

const maxReplicas = 1<<31 - 1

// Revise asks ReviseReplica(obj, desiredReplica). What the script leaves as
// it was keeps its very value: Lua has one kind of number, and no null.
func (s *Script) Revise(object map[string]any, replicas int64) (map[string]any, error) {
	return s.object(object, func(r *run) []lua.LValue { return []lua.LValue{r.toLua(object), lua.LNumber(replicas)} })
}

// Dependencies asks GetDependencies(obj).
func (s *Script) Dependencies(object map[string]any) ([]Reference, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.toLua(object)} }, 1)
	if err != nil || r.results[0] == lua.LNil {
		return nil, err
	}
	var all []Reference
	if err := r.decode(r.results[0], &all, ""); err != nil {
		return nil, s.error("the result is no list of references")
	}
	for i, ref := range all {
		switch {
		case ref.APIVersion == "" || ref.Kind == "":
			return nil, s.error("reference %d has no apiVersion or kind", i+1)
		case (ref.Name == "") == (ref.LabelSelector == nil):
			return nil, s.error("reference %d needs either name or labelSelector", i+1)
		case ref.LabelSelector != nil:
			if _, err := metav1.LabelSelectorAsSelector(ref.LabelSelector); err != nil {
				return nil, s.error("reference %d has a labelSelector that selects nothing", i+1)
			}
		}
	}
	return all, nil
}

// Healthy asks InterpretHealth(observedObj).
func (s *Script) Healthy(object map[string]any) (bool, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.toLua(object)} }, 1)
	if err != nil {
		return false, err
	}
	healthy, ok := r.results[0].(lua.LBool)
	if !ok {
		return false, s.error("the result is neither true nor false")
	}
	return bool(healthy), nil
}

// Reflect asks ReflectStatus(observedObj).
func (s *Script) Reflect(object map[string]any) (map[string]any, error) {
	r, err := s.call(func(r *run) []lua.LValue { return []lua.LValue{r.toLua(object)} }, 1)
	if err != nil || r.results[0] == lua.LNil {
		return nil, err
	}
	was, _ := object["status"].(map[string]any)
	status, err := r.object(was)
	maps.DeleteFunc(status, func(_ string, value any) bool { return value == nil }) // nulls that the script left out
	return status, err
}

// Aggregate asks AggregateStatus(desiredObj, statusItems). Of the object that
// it returns only the status counts.
func (s *Script) Aggregate(template map[string]any, items []Observed) (map[string]any, error) {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item.plain()
	}
	o, err := s.object(template, func(r *run) []lua.LValue { return []lua.LValue{r.toLua(template), r.toLua(list)} })
	if err != nil {
		return nil, err
	}
	status, ok := o["status"].(map[string]any)
	if !ok && o["status"] != nil {
		return nil, s.error("the status is no object")
	}
	return status, nil
}

// Retain asks Retain(desiredObj, observedObj).
func (s *Script) Retain(desired, observed map[string]any) (map[string]any, error) {
	return s.object(desired, func(r *run) []lua.LValue { return []lua.LValue{r.toLua(desired), r.toLua(observed)} })
}

// object asks for one. What is as it was before keeps its very value.
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
		return nil, r.script.error("the result cannot be an object: %v", err)
	}
	if list, ok := v.([]any); ok && len(list) == 0 {
		return map[string]any{}, nil // an empty table
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, r.script.error("the result is no object")
	}
	return o, nil
}

func (s *Script) error(format string, args ...any) error {
	return fmt.Errorf(s.function+": "+format, args...)
}

// decode fills one of our types from what a script returned. quantities is the
// field that has amounts of resources.
func (r *run) decode(v lua.LValue, into any, quantities string) error {
	value, err := r.fromLua(v, nil)
	if err != nil {
		return err
	}
	if m, ok := value.(map[string]any); ok {
		amounts, _ := m[quantities].(map[string]any)
		for _, amount := range amounts {
			if text, ok := amount.(string); ok && !IsQuantity(text) {
				return errors.New("it has an amount that is no quantity")
			}
		}
	}
	if list, ok := value.([]any); ok && len(list) == 0 {
		return nil // an empty table is an empty anything
	}
	text, err := json.Marshal(value)
	if err != nil {
		return errors.New("it is no JSON")
	}
	return json.Unmarshal(text, into)
}

// call runs the script in a state of its own and asks its function, unless
// nothing is to be asked yet.
func (s *Script) call(args func(*run) []lua.LValue, results int) (r *run, err error) {
	r = newRun(s)
	defer r.l.Close()
	defer func() {
		if v := recover(); v != nil {
			// The engine's own mistake: it stays the script's, and is told.
			err = s.error("the script breaks the engine")
		}
	}()
	chunk := r.l.NewFunctionFromProto(s.proto)
	if err := r.l.CallByParam(lua.P{Fn: chunk, Protect: true}, r.hidden()...); err != nil {
		return r, r.explain(err)
	}
	fn, ok := r.l.GetGlobal(s.function).(*lua.LFunction)
	if !ok {
		return r, s.error("the script defines no function of this name")
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
		return r, s.error("%s", r.stopped) // and it swallowed that
	}
	for i := range results {
		r.results = append(r.results, r.l.Get(i-results))
	}
	return r, nil
}

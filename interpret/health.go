// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Health is the health of an observed object.
type Health string

// Unknown means that the object was not observed, or that the rule failed.
const (
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
	Unknown   Health = "Unknown"
)

// HealthOf is the health of an observed object by the script of its kind, or
// else by the rule of a kind that is known (digest §9.3). An object of any other
// kind is healthy once it is observed. The error says why the health is
// unknown.
func HealthOf(script Interpreter, object map[string]any) (Health, error) {
	if object == nil {
		return Unknown, nil
	}

	healthy, err := false, error(nil)
	if script != nil {
		healthy, err = script.Healthy(object)
	} else {
		healthy, err = knownHealthy(object)
	}

	switch {
	case err != nil:
		return Unknown, err
	case healthy:
		return Healthy, nil
	}

	return Unhealthy, nil
}

func knownHealthy(object map[string]any) (bool, error) {
	gk := groupKind(object)
	rule := healthRule(gk, object)
	if rule == nil {
		return true, nil
	}

	o := observed{&unstructured.Unstructured{Object: object}, new(error)}
	healthy := rule(o)
	if err := *o.err; err != nil {
		return false, fmt.Errorf("%s: %w", gk.Kind, err)
	}

	return healthy, nil
}

// healthRule is the rule for the health of an object's kind, nil without one.
func healthRule(gk schema.GroupKind, object map[string]any) func(observed) bool {
	if rule := health[gk]; rule != nil {
		return rule
	}
	if k := kindOf(gk, object); k != nil {
		return k.healthy
	}
	return nil
}

func groupKind(object map[string]any) schema.GroupKind {
	o := unstructured.Unstructured{Object: object}
	return o.GroupVersionKind().GroupKind()
}

var health = map[schema.GroupKind]func(observed) bool{
	deployment:  rolledOut,
	statefulSet: rolledOut,
	replicaSet: func(o observed) bool {
		return o.current() && o.number("status", "availableReplicas") >= o.number("spec", "replicas")
	},
	daemonSet: scheduledEverywhere,
	service: func(o observed) bool {
		return o.text("spec", "type") != "LoadBalancer" || o.reachable()
	},
	ingress: observed.reachable,
	claim:   func(o observed) bool { return o.text("status", "phase") == "Bound" },
	pod: func(o observed) bool {
		phase := o.text("status", "phase")
		return phase == "Succeeded" || phase == "Running" && o.condition("Ready") == "True"
	},
	budget: func(o observed) bool {
		return o.number("status", "currentHealthy") >= o.number("status", "desiredHealthy")
	},
}

// observed is an object as a member has it.
type observed struct {
	*unstructured.Unstructured
	err *error // set to the first value of a wrong type
}

// current reports whether the controller has observed the current generation.
func (o observed) current() bool {
	return o.number("status", "observedGeneration") == o.number("metadata", "generation")
}

// number is the number at a path, 0 without one.
func (o observed) number(path ...string) int64 {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	n, ok := integral(value)
	if !ok || err != nil {
		o.wrong(path)
	}
	return n
}

// integral reads a whole number in either of JSON's forms; nil is 0.
func integral(value any) (n int64, ok bool) {
	switch value := value.(type) {
	case nil:
		return 0, true
	case int64:
		return value, true
	case float64:
		if value != math.Trunc(value) || math.Abs(value) > whole {
			return 0, false
		}
		return int64(value), true
	}

	return 0, false
}

func (o observed) text(path ...string) string {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	s, ok := value.(string)
	if !ok && value != nil || err != nil {
		o.wrong(path)
	}
	return s
}

func (o observed) wrong(path []string) {
	*o.err = fmt.Errorf("%s has the wrong type", strings.Join(path, "."))
}

// reachable reports whether a load balancer has assigned a name or an address.
func (o observed) reachable() bool {
	for _, at := range o.items("status", "loadBalancer", "ingress") {
		if at["hostname"] != nil && at["hostname"] != "" || at["ip"] != nil && at["ip"] != "" {
			return true
		}
	}
	return false
}

func (o observed) condition(name string) any {
	for _, c := range o.items("status", "conditions") {
		if c["type"] == name {
			return c["status"]
		}
	}
	return nil
}

func (o observed) items(path ...string) []map[string]any {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	all, ok := objects(value)
	if !ok || err != nil {
		o.wrong(path)
	}
	return all
}

// objects reads a list of objects; nil is an empty list.
func objects(value any) (all []map[string]any, ok bool) {
	list, ok := value.([]any)
	for _, item := range list {
		m, isObject := item.(map[string]any)
		all, ok = append(all, m), ok && isObject
	}
	return all, ok || value == nil
}

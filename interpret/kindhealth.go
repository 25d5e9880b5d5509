// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rolledOut reports whether all replicas are updated and available.
func rolledOut(o observed) bool { return o.rolledOut("availableReplicas") }

// rolledOut reports whether all replicas are updated, and counted in a field.
func (o observed) rolledOut(available string) bool {
	return o.current() && o.number("status", "updatedReplicas") >= o.number("spec", "replicas") &&
		o.number("status", available) >= o.number("status", "updatedReplicas")
}

// scheduledEverywhere reports whether a pod is updated and available on every node.
func scheduledEverywhere(o observed) bool {
	return o.current() && o.number("status", "updatedNumberScheduled") >= o.number("status", "desiredNumberScheduled") &&
		o.number("status", "numberAvailable") >= o.number("status", "updatedNumberScheduled")
}

// ready is the rule of kinds that are ready for one of some reasons.
func ready(reasons ...string) func(observed) bool {
	return func(o observed) bool {
		c := o.reported("Ready")
		reason, _ := c["reason"].(string)
		return c["status"] == "True" && slices.Contains(reasons, reason)
	}
}

// is reports whether a condition is true.
func (o observed) is(condition string) bool { return o.condition(condition) == "True" }

// has reports whether there is a value at a path.
func (o observed) has(path ...string) bool {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		o.wrong(path)
	}
	return value != nil
}

// flag is the boolean at a path, false without one.
func (o observed) flag(path ...string) bool {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	flag, ok := value.(bool)
	if !ok && value != nil || err != nil {
		o.wrong(path)
	}
	return flag
}

// in reports whether the text at a path is one of some.
func (o observed) in(texts []string, path ...string) bool {
	return slices.Contains(texts, o.text(path...))
}

// notFailed is the rule of kinds that report their failure in a condition.
func notFailed(o observed) bool { return o.has("status", "conditions") && !o.is("Failed") }

// failedCondition is the failure that a condition reports.
func failedCondition(o observed) string {
	if c := o.reported("Failed"); c["status"] == "True" {
		return conditionText(c, "it failed")
	}
	return ""
}

// failedIn is the failure that a phase at a path says.
func failedIn(phases []string, path ...string) func(observed) string {
	return func(o observed) string {
		if o.in(phases, path...) {
			return "it failed"
		}
		return ""
	}
}

// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Progress is how far a cluster has got with an observed object.
type Progress string

// The progress of an object on its cluster. Failed means that waiting does not
// help.
const (
	Current    Progress = "Current"
	InProgress Progress = "InProgress"
	Failed     Progress = "Failed"
)

// ProgressOf is how far the cluster has got with an observed object whose
// health is known, and why it is not further. Conditions that report a failure
// count for every kind. An object that is healthy by a script or by its kind's
// rule is current. For a kind with neither, its conditions decide, as in other
// tools that wait for Kubernetes objects.
func ProgressOf(script Interpreter, object map[string]any, does Health) (Progress, string) {
	o := observed{&unstructured.Unstructured{Object: object}, new(error)}
	gk := groupKind(object)
	ruled := script != nil || healthRule(gk, object) != nil
	if o.text("metadata", "deletionTimestamp") != "" {
		return InProgress, "it is being deleted"
	}

	if does != Healthy || !ruled {
		if why := o.failure(gk); why != "" {
			return Failed, why
		}
	}

	switch {
	case does == Unhealthy:
		return InProgress, o.unfinished(gk)
	case ruled:
		return Current, ""
	}

	if why := o.moving(gk); why != "" {
		return InProgress, why
	}

	return Current, ""
}

var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// failure is what an object reports as its own failure; "" if nothing.
func (o observed) failure(gk schema.GroupKind) string {
	if c := o.reported("Stalled"); c["status"] == "True" {
		return conditionText(c, "it is stalled")
	}
	if k := kindOf(gk, o.Object); k != nil && k.failed != nil {
		return k.failed(o)
	}

	switch gk {
	case deployment:
		if c := o.reported("Progressing"); c["reason"] == "ProgressDeadlineExceeded" {
			return conditionText(c, "it is not making progress")
		}
	case job:
		if c := o.reported("Failed"); c["status"] == "True" {
			return conditionText(c, "it failed")
		}
	case definition:
		if c := o.reported("NamesAccepted"); c["status"] == "False" && c["reason"] != "Installing" {
			return conditionText(c, "its names are not accepted")
		}
	case pod:
		if o.text("status", "phase") == "Failed" {
			return "it failed"
		}
	case claim:
		if o.text("status", "phase") == "Lost" {
			return "its volume is lost"
		}
	}

	return ""
}

// unfinished says how much of an unhealthy object is ready.
func (o observed) unfinished(gk schema.GroupKind) string {
	switch gk {
	case deployment, statefulSet, replicaSet:
		if gk == replicaSet {
			return o.rollout("availableReplicas", "availableReplicas")
		}
		return o.rollout("updatedReplicas", "availableReplicas")
	case daemonSet:
		if !o.current() {
			return "its controller has not observed it yet"
		}
		return fmt.Sprintf("%d of %d nodes", min(o.number("status", "updatedNumberScheduled"), o.number("status", "numberAvailable")), o.number("status", "desiredNumberScheduled"))
	case service, ingress:
		return "it has no address yet"
	}

	if k := kindOf(gk, o.Object); k != nil && KindScales(gk) {
		return o.rollout("updatedReplicas", cmp.Or(k.replicas.available, "availableReplicas"))
	}
	if c := o.reported("Ready"); c["status"] == "False" {
		return conditionText(c, "it is not ready")
	}
	return "it is not healthy"
}

// rollout says how many replicas are updated and available, as two fields count
// them.
func (o observed) rollout(updated, available string) string {
	if !o.current() {
		return "its controller has not observed it yet"
	}
	return fmt.Sprintf("%d of %d replicas", min(o.number("status", updated), o.number("status", available)), o.number("spec", "replicas"))
}

// moving is why an object of a kind without a rule is not ready yet; "" if it
// is.
func (o observed) moving(gk schema.GroupKind) string {
	if seen := o.number("status", "observedGeneration"); seen != 0 && seen != o.number("metadata", "generation") {
		return "its controller has not observed it yet"
	}
	if c := o.reported("Reconciling"); c["status"] == "True" {
		return conditionText(c, "it is being reconciled")
	}

	if gk == definition {
		if c := o.reported("Established"); c["status"] != "True" {
			return conditionText(c, "it is not established yet")
		}
	}

	if c := o.reported("Ready"); c != nil && c["status"] != "True" {
		return conditionText(c, "it is not ready")
	}

	return ""
}

// reported is a condition of an object; nil without one of that type.
func (o observed) reported(name string) map[string]any {
	for _, c := range o.items("status", "conditions") {
		if c["type"] == name {
			return c
		}
	}
	return nil
}

// conditionText is the message of a condition, or else its reason, or else the
// given text.
func conditionText(c map[string]any, otherwise string) string {
	for _, field := range []string{"message", "reason"} {
		if text, ok := c[field].(string); ok && text != "" {
			return line(text)
		}
	}
	return otherwise
}

// line puts a member's text on one line of limited length: it may contain
// anything.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)

	if r := []rune(text); len(r) > longestLine {
		text = string(r[:longestLine]) + "…"
	}
	return strings.TrimSpace(text)
}

const longestLine = 200

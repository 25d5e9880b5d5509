// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Cluster is the document of a Cluster.
type Cluster struct{ *Object }

// Taints are those of the document, in its order.
func (c Cluster) Taints() []corev1.Taint {
	list, _ := c.Get("spec", "taints").([]any)
	taints := make([]corev1.Taint, len(list))
	for i, item := range list {
		t, _ := item.(map[string]any)
		text := func(key string) string { s, _ := t[key].(string); return s }
		taints[i] = corev1.Taint{Key: text("key"), Value: text("value"), Effect: corev1.TaintEffect(text("effect"))}
	}
	return taints
}

// Taint adds a taint, or updates the value of the one with its key and effect.
func (c Cluster) Taint(t corev1.Taint) error {
	for i, old := range c.Taints() {
		switch {
		case old.Key != t.Key || old.Effect != t.Effect:
		case old.Value == t.Value:
			return nil
		case t.Value == "":
			return c.Remove("spec", "taints", itoa(i), "value")
		default:
			return c.Set(t.Value, "spec", "taints", itoa(i), "value")
		}
	}

	fields := Fields{{"key", t.Key}}
	if t.Value != "" {
		fields = append(fields, Field{"value", t.Value})
	}

	return c.Append([]any{append(fields, Field{"effect", string(t.Effect)})}, "spec", "taints")
}

// Untaint removes the taints with a key and effect; an empty effect matches
// all.
func (c Cluster) Untaint(key string, effect corev1.TaintEffect) error {
	taints := c.Taints()
	for i := len(taints) - 1; i >= 0; i-- {
		if taints[i].Key != key || effect != "" && taints[i].Effect != effect {
			continue
		}
		if err := c.Remove("spec", "taints", itoa(i)); err != nil {
			return err
		}
	}

	return nil
}

func itoa(i int) string { return strconv.Itoa(i) }

// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/object"
)

func removedField(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	o = w.object(strings.Replace(settings, ", size: small", "", 1))
	w.must(apply(o))
	w.same("data", field(w.live(o), "data"), map[string]any{"colour": "red"})
}

func listsByKey(w *world) {
	w.namespace()
	w.must(apply(w.object(web)))
	changed := strings.Replace(web, `{name: A, value: "1"}, `, "", 1)
	changed = strings.Replace(changed, "{containerPort: 80, name: http}, ", "", 1)
	changed = strings.Replace(changed, "web:1", "web:2", 1)
	o := w.object(changed)
	w.must(apply(o))
	list := field(w.live(o), "spec", "template", "spec", "containers").([]any)
	if len(list) != 2 {
		w.t.Fatalf("%d containers, want 2", len(list))
	}
	first := list[0].(map[string]any)
	w.same("image", first["image"], "example.com/web:2")
	w.same("env", first["env"], []any{map[string]any{"name": "B", "value": "2"}})
	ports := first["ports"].([]any)
	if len(ports) != 1 || ports[0].(map[string]any)["name"] != "admin" {
		w.t.Errorf("ports are %s", text(ports))
	}
}

func handEdit(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "green", "data", "colour")
	})
	o = w.object(strings.Replace(settings, "small", "large", 1))
	w.counter.take()
	w.must(apply(o))
	w.sent("1 PATCH")
	w.same("data", field(w.live(o), "data"), map[string]any{"colour": "red", "size": "large"})
}

func othersStay(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.edit("their-operator", o, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "theirs", "data", "extra")
	})
	o = w.object(strings.Replace(settings, "small", "large", 1))
	w.must(apply(o))
	w.same("data", field(w.live(o), "data"), map[string]any{"colour": "red", "size": "large", "extra": "theirs"})
}

func labelsOfOthers(w *world) {
	w.namespace()
	labelled := strings.Replace(settings, "namespace: NS", "namespace: NS, labels: {tier: gold, left: soon}, annotations: {left: soon}", 1)
	o := w.object(labelled)
	w.must(apply(o))
	w.edit("kubectl-label", o, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "ann", "metadata", "labels", "owner")
		_ = unstructured.SetNestedField(u.Object, "ann", "metadata", "annotations", "owner")
	})
	o = w.object(strings.NewReplacer(", left: soon}, annotations: {left: soon}", "}").Replace(labelled))
	w.must(apply(o))
	labels, annotations := w.live(o).GetLabels(), w.live(o).GetAnnotations()
	delete(labels, object.LabelManaged)
	delete(labels, object.LabelFleet)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "fairlead.dev/") })
	w.same("labels", labels, map[string]string{"tier": "gold", "owner": "ann"})
	w.same("annotations", annotations, map[string]string{"owner": "ann"})
}

// It is missed when there is something to send.
func removedByHand(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	if err := w.resource(o).Delete(context.Background(), "settings", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	o = w.object(strings.Replace(settings, "red", "blue", 1))
	w.must(apply(o))
	w.same("data", field(w.live(o), "data"), o["data"])
	w.same("label", w.live(o).GetLabels()[object.LabelManaged], "true")
}

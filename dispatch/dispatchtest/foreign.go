// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

func (w *world) isForeign(o dispatch.Outcome) {
	w.t.Helper()
	if !errors.Is(o.Err, member.Foreign) || !o.Final {
		w.t.Errorf("outcome %v (final %v), want a final Foreign", o.Err, o.Final)
	}
	if !strings.Contains(o.Err.Error(), "already exists in the cluster and is not ours: set conflictResolution: Overwrite to adopt it") {
		w.t.Errorf("it reads %q", o.Err)
	}
}

func foreign(w *world) {
	w.namespace()
	before := w.create("kubectl-create", w.object(strings.Replace(settings, "red", "grey", 1)))
	o := w.object(settings)
	w.isForeign(w.only(w.want(apply(o))))
	w.sent("2 GET")
	w.same("object", w.live(o).Object, before.Object)
	if e, ok := w.entry(ID(o)); ok && e.UID != "" {
		w.t.Errorf("the inventory has %v", e)
	}
}

func foreignIdentical(w *world) {
	w.namespace()
	before := w.create("kubectl-create", w.object(settings))
	o := w.object(settings)
	w.isForeign(w.only(w.want(apply(o))))
	w.same("object", w.live(o).Object, before.Object)
}

// The object appears after we looked, and before we apply.
func foreignRace(w *world) {
	w.namespace()
	for _, colour := range []string{"grey", "red"} {
		o := w.object(strings.Replace(settings, "name: settings", "name: settings-"+colour, 1))
		var before *unstructured.Unstructured
		w.counter.hook(nil, func(r *http.Request) {
			if r.Method == http.MethodPatch && before == nil {
				other := w.object(strings.Replace(settings, "name: settings", "name: settings-"+colour, 1))
				_ = unstructured.SetNestedField(other, colour, "data", "colour")
				_ = unstructured.SetNestedField(other, "theirs", "data", "extra")
				before = w.create("kubectl-create", other)
			}
		})
		w.isForeign(w.only(w.want(apply(o))))
		w.counter.hook(nil, nil)
		after := w.live(o)
		w.same("data", field(after, "data"), field(before, "data"))
		w.same("labels", after.GetLabels(), before.GetLabels())
		w.same("annotations", after.GetAnnotations(), before.GetAnnotations())
		for _, m := range after.GetManagedFields() {
			if m.Manager == object.Manager {
				w.t.Errorf("we manage %s", m.FieldsV1.GetRawString())
			}
		}
		w.must(Work{Verb: dispatch.Leave, Object: o})
	}
}

func overwriteCreate(w *world) {
	w.namespace()
	theirs := w.object(strings.Replace(settings, "red", "grey", 1))
	_ = unstructured.SetNestedField(theirs, "theirs", "data", "extra")
	w.create("kubectl-create", theirs)
	o := w.object(settings)
	w.must(overwrite(o))
	w.same("data", field(w.live(o), "data"), o["data"])
	w.same("label", w.live(o).GetLabels()[object.LabelManaged], "true")
	w.counter.take()
	o = w.object(strings.Replace(settings, "red", "blue", 1))
	w.must(overwrite(o))
	w.sent("1 PATCH")
	w.same("data", field(w.live(o), "data"), o["data"])
}

func overwriteApply(w *world) {
	w.namespace()
	theirs := w.object(strings.Replace(web, "- name: sidecar", "- name: theirs", 1))
	last, err := json.Marshal(theirs)
	if err != nil {
		w.t.Fatal(err)
	}
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	_ = unstructured.SetNestedField(theirs, string(last), "metadata", "annotations", lastApplied)
	w.create("kubectl-client-side-apply", theirs)
	w.edit("kube-controller-manager", theirs, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(1), "status", "observedGeneration")
	}, "status")
	o := w.object(web)
	w.must(overwrite(o))
	live := w.live(o)
	if _, ok := live.GetAnnotations()[lastApplied]; ok {
		w.t.Errorf("%s is still there", lastApplied)
	}
	var names []any
	for _, c := range field(live, "spec", "template", "spec", "containers").([]any) {
		names = append(names, c.(map[string]any)["name"])
	}
	w.same("containers", names, []any{"web", "sidecar"})
	w.same("status", field(live, "status", "observedGeneration"), int64(1))
}

// The cluster pulled before: its Flux applied a file of ours.
func pulledBefore(w *world) {
	w.namespace()
	before := Marked(w.object(strings.Replace(settings, "size: small", "size: small, old: x", 1)))
	_ = unstructured.SetNestedField(before, "fleet", "metadata", "labels", "kustomize.toolkit.fluxcd.io/name")
	_ = unstructured.SetNestedField(before, "disabled", "metadata", "annotations", "kustomize.toolkit.fluxcd.io/prune")
	_ = unstructured.SetNestedStringSlice(before, []string{"example.com/theirs"}, "metadata", "finalizers")
	u := &unstructured.Unstructured{Object: before}
	if _, err := w.resource(before).Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true}); err != nil {
		w.t.Fatal(err)
	}
	o := w.object(settings)
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "mine", "data", "theirs")
	})
	w.must(apply(o))
	live := w.live(o)
	w.same("data", field(live, "data"), map[string]any{"colour": "red", "size": "small", "theirs": "mine"})
	w.same("labels", live.GetLabels(), map[string]string{object.LabelManaged: "true", object.LabelFleet: "sea"})
	if _, ok := live.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"]; ok {
		w.t.Error("it is still not to be pruned")
	}
	w.same("finalizers", live.GetFinalizers(), []string{"example.com/theirs"})
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })

	// From now on it costs what every update costs.
	w.counter.take()
	w.must(apply(w.object(strings.Replace(settings, "colour: red", "colour: blue", 1))))
	w.sent("1 PATCH")
}

// Who restores a backup owns what the cluster put into the object, too.
func restoredBackup(w *world) {
	w.namespace()
	theirs := Marked(w.object(strings.Replace(settings, "size: small", "size: small, old: x", 1)))
	w.create("velero-server", theirs)
	o := w.object(settings)
	w.must(apply(o))
	w.same("data", field(w.live(o), "data"), map[string]any{"colour": "red", "size": "small", "old": "x"})
}

func overwriteFinalizers(w *world) {
	w.namespace()
	theirs := w.object(settings)
	_ = unstructured.SetNestedStringSlice(theirs, []string{"example.com/theirs"}, "metadata", "finalizers")
	w.create("kubectl-create", theirs)
	o := w.object(settings)
	w.must(overwrite(o))
	w.same("finalizers", w.live(o).GetFinalizers(), []string{"example.com/theirs"})
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
}

// withoutVersion is an object without what every write changes.
func withoutVersion(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	return u.Object
}

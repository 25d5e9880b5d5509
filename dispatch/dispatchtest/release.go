// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

func release(w *world) {
	w.namespace()
	o := w.object(settings)
	_ = unstructured.SetNestedField(o, "shop", "metadata", "labels", "team")
	w.must(apply(o))
	w.edit("their-operator", o, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "theirs", "data", "extra")
		_ = unstructured.SetNestedField(u.Object, "theirs", "metadata", "annotations", "example.com/theirs")
	})
	before := w.live(o)
	w.counter.take()
	w.must(let(o))
	w.sent("1 GET, 1 PATCH")
	after := w.live(o)

	want := before.DeepCopy()
	labels, annotations := want.GetLabels(), want.GetAnnotations()
	delete(labels, object.LabelManaged)
	delete(labels, object.LabelFleet)
	for key := range annotations {
		if strings.HasPrefix(key, "fairlead.dev/") {
			delete(annotations, key)
		}
	}
	want.SetLabels(labels)
	want.SetAnnotations(annotations)
	var others []metav1.ManagedFieldsEntry
	for _, m := range want.GetManagedFields() {
		if m.Manager != object.Manager {
			others = append(others, m)
		}
	}
	want.SetManagedFields(others)
	w.same("object", withoutVersion(after), withoutVersion(want))
	if _, ok := w.entry(ID(o)); ok {
		w.t.Error("it is still in the inventory")
	}
	w.must(let(o))
	w.sent("nothing")
}

func releaseOnly(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	before := w.live(o)
	w.must(let(o))
	after := w.live(o)
	w.same("managers", len(after.GetManagedFields()), 0)
	w.same("labels", len(after.GetLabels()), 0)
	w.same("annotations", len(after.GetAnnotations()), 0)
	w.same("data", field(after, "data"), field(before, "data"))
	w.same("uid", after.GetUID(), before.GetUID())
}

func releaseAndBack(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.must(let(o))
	w.inventory = &Inventory{} // what was left running is not known any more
	w.restart()
	w.isForeign(w.only(w.want(apply(o))))
	o = w.object(strings.Replace(settings, ", size: small", "", 1))
	w.must(overwrite(o))
	w.same("data", field(w.live(o), "data"), o["data"])
}

func deleted(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	uid := w.live(o).GetUID()
	var options metav1.DeleteOptions
	w.counter.hook(nil, func(r *http.Request) {
		if r.Method != http.MethodDelete {
			return
		}
		body, err := r.GetBody()
		if err == nil {
			err = json.NewDecoder(body).Decode(&options)
		}
		if err != nil {
			w.t.Error(err)
		}
	})
	w.counter.take()
	w.must(remove(o))
	w.sent("1 GET, 1 DELETE")
	w.counter.hook(nil, nil)
	w.same("propagation", options.PropagationPolicy, new(metav1.DeletePropagationBackground))
	w.same("precondition", options.Preconditions, &metav1.Preconditions{UID: &uid})
	w.gone(o)
	w.must(remove(o))
	w.sent("nothing")

	w.must(apply(o))
	if err := w.resource(o).Delete(context.Background(), "settings", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.must(remove(o))
	if _, ok := w.entry(ID(o)); ok {
		w.t.Error("it is still in the inventory")
	}
}

func otherUID(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	if err := w.resource(o).Delete(context.Background(), "settings", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.create("kubectl-create", w.object(settings))
	w.must(remove(o))
	if w.live(o) == nil {
		w.t.Error("an object that is not ours was deleted")
	}
	ref := member.Ref{GroupVersionKind: w.live(o).GroupVersionKind(), Namespace: w.ns, Name: "settings"}
	if err := w.member.Delete(context.Background(), ref, "00000000-0000-0000-0000-000000000000", Sea); err != nil {
		w.t.Errorf("delete with another UID: %v", err)
	}
	if w.live(o) == nil {
		w.t.Error("the precondition does not hold")
	}
}

func replaced(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	if err := w.resource(o).Delete(context.Background(), "settings", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	before := w.create("kubectl-create", w.object(settings))
	o = w.object(strings.Replace(settings, "red", "green", 1))
	w.isForeign(w.only(w.want(apply(o))))
	w.same("object", w.live(o).Object, before.Object)
}

func protected(w *world) {
	w.namespace()
	for name, mark := range map[string][2]string{
		"flux":    {"kustomize.toolkit.fluxcd.io/prune", "Disabled"},
		"argo":    {"argocd.argoproj.io/sync-options", "Replace=true, Delete=false"},
		"prune":   {"argocd.argoproj.io/sync-options", "Prune=false"},
		"helm":    {"helm.sh/resource-policy", "keep"},
		"karmada": {"resourcetemplate.karmada.io/deletion-protected", "Always"},
	} {
		o := w.object(strings.Replace(settings, "name: settings", "name: "+name, 1))
		w.must(apply(o))
		field := "annotations"
		if name == "karmada" {
			field = "labels"
		}
		w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, mark[1], "metadata", field, mark[0])
		})
		w.must(remove(o))
		live := w.live(o)
		if live == nil {
			w.t.Fatalf("%s: it was deleted", name)
		}
		if live.GetLabels()[object.LabelManaged] != "" {
			w.t.Errorf("%s: it was not released", name)
		}
		var note string
		for _, outcome := range w.d.Outcomes() {
			if outcome.ID == ID(o) {
				note = outcome.Note
			}
		}
		w.same("note", note, "kept in the cluster because of "+mark[0])
	}
}

// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

func missingNamespace(w *world) {
	w.docs = []map[string]any{w.object(`
apiVersion: v1
kind: Namespace
metadata: {name: NS, labels: {pod-security.kubernetes.io/enforce: restricted}}
`)}
	var works []Work
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		works = append(works, apply(w.object(strings.Replace(settings, "name: settings", "name: "+name, 1))))
	}
	w.must(works...)
	w.sent("3 GET, 6 PATCH")
	labels := w.live(w.docs[0]).GetLabels()
	w.same("enforce", labels["pod-security.kubernetes.io/enforce"], "restricted")
	w.same("managed", labels[object.LabelManaged], "true")
}

func bareNamespace(w *world) {
	w.must(apply(w.object(settings)))
	ns := Object("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + "}}")
	w.same("managed", w.live(ns).GetLabels()[object.LabelManaged], "true")
	// It is not a template, so it stays when what needed it goes.
	w.must(remove(w.object(settings)))
	if w.live(ns).GetDeletionTimestamp() != nil {
		w.t.Error("the namespace is being deleted")
	}
}

// The namespace is believed to be there, and is not.
func namespaceGoes(w *world) {
	first := w.object(strings.ReplaceAll(settings, "NS", "NS-x"))
	ns := Object("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + "-x}}")
	w.must(apply(first))
	if err := w.resource(ns).Delete(context.Background(), w.ns+"-x", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.finalize(ns)
	w.must(apply(w.object(strings.Replace(strings.ReplaceAll(settings, "NS", "NS-x"), "name: settings", "name: more", 1))))
	if w.live(ns) == nil {
		w.t.Error("the namespace was not made again")
	}
}

// A namespace that we made ourselves need not be looked for, and may be gone
// all the same.
func ownNamespace(w *world) {
	ns := Object("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + "-x}}")
	object := func(name string) Work {
		return apply(w.object(strings.Replace(strings.ReplaceAll(settings, "NS", "NS-x"), "name: settings", "name: "+name, 1)))
	}
	w.must(apply(ns), object("first"))
	w.sent("3 GET, 2 PATCH") // who it is, the places of both
	w.restart()
	w.must(object("second"))
	w.sent("2 GET, 1 PATCH") // who it is, the object's place

	if err := w.resource(ns).Delete(context.Background(), w.ns+"-x", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.finalize(ns)
	w.must(object("third"))
	if w.live(ns) == nil {
		w.t.Error("the namespace was not made again")
	}
}

// finalize is the end of a namespace where no controller sees to it.
func (w *world) finalize(ns map[string]any) {
	w.t.Helper()
	for _, kind := range []string{"ConfigMap"} {
		list := w.resource(Object("{apiVersion: v1, kind: " + kind + ", metadata: {name: x, namespace: " + ID(ns).Name + "}}"))
		if err := list.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	live := w.live(ns)
	if live == nil {
		return
	}
	unstructured.RemoveNestedField(live.Object, "spec", "finalizers")
	if _, err := w.resource(ns).Update(context.Background(), live, metav1.UpdateOptions{}, "finalize"); err != nil {
		w.t.Fatal(err)
	}
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: Ship, listKind: ShipList, plural: ships, singular: ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const ship = `
apiVersion: NS.example.com/v1
kind: Ship
metadata: {name: SHIP, namespace: NS}
spec: {cargo: [tea, silk]}
`

func definitionFirst(w *world) {
	w.namespace()
	a, b := w.object(strings.Replace(ship, "SHIP", "a", 1)), w.object(strings.Replace(ship, "SHIP", "b", 1))
	w.must(apply(a), apply(b), apply(w.object(definition)))
	w.same("cargo", field(w.live(a), "spec", "cargo"), []any{"tea", "silk"})

	a = w.object(strings.Replace(strings.Replace(ship, "SHIP", "a", 1), "tea, ", "", 1))
	w.counter.take()
	w.must(apply(a))
	w.sent("1 PATCH")
	w.same("cargo", field(w.live(a), "spec", "cargo"), []any{"silk"})

	w.must(remove(a), remove(b), remove(w.object(definition)))
	w.gone(w.object(definition))
}

func servedLater(w *world) {
	w.namespace()
	a := w.object(strings.Replace(ship, "SHIP", "a", 1))
	ok := w.object(settings)
	fleet := Fleet(Works{cluster: {apply(a), apply(ok)}})
	if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the rest is applied", func() bool { return w.live(ok) != nil })
	w.until("the kind is missed", func() bool {
		for _, o := range w.d.Outcomes() {
			if errors.Is(o.Err, member.NotServed) && !o.Final && o.ID == ID(a) {
				return true
			}
		}
		return false
	})
	w.create("kubectl-create", w.object(definition))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if left := w.d.Wait(ctx); len(left) != 0 {
		w.t.Fatalf("left: %v", left[0].Err)
	}
	if w.live(a) == nil {
		w.t.Error("the resource was not applied")
	}
}

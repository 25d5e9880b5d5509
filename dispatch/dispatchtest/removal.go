// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/object"
)

// It was to be created where something else stood, so all that is on record is
// that we meant to.
func neverOurs(w *world) {
	w.namespace()
	theirs := w.object(settings)
	_ = unstructured.SetNestedField(theirs, "grey", "data", "colour")
	before := w.create("kubectl-create", theirs)
	o := w.object(settings)
	for _, leave := range []Work{remove(o), let(o)} {
		w.isForeign(w.only(w.want(apply(o))))
		w.counter.take()
		w.must(leave)
		w.sent("1 GET")
		w.same("object", w.live(o).Object, before.Object)
		if _, ok := w.entry(ID(o)); ok {
			w.t.Error("it is still in the inventory")
		}
	}
}

// Somebody put a copy with all our marks in the place of what we made.
func inItsPlace(w *world) {
	w.namespace()
	o := w.object(settings)
	for _, leave := range []Work{remove(o), let(o)} {
		w.must(apply(o))
		w.remove(o)
		copied := w.create("velero-server", Marked(o))
		w.must(leave)
		w.same("object", w.live(o).Object, copied.Object)
		w.remove(o)
	}
}

// It is replaced after we looked, and before its marks are taken off.
func inItsPlaceRace(w *world) {
	w.namespace()
	o := w.object(settings)
	_ = unstructured.SetNestedField(o, "keep", "metadata", "annotations", "helm.sh/resource-policy")
	w.must(apply(o))
	reads := 0
	var copied *unstructured.Unstructured
	w.counter.hook(nil, func(r *http.Request) {
		if reads++; reads == 2 {
			w.remove(o)
			copied = w.create("velero-server", Marked(o))
		}
	})
	w.must(remove(o))
	w.counter.hook(nil, nil)
	w.same("object", w.live(o).Object, copied.Object)
}

// What our record names by its UID is ours, whatever became of its label.
func labelStripped(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.edit("kubectl-label", o, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	w.must(remove(o))
	w.gone(o)
}

// Its record stays until its marks are gone.
func releaseLater(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	lost := 0
	w.counter.hook(func(r *http.Request) bool { lost++; return lost == 1 }, nil)
	w.must(let(o))
	w.counter.hook(nil, nil)
	w.same("label", w.live(o).GetLabels()[object.LabelManaged], "")
}

// Who asks for a removal need not know which version it was applied in.
func versionOnRecord(w *world) {
	w.namespace()
	o := w.object(settings)
	unversioned := w.object(settings)
	delete(unversioned, "apiVersion")
	w.must(apply(o))
	w.must(remove(unversioned))
	w.gone(o)
	w.must(apply(o))
	w.must(let(unversioned))
	w.same("label", w.live(o).GetLabels()[object.LabelManaged], "")
}

// The namespace went, and what was in it.
func namespaceGoesWithAll(w *world) {
	ns := Object("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + "}}")
	o := w.object(settings)
	w.must(apply(o))
	w.remove(ns)
	w.finalize(ns)
	o = w.object(strings.Replace(settings, "red", "blue", 1))
	w.must(apply(o))
	w.same("data", field(w.live(o), "data"), o["data"])
}

// They write after we read who manages what, and before we take ourselves off.
func releaseRace(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	wrote := false
	w.counter.hook(nil, func(r *http.Request) {
		if r.Method != http.MethodPatch || wrote {
			return
		}
		wrote = true
		w.edit("their-operator", o, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "theirs", "data", "extra")
		})
	})
	w.must(let(o))
	w.counter.hook(nil, nil)
	live := w.live(o)
	w.same("label", live.GetLabels()[object.LabelManaged], "")
	w.same("extra", field(live, "data", "extra"), "theirs")
	managers := live.GetManagedFields()
	if len(managers) != 1 || managers[0].Manager != "their-operator" {
		w.t.Errorf("it is managed by %s", text(managers))
	}
}

// Marks that say something else keep nothing.
func unprotected(w *world) {
	w.namespace()
	o := w.object(settings)
	_ = unstructured.SetNestedStringMap(o, map[string]string{
		"kustomize.toolkit.fluxcd.io/prune":              "enabled",
		"argocd.argoproj.io/sync-options":                "Prune=true,Delete=true",
		"helm.sh/resource-policy":                        "delete",
		"resourcetemplate.karmada.io/deletion-protected": "Never",
	}, "metadata", "annotations")
	w.must(apply(o))
	w.must(remove(o))
	w.gone(o)
}

// comesAgain wants an object of which another one is still on its way out.
func (w *world) comesAgain(o map[string]any, before types.UID) {
	w.t.Helper()
	fleet := Fleet(Works{cluster: {apply(o)}})
	if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("it says why", func() bool {
		left := w.d.Outcomes()
		return len(left) == 1 && !left[0].Final && strings.HasSuffix(left[0].Err.Error(), "the previous object is still terminating")
	})
	w.edit("their-operator", o, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	w.until("it is there again", func() bool { live := w.live(o); return live != nil && live.GetUID() != before })
}

// What is on its way out takes an update, and is not there for it.
func updateOfWhatGoes(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.edit("their-operator", o, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/theirs"}) })
	uid := w.live(o).GetUID()
	w.remove(o)
	o = w.object(strings.Replace(settings, "red", "blue", 1))
	w.comesAgain(o, uid)
	w.same("data", field(w.live(o), "data"), o["data"])
}

// It has our digest, and nothing says that it is ours.
func unlabelledInItsPlace(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.remove(o)
	o = w.object(strings.Replace(settings, "red", "blue", 1))
	theirs := Marked(o)
	unstructured.RemoveNestedField(theirs, "metadata", "labels")
	before := w.create("velero-server", theirs)
	w.isForeign(w.only(w.want(apply(o))))
	w.same("object", w.live(o).Object, before.Object)
}

// Others can own fields by applying them, too.
func overwriteServerSide(w *world) {
	w.namespace()
	theirs := w.object(strings.Replace(settings, "red", "grey", 1))
	u := &unstructured.Unstructured{Object: theirs}
	if _, err := w.resource(theirs).Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "their-pipeline"}); err != nil {
		w.t.Fatal(err)
	}
	o := w.object(settings)
	w.isForeign(w.only(w.want(apply(o))))
	w.same("colour", field(w.live(o), "data", "colour"), "grey")
	w.must(overwrite(o))
	w.same("data", field(w.live(o), "data"), o["data"])
}

// What is on its way out bears our marks, and is not what the fleet wants there.
func stuckAndLost(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.edit("their-operator", o, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/theirs"}) })
	uid := w.live(o).GetUID()
	w.remove(o)
	w.inventory = &Inventory{}
	w.restart()
	w.comesAgain(o, uid)
}

// The place of what is new has to be seen before anything is put there.
func unread(w *world) {
	w.namespace()
	w.must(apply(w.object(settings)))
	second := w.object(strings.Replace(settings, "name: settings", "name: more", 1))
	lost, read := false, false
	w.counter.hook(func(r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/configmaps") {
			return false
		}
		read = lost
		lost = true
		return !read
	}, func(r *http.Request) {
		if r.Method == http.MethodPatch && !read {
			w.t.Error("it was written before it was read")
		}
	})
	w.must(apply(second))
	w.counter.hook(nil, nil)
}

// The fleet meant to place a namespace, and gave it up before it could. One of
// that name was made since, because something needs it.
func namespaceMeant(w *world) {
	ns := Object("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + "}}")
	w.must(apply(w.object(settings)))
	if err := w.inventory.Save(map[string]map[object.ID]*dispatch.Entry{cluster: {ID(ns): {APIVersion: "v1"}}}); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
	w.must(remove(ns))
	if live := w.live(ns); live == nil || live.GetDeletionTimestamp() != nil {
		w.t.Error("the namespace is being deleted")
	}
}

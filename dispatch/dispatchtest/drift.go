// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// watched begins a story with a namespace, works that are there, and a
// dispatcher that watches them.
func (w *world) watched(works ...Work) {
	w.t.Helper()
	w.watch = true
	w.restart()
	w.namespace()
	w.must(works...)
	w.quiet()
	w.counter.take()
}

func (w *world) colour(o map[string]any) func(string) func() bool {
	return func(want string) func() bool {
		return func() bool {
			live := w.find(o)
			return live != nil && field(live, "data", "colour") == want
		}
	}
}

// find reads an object that may not be there.
func (w *world) find(o map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	u, err := w.resource(o).Get(context.Background(), ID(o).Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func watchedUpdates(w *world) {
	o := w.object(settings)
	w.watched(apply(o))
	for i := range 20 {
		next := w.object(strings.Replace(settings, "red", fmt.Sprint("c", i), 1))
		w.must(apply(next))
	}
	w.quiet()
	w.writes("20 PATCH")
}

func watchedEdit(w *world) {
	o := w.object(settings)
	w.watched(apply(o))
	began := time.Now()
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
		unstructured.SetNestedField(u.Object, "blue", "data", "colour")
		unstructured.RemoveNestedField(u.Object, "data", "size")
	})
	w.becomes("the colour is ours again", w.colour(o)("red"))
	if took := time.Since(began); took > 3*time.Second {
		w.t.Errorf("restored after %s", took)
	}
	w.same("size", field(w.live(o), "data", "size"), "small")
	w.quiet()
	w.writes("1 PATCH")
}

func watchedDelete(w *world) {
	o := w.object(settings)
	w.watched(apply(o))
	uid := w.live(o).GetUID()
	w.remove(o)
	w.becomes("it is there again", func() bool { live := w.find(o); return live != nil && live.GetUID() != uid })
	w.quiet()
	w.writes("2 PATCH") // on the one that was there, and the create
	if e, _ := w.entry(ID(o)); e.UID != w.live(o).GetUID() {
		w.t.Errorf("the inventory has %s", e.UID)
	}
}

const migration = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: NS}
spec:
  ttlSecondsAfterFinished: 60
  template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "migrate:1"}]}}`

func watchedExpired(w *world) {
	expires, o := w.object(migration), w.object(settings)
	stays := w.object(strings.NewReplacer("name: migrate,", "name: stays,", "  ttlSecondsAfterFinished: 60\n", "").Replace(migration))
	w.watched(apply(expires), apply(stays), apply(o))
	w.remove(expires)
	w.remove(stays)
	w.becomes("the one without a TTL is there again", func() bool { return w.find(stays) != nil })
	noted := func() bool {
		for _, outcome := range w.d.Outcomes() {
			if outcome.ID == ID(expires) && outcome.Err == nil && strings.Contains(outcome.Note, "removed by its ttlSecondsAfterFinished") {
				return true
			}
		}
		return false
	}
	w.becomes("it is told", noted)
	w.restart() // and found absent by a relist
	w.must(apply(expires), apply(stays), apply(o))
	w.becomes("it is told again", noted)
	if w.find(expires) != nil {
		w.t.Error("it ran again")
	}

	next := w.object(strings.Replace(migration, "migrate:1", "migrate:2", 1))
	w.must(apply(next), apply(stays), apply(o))
	if w.find(next) == nil {
		w.t.Error("another content did not run")
	}
}

func (w *world) remove(o map[string]any) {
	w.t.Helper()
	background := metav1.DeletePropagationBackground // a Job's own would wait for a controller
	if err := w.resource(o).Delete(context.Background(), ID(o).Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		w.t.Fatal(err)
	}
}

func watchedLabel(w *world) {
	o := w.object(settings)
	w.watched(apply(o))
	w.edit("kubectl-label", o, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	w.becomes("it bears our label again", func() bool { return w.live(o).GetLabels()[object.LabelManaged] == "true" })
	w.quiet()
	w.writes("1 PATCH")
}

// A process that was stopped with a request under way goes on after another has sent what
// came later. What is of a commit that the fleet does not know is of one that was faster.
func watchedLate(w *world) {
	w.fleet(object.Marker{Name: Sea.Name, Has: func(commit string) bool { return commit == revision }})
	first := w.object(settings)
	then := w.object(strings.Replace(settings, "red", "blue", 1))
	w.watched(apply(first))
	w.must(apply(then))
	w.quiet()
	w.counter.take()

	for _, opt := range []member.ApplyOptions{{}, {Force: true, UID: w.live(then).GetUID()}} { // it was a create, or an update
		w.late(Marked(first), opt)
		w.becomes("it is as of the later commit", w.colour(then)("blue"))
		w.quiet()
		w.writes("2 PATCH") // the late one and ours
	}

	newer := MarkedBy(first, Sea)
	newer["metadata"].(map[string]any)["annotations"].(map[string]any)[object.AnnotationRevision] = strings.Repeat("1", 40)
	w.late(newer, member.ApplyOptions{})
	w.quiet()
	w.writes("1 PATCH")
	w.same("colour", field(w.live(then), "data", "colour"), "red")
}

// late has a request of ours arrive.
func (w *world) late(manifest map[string]any, opt member.ApplyOptions) {
	w.t.Helper()
	if _, err := w.member.Apply(context.Background(), manifest, opt); err != nil {
		w.t.Fatal(err)
	}
}

func watchedOthers(w *world) {
	o := w.object(web)
	w.watched(apply(o))
	w.edit("kubectl-label", o, func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		labels["team"] = "sea"
		u.SetLabels(labels)
	})
	w.edit("kube-controller-manager", o, func(u *unstructured.Unstructured) {
		unstructured.SetNestedField(u.Object, int64(2), "status", "replicas")
		unstructured.SetNestedField(u.Object, int64(1), "status", "observedGeneration")
	}, "status")
	w.quiet()
	w.writes("nothing")
	w.same("team", w.live(o).GetLabels()["team"], "sea")
}

func watchedAutoscaler(w *world) {
	o := w.object(web)
	w.watched(Work{Verb: dispatch.Apply, Object: o, RetainReplicas: true})
	w.edit("horizontal-pod-autoscaler", o, func(u *unstructured.Unstructured) {
		unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
	})
	w.quiet()
	w.writes("nothing")
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "example.com/web:wrong"
		unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	})
	w.becomes("the image is ours again", func() bool { return image(w.live(o)) == "example.com/web:1" })
	w.same("replicas", field(w.live(o), "spec", "replicas"), int64(7))
}

func image(u *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	s, _ := containers[0].(map[string]any)["image"].(string)
	return s
}

// What is held is neither restored nor made again; when it is released it is.
func watchedHeld(w *world) {
	o, other := w.object(settings), w.object(strings.Replace(settings, "name: settings", "name: other", 1))
	w.watched(apply(o), apply(other))
	w.must(Work{Verb: dispatch.Hold, Object: o}, Work{Verb: dispatch.Hold, Object: other})
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) { unstructured.SetNestedField(u.Object, "blue", "data", "colour") })
	w.remove(other)
	w.quiet()
	w.writes("nothing")
	w.gone(other)
	w.must(apply(o), apply(other))
	w.same("colour", field(w.live(o), "data", "colour"), "red")
	w.same("the other's colour", field(w.live(other), "data", "colour"), "red")
}

func watchedLater(w *world) {
	o, other := w.object(settings), w.object(strings.Replace(settings, "name: settings", "name: other", 1))
	w.watched(apply(o), apply(other))
	w.close()
	w.d = nil
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) { unstructured.SetNestedField(u.Object, "blue", "data", "colour") })
	w.remove(other)
	w.restart()
	w.must(apply(o), apply(other))
	w.becomes("the colour is ours again", w.colour(o)("red"))
	w.becomes("the other is there again", w.colour(other)("red"))
	w.counter.take()
	w.restart() // and a process that finds all as it left it writes nothing
	w.must(apply(o), apply(other))
	w.quiet()
	w.writes("nothing")
}

func watchedFlapping(w *world) {
	o := w.object(settings)
	w.watched(apply(o))
	rounds := 0
	for ; rounds < 20 && len(w.d.Outcomes()) == 0; rounds++ {
		w.edit("stubborn-operator", o, func(u *unstructured.Unstructured) {
			unstructured.SetNestedField(u.Object, fmt.Sprint("blue", rounds), "data", "colour")
		})
		w.becomes("it is restored, or given up", func() bool { return w.colour(o)("red")() || len(w.d.Outcomes()) > 0 })
	}
	left := w.only(w.d.Outcomes())
	if !errors.Is(left.Err, member.Contested) || !left.Final {
		w.t.Fatalf("left: %v", left.Err)
	}
	for _, who := range []string{"stubborn-operator", object.Manager} {
		if !strings.Contains(left.Err.Error(), who) {
			w.t.Errorf("%v does not name %s", left.Err, who)
		}
	}
	if rounds != 6 {
		w.t.Errorf("given up after %d edits, want 6", rounds)
	}
	w.writes("5 PATCH")
	w.quiet()
	w.writes("nothing")
	w.must(apply(w.object(strings.Replace(settings, "red", "green", 1)))) // another content is another try
	w.same("colour", field(w.live(o), "data", "colour"), "green")
}

// Without the inventory the manifest tells what should be ours: an object that
// is as it was sent is no write, and one that a hand was on is restored.
func watchedLost(w *world) {
	o, other := w.object(web), w.object(settings)
	w.watched(apply(o), apply(other))
	w.close()
	w.d = nil
	w.inventory = &Inventory{}
	w.restart()
	w.must(apply(o), apply(other))
	w.quiet()
	w.writes("nothing")
	w.close()
	w.d = nil
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "example.com/web:wrong"
		unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	})
	w.inventory = &Inventory{}
	w.restart()
	w.must(apply(o), apply(other))
	w.becomes("the image is ours again", func() bool { return image(w.live(o)) == "example.com/web:1" })
	w.quiet()
	w.writes("1 PATCH")
}

// Of what is held nobody knows what it should be, so a hand that was on it shows
// when the hold ends, and not before.
func watchedHeldLost(w *world) {
	o, other := w.object(settings), w.object(strings.Replace(settings, "name: settings", "name: other", 1))
	w.watched(apply(o), apply(other))
	w.close()
	w.d = nil
	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) { unstructured.SetNestedField(u.Object, "blue", "data", "colour") })
	w.inventory = &Inventory{}
	w.restart()
	w.must(Work{Verb: dispatch.Hold, Object: o}, Work{Verb: dispatch.Hold, Object: other})
	w.quiet()
	w.writes("nothing")
	w.must(apply(o), apply(other))
	w.same("colour", field(w.live(o), "data", "colour"), "red")
	w.writes("1 PATCH")
}

// The record of what is being deleted goes with it. What is wanted again in that
// moment needs one of its own before it is made: its answer may be lost, and what
// nobody knows of is never deleted.
func againDuringDeletion(w *world) {
	o := w.object(settings)
	w.must(apply(o))
	var wanted, onRecord atomic.Bool
	w.counter.hook(func(*http.Request) bool { return false }, func(r *http.Request) {
		switch {
		case r.Method == http.MethodDelete && !wanted.Load():
			w.works = []Work{apply(o)}
			wanted.Store(true)
			fleet := Fleet(Works{cluster: w.works})
			if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
				w.t.Error(err)
			}
		case r.Method == http.MethodPatch && wanted.Load():
			e, there := w.inventory.stored(cluster)[ID(o)]
			onRecord.Store(there && e.UID == "") // not of the one before
		}
	})
	w.works = []Work{remove(o)}
	fleet := Fleet(Works{cluster: w.works})
	if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.becomes("it is made again", func() bool { return wanted.Load() && w.live(o) != nil && len(w.d.Wait(context.Background())) == 0 })
	if !onRecord.Load() {
		w.t.Error("it was made again without a record of it")
	}
}

// What is made again has another UID. If the answer is lost, and the object is
// not wanted any more, it is deleted all the same.
func watchedAgain(w *world) {
	o := w.object(settings)
	w.watched(apply(o))
	w.works = []Work{remove(o)}
	create := func(r *http.Request) bool { return r.Method == http.MethodPatch && r.URL.Query().Get("force") == "" }
	w.counter.hook(create, func(r *http.Request) {
		if !create(r) {
			return
		}
		fleet := Fleet(Works{cluster: w.works})
		if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
			w.t.Error(err)
		}
	})
	w.remove(o)
	began := time.Now()
	for strings.Count(w.counter.take(), "DELETE") == 0 && time.Since(began) < patience {
		time.Sleep(10 * time.Millisecond)
	}
	w.must()
	w.gone(o)
}

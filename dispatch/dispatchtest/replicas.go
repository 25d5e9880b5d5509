// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
)

// scale is what an autoscaler does.
func (w *world) scale(o map[string]any, replicas int) {
	w.t.Helper()
	_, err := w.resource(o).Patch(context.Background(), ID(o).Name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{FieldManager: "autoscaler"}, "scale")
	if err != nil {
		w.t.Fatalf("scale: %v", err)
	}
}

func (w *world) runs(o map[string]any, replicas int64, image string) {
	w.t.Helper()
	live := w.live(o)
	w.same("replicas", field(live, "spec", "replicas"), replicas)
	containers := field(live, "spec", "template", "spec", "containers").([]any)
	w.same("image", containers[0].(map[string]any)["image"], image)
}

func retain(o map[string]any) Work {
	return Work{Verb: dispatch.Apply, Object: o, RetainReplicas: true}
}

func autoscaled(w *world) {
	w.namespace()
	o := w.object(web)
	w.must(retain(o))
	w.runs(o, 2, "example.com/web:1") // a create sends what was scheduled
	w.scale(o, 7)
	w.counter.take()
	w.must(retain(o))
	w.sent("nothing")

	for _, version := range []string{"2", "3"} {
		o = w.object(strings.Replace(web, "web:1", "web:"+version, 1))
		w.must(retain(o))
		w.sent("1 GET, 1 PATCH")
		w.runs(o, 7, "example.com/web:"+version)
	}
	w.scale(o, 9)
	o = w.object(strings.Replace(web, "replicas: 2", "replicas: 4", 1)) // another share
	w.must(retain(o))
	w.runs(o, 9, "example.com/web:1")

	if err := w.resource(o).Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	o = w.object(strings.Replace(web, "web:1", "web:4", 1))
	w.must(retain(o))
	w.runs(o, 2, "example.com/web:4")
}

func overruled(w *world) {
	w.namespace()
	o := w.object(web)
	w.must(apply(o))
	w.scale(o, 7)
	o = w.object(strings.Replace(web, "web:1", "web:2", 1))
	w.must(apply(o))
	w.runs(o, 2, "example.com/web:2")
}

func unsetReplicas(w *world) {
	w.namespace()
	unset := strings.Replace(web, "  replicas: 2\n", "", 1)
	o := w.object(unset)
	w.must(apply(o))
	w.runs(o, 1, "example.com/web:1")

	w.scale(o, 7)
	w.must(apply(w.object(strings.Replace(unset, "web:1", "web:2", 1))))
	w.runs(o, 7, "example.com/web:2")
}

func retainedLater(w *world) {
	w.namespace()
	o := w.object(web)
	w.must(apply(o))
	w.scale(o, 7)
	labelled := strings.Replace(web, "{name: web, ", "{name: web, labels: {resourcetemplate.karmada.io/retain-replicas: 'true'}, ", 1)
	o = w.object(labelled)
	w.must(retain(o))
	w.runs(o, 7, "example.com/web:1")
	// Not even by a template without the number.
	o = w.object(strings.Replace(labelled, "  replicas: 2\n", "", 1))
	w.must(retain(o))
	w.runs(o, 7, "example.com/web:1")
	w.must(apply(w.object(strings.Replace(web, "web:1", "web:2", 1)))) // and back
	w.runs(o, 2, "example.com/web:2")
}

func overwriteRetains(w *world) {
	w.namespace()
	o := w.object(web)
	w.create("kubectl-create", o)
	w.scale(o, 7)
	o = w.object(strings.Replace(web, "web:1", "web:2", 1))
	w.must(Work{Verb: dispatch.Apply, Object: o, Overwrite: true, RetainReplicas: true})
	w.runs(o, 7, "example.com/web:2")
}

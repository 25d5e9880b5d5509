// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/object"
)

func lostInventory(w *world) {
	w.namespace()
	o, d := w.object(settings), w.object(web)
	stale := w.object(strings.Replace(settings, "name: settings", "name: stale", 1))
	w.must(apply(o), apply(d), apply(stale))
	uid := w.live(o).GetUID()

	w.inventory = &Inventory{}
	w.restart()
	w.counter.take()
	w.must()
	w.sent("4 GET") // who it is, the namespaces, ConfigMaps and Deployments
	e, _ := w.entry(ID(o))
	w.same("entry", e, dispatch.Entry{APIVersion: "v1", UID: uid, Digest: Digest(o)})

	w.inventory = &Inventory{}
	w.restart()
	w.must(remove(stale), apply(w.object(strings.Replace(settings, "red", "blue", 1))))
	w.sent("5 GET, 1 PATCH, 1 DELETE")
}

// The process ends between the answer and the inventory.
func lostAcknowledgement(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	version := w.live(o).GetResourceVersion()
	w.inventory = &Inventory{}
	if err := w.inventory.Save(map[string]map[object.ID]*dispatch.Entry{cluster: {ID(o): {APIVersion: "v1"}}}); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
	w.counter.take()
	w.must()
	w.sent("2 GET")
	w.same("version", w.live(o).GetResourceVersion(), version)
}

func lostAnswer(w *world) {
	w.namespace()
	o := w.object(settings)
	lost := 0
	w.counter.hook(func(r *http.Request) bool {
		if r.Method != http.MethodPatch || lost > 0 {
			return false
		}
		lost++
		return true
	}, nil)
	w.must(apply(o))
	w.counter.hook(nil, nil)
	w.same("lost", lost, 1)
	w.same("data", field(w.live(o), "data"), o["data"])
	if got := w.counter.take(); !strings.HasSuffix(got, "2 PATCH") && !strings.HasSuffix(got, "1 PATCH") {
		w.t.Errorf("sent %s", got)
	}
}

// It keeps nothing else waiting, and what comes after it under its name waits
// until it is gone, and says why.
func stuck(w *world) {
	w.namespace()
	o, other := w.object(settings), w.object(strings.Replace(settings, "name: settings", "name: other", 1))
	w.must(apply(o), apply(other))
	w.edit("their-operator", o, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/theirs"}) })
	uid := w.live(o).GetUID()
	w.must(remove(o), remove(other))
	if live := w.live(o); live == nil || live.GetDeletionTimestamp() == nil {
		w.t.Error("it should be there, on its way out")
	}
	if w.live(other) != nil {
		w.t.Error("the other was kept waiting")
	}
	fleet := Fleet(Works{cluster: {apply(o), apply(other)}})
	if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the other is there again", func() bool { return w.live(other) != nil })
	w.until("it says why", func() bool {
		left := w.d.Outcomes()
		return len(left) == 1 && !left[0].Final && strings.HasSuffix(left[0].Err.Error(), "the previous object is still terminating")
	})
	w.edit("their-operator", o, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	w.until("it is there again", func() bool { live := w.live(o); return live != nil && live.GetUID() != uid })
}

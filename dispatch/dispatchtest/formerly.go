// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// takenBack is a revert of a removal that kept copies running: nobody has to allow
// anything, also after a restart.
func takenBack(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	uid := w.live(o).GetUID()
	w.must(let(o))

	w.restart()
	o = w.object(strings.Replace(settings, ", size: small", "", 1))
	w.must(apply(o))
	w.same("data", field(w.live(o), "data"), o["data"])
	w.same("UID", w.live(o).GetUID(), uid)

	// It is ours like any other.
	w.must(remove(o))
	w.gone(o)
	w.must(apply(o))
}

func notLeft(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.must(let(o))

	if err := w.resource(o).Delete(context.Background(), ID(o).Name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.create("kubectl-create", o)
	w.isForeign(w.only(w.want(apply(o))))
}

func keptByOthers(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.must(let(o))

	w.edit("helm", o, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web"})
	})
	w.isForeign(w.only(w.want(apply(o))))
}

// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch/member"
)

func secret(w *world) {
	w.namespace()
	const canary = "canary-4711"
	o := w.object(`
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: NS}
data: {password: ` + canary + `}
`)
	outcome := w.only(w.want(apply(o)))
	if outcome.Err == nil || strings.Contains(outcome.Err.Error(), canary) {
		w.t.Errorf("it reads %q", outcome.Err)
	}
	if !errors.Is(outcome.Err, member.Invalid) {
		w.t.Errorf("outcome %v", outcome.Err)
	}
}

// A server keeps stringData as data: whoever applies it as stringData owns no key of data.
// A key that left the template would stay, and nobody would see a change by hand.
func stringData(w *world) {
	const keys = `
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: NS}
data: {a: YQ==}
stringData: {b: first, c: third}
`
	w.watched(apply(w.object(keys)))
	o := w.object(strings.Replace(keys, ", c: third", "", 1))
	w.must(apply(o))
	ours := map[string]any{"a": "YQ==", "b": "Zmlyc3Q="}
	w.same("data", field(w.live(o), "data"), ours)

	w.edit("kubectl-edit", o, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "aGFuZA==", "data", "b")
	})
	w.becomes("the key is ours again", func() bool { return w.find(o).Object["data"].(map[string]any)["b"] == ours["b"] })
}

// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
)

// looks reads what a member has as people do: by any name of a kind, as a
// table, whole, and only what is ours.
func looks(w *world) {
	w.namespace()
	ctx := context.Background()
	ours := w.object(settings)
	w.must(apply(ours))
	w.create("kubectl-create", w.object("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: NS, labels: {app: a}}\ndata: {a: b}\n"))

	for _, word := range []string{"configmap", "configmaps", "cm", "ConfigMap", "configmaps.", "deploy", "Deployment.apps", "deployments.v1.apps", "crd"} {
		res, err := w.reader.Find(ctx, word)
		if err != nil {
			w.t.Errorf("find %s: %v", word, err)
			continue
		}
		want := map[byte]string{'c': "configmaps v1 true", 'd': "deployments.apps v1 true"}[strings.ToLower(word)[0]]
		if word == "crd" {
			want = "customresourcedefinitions.apiextensions.k8s.io v1 false"
		}
		w.same(word, fmt.Sprint(res, " ", res.Version, " ", res.Namespaced), want)
	}
	if _, err := w.reader.Find(ctx, "deployments.batch"); !errors.Is(err, member.NotServed) {
		w.t.Errorf("deployments.batch: %v", err)
	}

	maps, err := w.reader.Find(ctx, "cm")
	if err != nil {
		w.t.Fatal(err)
	}
	table := func(s push.Selection) (all []string) {
		s.Namespace = w.ns
		t, err := w.reader.Table(ctx, maps, s)
		if err != nil {
			w.t.Fatal(err)
		}
		columns, rows := push.Gather([]string{cluster}, map[string]*metav1.Table{cluster: t})
		if len(rows) > 0 {
			w.same("columns", fmt.Sprint(columns[0].Name, columns[1].Name, columns[2].Name), "NameDataAge")
		}
		for _, r := range rows {
			if r.Object.Name != "kube-root-ca.crt" { // every namespace of a real server has it
				all = append(all, fmt.Sprint(r.Object.Namespace == w.ns, r.Cells[0], r.Cells[1], r.Object.Labels[object.LabelManaged]))
			}
		}
		return all
	}
	w.same("all", table(push.Selection{}), []string{"truesettings2true", "truetheirs1"})
	w.same("by label", table(push.Selection{Labels: "app=a"}), []string{"truetheirs1"})
	w.same("by name", table(push.Selection{Name: "settings"}), []string{"truesettings2true"})
	w.same("absent", table(push.Selection{Name: "nobody"}), []string(nil))

	var whole []string
	for o, err := range w.reader.Objects(ctx, maps, push.Selection{Namespace: w.ns, Name: "settings"}) {
		if err != nil {
			w.t.Fatal(err)
		}
		u := unstructured.Unstructured{Object: o}
		whole = append(whole, fmt.Sprint(u.GetAPIVersion(), u.GetKind(), u.GetName(), u.GetManagedFields() == nil))
	}
	w.same("whole", whole, []string{"v1ConfigMapsettingstrue"})

	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	w.same("what is ours", w.names(func(yield func(string, error) bool) {
		for found, err := range w.reader.Ours(ctx, gvk) {
			if found.ID.Namespace == w.ns && !yield(found.ID.String()+" "+found.Annotations[object.AnnotationDigest][:7], err) {
				return
			}
		}
	}), []string{"ConfigMap " + w.ns + "/settings sha256:"})
	w.same("what is ours, whole", w.names(func(yield func(string, error) bool) {
		for o, err := range w.reader.OursWhole(ctx, gvk) {
			u := unstructured.Unstructured{Object: o}
			if u.GetNamespace() == w.ns && !yield(u.GetKind()+" "+u.GetName(), err) {
				return
			}
		}
	}), []string{"ConfigMap settings"})
	_, err = w.reader.Find(ctx, "")
	if !errors.Is(err, member.NotServed) {
		w.t.Errorf("no word at all: %v", err)
	}
}

func (w *world) names(seq iter.Seq2[string, error]) (all []string) {
	for name, err := range seq {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

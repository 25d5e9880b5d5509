// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// asked is a member that notes what it is asked for.
type asked struct {
	questions []string
	ours      map[string][]string // names by kind
	others    []string            // ConfigMaps that are there and not ours
	unserved  string              // a kind
	err       error
}

func (a *asked) note(what string, gvk schema.GroupVersionKind, rest string) error {
	a.questions = append(a.questions, fmt.Sprint(what, " ", gvk.Kind, rest))
	if gvk.Kind == a.unserved {
		return &dispatch.Error{Reason: dispatch.NotServed, Err: fmt.Errorf("no %s here", gvk.Kind)}
	}
	return a.err
}

func (a *asked) found(gvk schema.GroupVersionKind, name string) dispatch.Found {
	return dispatch.Found{ID: propagate.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: "default", Name: name}}
}

func (a *asked) Ours(_ context.Context, gvk schema.GroupVersionKind) iter.Seq2[dispatch.Found, error] {
	return func(yield func(dispatch.Found, error) bool) {
		if err := a.note("ours", gvk, ""); err != nil {
			yield(dispatch.Found{}, err)
			return
		}
		for _, name := range a.ours[gvk.Kind] {
			f := a.found(gvk, name)
			f.Labels = map[string]string{dispatch.LabelManaged: "true"}
			f.Annotations = map[string]string{dispatch.AnnotationRevision: "\x1b[2J", dispatch.AnnotationDigest: "sha256:00"}
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (a *asked) OursWhole(_ context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		if err := a.note("whole", gvk, ""); err != nil {
			yield(nil, err)
			return
		}
		for _, name := range a.ours[gvk.Kind] {
			if !yield(map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{
				"name": name, "namespace": "default", "labels": map[string]any{dispatch.LabelManaged: "true"}},
				"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"availableReplicas": int64(1)}}, nil) {
				return
			}
		}
	}
}

func (a *asked) List(_ context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[dispatch.Found, error] {
	return func(yield func(dispatch.Found, error) bool) {
		if err := a.note("list", gvk, " in "+namespace); err != nil {
			yield(dispatch.Found{}, err)
			return
		}
		for _, name := range a.others {
			if !yield(a.found(gvk, name), nil) {
				return
			}
		}
	}
}

func (a *asked) Get(_ context.Context, ref dispatch.Ref) (*dispatch.Found, error) {
	if err := a.note("get", ref.GroupVersionKind, " "+ref.Name); err != nil {
		return nil, err
	}
	if !slices.Contains(a.others, ref.Name) {
		return nil, nil
	}
	f := a.found(ref.GroupVersionKind, ref.Name)
	return &f, nil
}

// A survey asks once for each kind, never for the content of a Secret, and
// looks twice only at what is missing.
func TestSurvey(t *testing.T) {
	repo := sourcetest.New(t)
	files := map[string]string{"fleet.yaml": `apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}, {apiVersion: apps/v1, kind: Deployment}, {apiVersion: example.io/v1, kind: Widget}]
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {}, template: {}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: YQ==}}
---
{apiVersion: example.io/v1, kind: Widget, metadata: {name: w, namespace: default}}
`}
	for i := range 6 {
		files[fmt.Sprintf("c%d.yaml", i)] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}", i)
	}
	head := repo.Commit("one", files)
	opened, err := source.Open(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := reconcile.NewHistory(opened, ".").At(head)
	if err != nil {
		t.Fatal(err)
	}

	m := &asked{ours: map[string][]string{"ConfigMap": {"c0", "c1", "stranger"}, "Deployment": {"web"}}, others: []string{"c5"}, unserved: "Widget"}
	sights, err := reconcile.Survey(t.Context(), &state, "eu-1", m)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(m.questions)
	want := []string{"get Secret s", "get Widget w", "list ConfigMap in default", "ours ConfigMap", "ours Secret", "whole Deployment", "whole Widget"}
	if !reflect.DeepEqual(m.questions, want) {
		t.Errorf("asked %q\n want %q", m.questions, want)
	}
	var seen []string
	for id, s := range sights {
		seen = append(seen, fmt.Sprintf("%s %s ours=%v revision=%q replicas=%d/%d %s", id.Kind, id.Name, s.Ours, s.Revision, s.Available, s.Replicas, s.Progress))
	}
	slices.Sort(seen)
	want = []string{
		`ConfigMap c0 ours=true revision="" replicas=0/-1 Current`, // what it bears is no commit
		`ConfigMap c1 ours=true revision="" replicas=0/-1 Current`,
		`ConfigMap c5 ours=false revision="" replicas=0/-1 Current`,
		`Deployment web ours=true revision="" replicas=1/3 InProgress`,
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("saw %q\n want %q", seen, want)
	}

	// What cannot be read is not missing.
	m = &asked{err: &dispatch.Error{Reason: dispatch.Forbidden, Err: fmt.Errorf("no")}}
	if sights, err := reconcile.Survey(t.Context(), &state, "eu-1", m); err == nil {
		t.Errorf("a member that refuses was seen to have %v", sights)
	}
	if len(m.questions) != 1 {
		t.Errorf("it was asked on: %q", m.questions)
	}
}

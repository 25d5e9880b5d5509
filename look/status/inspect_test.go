// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// recorder is a member that records the requests it gets.
type recorder struct {
	requests []string
	ours     map[string][]string // names, by kind
	others   []string            // names of ConfigMaps that are not ours
	unserved string              // a kind that is not served
	invalid  string              // a kind of which one object cannot be asked for
	err      error
}

func (r *recorder) note(what string, gvk schema.GroupVersionKind, rest string) error {
	r.requests = append(r.requests, fmt.Sprint(what, " ", gvk.Kind, rest))
	if gvk.Kind == r.unserved {
		return &member.Error{Reason: member.NotServed, Err: fmt.Errorf("no %s here", gvk.Kind)}
	}
	if what == "get" && gvk.Kind == r.invalid {
		return &member.Error{Reason: member.Invalid, Err: fmt.Errorf("%s needs a namespace", gvk.Kind)}
	}
	return r.err
}

func (r *recorder) found(gvk schema.GroupVersionKind, name string) member.Found {
	return member.Found{ID: object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: "default", Name: name}}
}

func (r *recorder) Ours(_ context.Context, gvk schema.GroupVersionKind) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		if err := r.note("ours", gvk, ""); err != nil {
			yield(member.Found{}, err)
			return
		}
		for _, name := range r.ours[gvk.Kind] {
			f := r.found(gvk, name)
			f.Labels = map[string]string{object.LabelManaged: "true"}
			f.Annotations = map[string]string{object.AnnotationRevision: "\x1b[2J", object.AnnotationDigest: "sha256:00"}
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (r *recorder) OursWhole(_ context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		if err := r.note("whole", gvk, ""); err != nil {
			yield(nil, err)
			return
		}
		for _, name := range r.ours[gvk.Kind] {
			if !yield(map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{
				"name": name, "namespace": "default", "labels": map[string]any{object.LabelManaged: "true"}},
				"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"availableReplicas": int64(1)}}, nil) {
				return
			}
		}
	}
}

func (r *recorder) List(_ context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		if err := r.note("list", gvk, " in "+namespace); err != nil {
			yield(member.Found{}, err)
			return
		}
		for _, name := range r.others {
			if !yield(r.found(gvk, name), nil) {
				return
			}
		}
	}
}

func (r *recorder) Get(_ context.Context, ref member.Ref) (*member.Found, error) {
	if err := r.note("get", ref.GroupVersionKind, " "+ref.Name); err != nil {
		return nil, err
	}
	if !slices.Contains(r.others, ref.Name) {
		return nil, nil
	}
	f := r.found(ref.GroupVersionKind, ref.Name)
	return &f, nil
}

// Inspect lists each kind once, never reads the content of a Secret, and looks
// a second time only for what is missing.
func TestInspect(t *testing.T) {
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
	state, err := history.New(opened, ".").At(head)
	if err != nil {
		t.Fatal(err)
	}

	m := &recorder{ours: map[string][]string{"ConfigMap": {"c0", "c1", "stranger"}, "Deployment": {"web"}}, others: []string{"c5"}, unserved: "Widget"}
	seen, err := status.Inspect(t.Context(), &state, object.Marker{}, "eu-1", m)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(m.requests)
	want := []string{"get Secret s", "list ConfigMap in default", "ours ConfigMap", "ours Secret", "whole Deployment", "whole Widget"}
	if !reflect.DeepEqual(m.requests, want) {
		t.Errorf("requests %q\n want %q", m.requests, want)
	}
	var got []string
	for id, s := range seen {
		got = append(got, fmt.Sprintf("%s %s ours=%v revision=%q replicas=%d/%d %s", id.Kind, id.Name, s.Ours, s.Revision, s.Available, s.Replicas, s.Progress))
	}
	slices.Sort(got)
	want = []string{
		`ConfigMap c0 ours=true revision="" replicas=0/-1 Current`, // its revision annotation is not a commit
		`ConfigMap c1 ours=true revision="" replicas=0/-1 Current`,
		`ConfigMap c5 ours=false revision="" replicas=0/-1 Current`,
		`Deployment web ours=true revision="" replicas=1/3 InProgress`,
		`Widget w ours=false revision="" replicas=0/-1 `, // its kind is not served
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("observed %q\n want %q", got, want)
	}

	// One object that the member does not take is its own trouble (R04).
	m = &recorder{ours: map[string][]string{"Deployment": {"web"}}, invalid: "Secret"}
	seen, err = status.Inspect(t.Context(), &state, object.Marker{}, "eu-1", m)
	if err != nil {
		t.Fatal(err)
	}
	if s := seen[object.ID{Kind: "Secret", Namespace: "default", Name: "s"}]; s == nil || !errors.Is(s.Err, member.Invalid) {
		t.Errorf("the Secret is %+v", s)
	}
	if s := seen[object.ID{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "web"}]; s == nil || !s.Ours || s.Err != nil {
		t.Errorf("the Deployment is %+v", s)
	}

	// What cannot be read is not missing.
	m = &recorder{err: &member.Error{Reason: member.Forbidden, Err: fmt.Errorf("no")}}
	if seen, err := status.Inspect(t.Context(), &state, object.Marker{}, "eu-1", m); err == nil {
		t.Errorf("a member that forbids reading was observed to have %v", seen)
	}
	if len(m.requests) != 1 {
		t.Errorf("it got more requests after the refusal: %q", m.requests)
	}
}

// R03: how a kind of another project does is told by what is known of the kind.
func TestInspectKindsOfOtherProjects(t *testing.T) {
	repo := sourcetest.New(t)
	head := repo.Commit("one", map[string]string{"fleet.yaml": `apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 3}}
`})
	opened, err := source.Open(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := history.New(opened, ".").At(head)
	if err != nil {
		t.Fatal(err)
	}

	m := &recorder{ours: map[string][]string{"CloneSet": {"web"}}}
	seen, err := status.Inspect(t.Context(), &state, object.Marker{}, "eu-1", m)
	if err != nil {
		t.Fatal(err)
	}
	web := seen[object.ID{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "default", Name: "web"}]
	if web == nil || web.Health != propagate.Unhealthy || web.Progress != interpret.InProgress || web.Why != "0 of 3 replicas" || web.Available != 1 {
		t.Errorf("the CloneSet is %+v", web)
	}
	if want := map[string]any{"availableReplicas": int64(1)}; web != nil && !reflect.DeepEqual(web.Status, want) {
		t.Errorf("its status is %v, want %v", web.Status, want)
	}
}
